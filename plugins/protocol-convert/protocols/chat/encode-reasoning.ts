/** Asks a chat upstream to reason, in the way that it is declared to understand. */
import type { ReasoningWish } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { budgetOf, effortOf, nearestEffort } from '../../wording/reasoning.ts';

const defaultEfforts = ['low', 'medium', 'high'] as const;

export function encodeReasoning(
  wish: ReasoningWish | undefined,
  context: EncodeContext,
  maxOutputTokens: number | undefined,
): JsonObject {
  if (wish === undefined) return {};
  const { traits, losses } = context;
  const form = traits.reasoning ?? 'effort';
  const isOff = effortOf(wish) === 'none' || wish.budgetTokens === 0;
  if (form === 'none') {
    if (!isOff && (wish.effort !== undefined || wish.budgetTokens !== undefined)) losses.drop('reasoning');
    return {};
  }
  if (isOff && traits.reasoning_off === false) losses.drop('reasoning');
  const off = isOff && traits.reasoning_off !== false;
  if (form === 'adaptive')
    return { thinking: { type: off ? 'disabled' : 'enabled' }, ...(off ? {} : statedEffort(wish, context)) };
  if (form === 'budget') return budget(wish, context, off, maxOutputTokens);
  return off ? { reasoning_effort: 'none' } : effort(wish, context);
}

function effort(wish: ReasoningWish, { traits }: EncodeContext): JsonObject {
  const wanted = effortOf(wish);
  if (wanted === undefined) return {};
  return { reasoning_effort: nearestEffort(wanted, traits.efforts ?? defaultEfforts) };
}

/** Beside a switch, only where efforts are known to be taken. */
function statedEffort(wish: ReasoningWish, context: EncodeContext): JsonObject {
  return context.traits.efforts === undefined ? {} : effort(wish, context);
}

function budget(
  wish: ReasoningWish,
  { traits, maxOutputTokens: most }: EncodeContext,
  off: boolean,
  asked: number | undefined,
): JsonObject {
  if (off) return { enable_thinking: false };
  const bound = asked ?? most;
  const tokens = budgetOf(wish, {
    ...(bound === undefined ? {} : { maxOutputTokens: bound }),
    ...(traits.max_budget === undefined ? {} : { maxBudget: traits.max_budget }),
  });
  return { enable_thinking: true, ...(tokens === undefined || tokens === 0 ? {} : { thinking_budget: tokens }) };
}
