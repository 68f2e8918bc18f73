/** Requests reasoning from a chat upstream in the form that its traits declare. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { ReasoningSettings } from '../../../../common/canonical/prompt.ts';
import { budgetOf, effortOf, nearestEffort } from '../../../../common/encoding/reasoning.ts';

const defaultEfforts = ['low', 'medium', 'high'] as const;

export function encodeReasoning(
  reasoning: ReasoningSettings | undefined,
  context: EncodeContext,
  maxOutputTokens: number | undefined,
  hasTools: boolean,
): JsonObject {
  const { traits, dropped } = context;
  // Such a model reasons by default and then refuses tools: reasoning must be switched off explicitly.
  if (hasTools && traits.reasoning_with_tools === false) {
    const isRequested = reasoning !== undefined && (effortOf(reasoning) ?? 'none') !== 'none';
    if (isRequested) dropped.drop('reasoning');
    return { reasoning_effort: 'none' };
  }
  return reasoning === undefined ? {} : encodeRequested(reasoning, context, maxOutputTokens);
}

function encodeRequested(
  reasoning: ReasoningSettings,
  context: EncodeContext,
  maxOutputTokens: number | undefined,
): JsonObject {
  const { traits, dropped } = context;
  const form = traits.reasoning ?? 'effort';
  const isOff = effortOf(reasoning) === 'none' || reasoning.budgetTokens === 0;
  if (form === 'none') {
    if (!isOff && (reasoning.effort !== undefined || reasoning.budgetTokens !== undefined)) dropped.drop('reasoning');
    return {};
  }
  if (isOff && traits.reasoning_off === false) dropped.drop('reasoning');
  const off = isOff && traits.reasoning_off !== false;
  if (form === 'adaptive') return adaptive(reasoning, context, off);
  if (form === 'budget') return budget(reasoning, context, off, maxOutputTokens);
  return off ? { reasoning_effort: 'none' } : effort(reasoning, context);
}

function effort(reasoning: ReasoningSettings, { traits }: EncodeContext): JsonObject {
  const wanted = effortOf(reasoning);
  if (wanted === undefined) return {};
  return { reasoning_effort: nearestEffort(wanted, traits.efforts ?? defaultEfforts) };
}

/** An effort is sent beside the switch only if the traits declare accepted efforts. */
function adaptive(reasoning: ReasoningSettings, context: EncodeContext, off: boolean): JsonObject {
  if (off) return { thinking: { type: 'disabled' } };
  return { thinking: { type: 'enabled' }, ...(context.traits.efforts === undefined ? {} : effort(reasoning, context)) };
}

function budget(
  reasoning: ReasoningSettings,
  { traits, maxOutputTokens: most }: EncodeContext,
  off: boolean,
  requested: number | undefined,
): JsonObject {
  if (off) return { enable_thinking: false };
  const bound = requested ?? most;
  const tokens = budgetOf(reasoning, {
    ...(bound === undefined ? {} : { maxOutputTokens: bound }),
    ...(traits.max_budget === undefined ? {} : { maxBudget: traits.max_budget }),
  });
  return { enable_thinking: true, ...(tokens === undefined || tokens === 0 ? {} : { thinking_budget: tokens }) };
}
