/** Encodes the requested reasoning for an upstream of the messages protocol, by the traits of its models. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { ReasoningSettings } from '../../../../common/canonical/prompt.ts';
import { type Effort, efforts, type Traits } from '../../../../common/domain/traits.ts';
import { budgetOf, effortOf, nearestEffort } from '../../../../common/encoding/reasoning.ts';
import type { Messages } from './turns.ts';

export interface EncodedReasoning {
  readonly thinking?: JsonObject;
  /** The effort in `output_config`. */
  readonly effort?: Effort;
  /** The model reasons before it answers: it cannot be forced to call a tool and accepts no sampling settings. */
  readonly isOn: boolean;
}

const defaultEfforts: readonly Effort[] = ['low', 'medium', 'high'];

/** Without a request from the client, no reasoning is requested. */
export function encodeReasoning(
  reasoning: ReasoningSettings | undefined,
  context: EncodeContext,
  maxTokens: number,
  messages: Messages['messages'],
): EncodedReasoning {
  const { traits, dropped } = context;
  if (reasoning === undefined) return { isOn: false };
  const form = traits.reasoning ?? 'adaptive';
  const effort = effortOf(reasoning);
  if (form === 'none') {
    if (effort !== 'none') dropped.drop('reasoning');
    return { isOn: false };
  }
  if (effort === 'none') return switchedOff(form, context);
  if (form === 'budget') return budgeted(reasoning, context, maxTokens, messages);
  const effortMember = effort === undefined ? {} : { effort: nearestEffort(effort, traits.efforts ?? defaultEfforts) };
  const display = reasoning.visible === false ? 'omitted' : 'summarized';
  return form === 'effort'
    ? { ...effortMember, isOn: false }
    : { thinking: { type: 'adaptive', display }, ...effortMember, isOn: true };
}

/** A model that always reasons gets its least effort. */
function switchedOff(form: NonNullable<Traits['reasoning']>, { traits, dropped }: EncodeContext): EncodedReasoning {
  if (traits.reasoning_off ?? true) return { thinking: { type: 'disabled' }, isOn: false };
  dropped.drop('reasoning');
  const known = traits.efforts ?? defaultEfforts;
  const least = efforts.find((name) => name !== 'none' && known.includes(name));
  return { ...(form === 'budget' || least === undefined ? {} : { effort: least }), isOn: true };
}

function budgeted(
  reasoning: ReasoningSettings,
  { traits, dropped }: EncodeContext,
  maxTokens: number,
  messages: Messages['messages'],
): EncodedReasoning {
  const budget = budgetFor(reasoning, traits.max_budget, maxTokens);
  if (budget === undefined || lacksThinking(messages)) {
    dropped.drop('reasoning');
    return { isOn: false };
  }
  const display = reasoning.visible === false ? { display: 'omitted' } : {};
  return { thinking: { type: 'enabled', budget_tokens: budget, ...display }, isOn: true };
}

/** Without an effort and a budget, a medium effort applies. undefined: the answer's limit leaves no room. */
function budgetFor(reasoning: ReasoningSettings, maxBudget: number | undefined, maxTokens: number): number | undefined {
  const limits = { maxOutputTokens: maxTokens, ...(maxBudget === undefined ? {} : { maxBudget }) };
  const isOpen = reasoning.effort === undefined && (reasoning.budgetTokens ?? -1) < 0;
  return budgetOf(isOpen ? { effort: 'medium' } : reasoning, limits);
}

/**
 * The model's last step is a tool call without the thinking before it: models with a budget refuse to resume reasoning there.
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

/** The last user turn holds nothing but results of the last calls. */
function isMidStep(messages: Messages['messages']): boolean {
  const last = messages.findLast((message) => message.role === 'user');
  return last?.content.some((block) => block['type'] === 'tool_result') === true;
}
