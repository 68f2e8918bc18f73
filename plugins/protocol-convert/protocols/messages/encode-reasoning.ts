/** Words how much an upstream of the messages protocol is to reason, by what its models take. Pure. */
import { type Effort, efforts } from '../../../../core/traits.ts';
import type { ReasoningWish } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { budgetOf, effortOf, nearestEffort } from '../../wording/reasoning.ts';
import type { Messages } from './encode-turns.ts';

export interface EncodedReasoning {
  readonly thinking?: JsonObject;
  /** For `output_config`. */
  readonly effort?: Effort;
  /** The model thinks before it answers: it cannot be forced to call a tool, nor told how to sample. */
  readonly isOn: boolean;
}

const defaultEfforts: readonly Effort[] = ['low', 'medium', 'high'];

/** Nothing is asked for where the client asks for nothing. */
export function encodeReasoning(
  wish: ReasoningWish | undefined,
  { traits, losses }: EncodeContext,
  maxTokens: number,
  messages: Messages['messages'],
): EncodedReasoning {
  if (wish === undefined) return { isOn: false };
  const form = traits.reasoning ?? 'adaptive';
  const effort = effortOf(wish);
  if (form === 'none') {
    if (effort !== 'none') losses.drop('reasoning');
    return { isOn: false };
  }
  const known = traits.efforts ?? defaultEfforts;
  if (effort === 'none') {
    if (traits.reasoning_off ?? true) return { thinking: { type: 'disabled' }, isOn: false };
    losses.drop('reasoning');
    const least = efforts.find((name) => name !== 'none' && known.includes(name));
    return { ...(form === 'budget' || least === undefined ? {} : { effort: least }), isOn: true };
  }
  const display = { display: wish.visible === false ? 'omitted' : 'summarized' };
  if (form === 'budget') {
    const budget = budgetFor(wish, traits.max_budget, maxTokens);
    if (budget !== undefined && !lacksThinking(messages))
      return {
        thinking: { type: 'enabled', budget_tokens: budget, ...(wish.visible === false ? display : {}) },
        isOn: true,
      };
    losses.drop('reasoning');
    return { isOn: false };
  }
  const told = effort === undefined ? {} : { effort: nearestEffort(effort, known) };
  return form === 'effort'
    ? { ...told, isOn: false }
    : { thinking: { type: 'adaptive', ...display }, ...told, isOn: true };
}

/** Who leaves it to the model gets what a medium effort gets. undefined: the answer's bound leaves no room. */
function budgetFor(wish: ReasoningWish, maxBudget: number | undefined, maxTokens: number): number | undefined {
  const limits = { maxOutputTokens: maxTokens, ...(maxBudget === undefined ? {} : { maxBudget }) };
  const isOpen = wish.effort === undefined && (wish.budgetTokens ?? -1) < 0;
  return budgetOf(isOpen ? { effort: 'medium' } : wish, limits);
}

/**
 * The last thing the model did was to call a tool, and its thinking before that is not there: models with a budget refuse
 * to think on from there.
 */
function lacksThinking(messages: Messages['messages']): boolean {
  const last = messages.findLast((message) => message.role === 'assistant');
  const first = last?.content[0]?.['type'];
  const isThinking = first === 'thinking' || first === 'redacted_thinking';
  return (
    !isThinking &&
    last !== undefined &&
    last.content.some((block) => block['type'] === 'tool_use') &&
    isMidStep(messages)
  );
}

/** The results of the last calls are all that the user has to say. */
function isMidStep(messages: Messages['messages']): boolean {
  const last = messages.findLast((message) => message.role === 'user');
  return last?.content.some((block) => block['type'] === 'tool_result') === true;
}
