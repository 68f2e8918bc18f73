/** Reads how much a chat client wants a model to reason, and the reasoning that it hands back. Pure. */
import { type Effort, efforts } from '../../../../core/traits.ts';
import type { ReasoningPart, ReasoningWish } from '../../canon.ts';
import { countOf, invalid } from '../../checks.ts';
import type { OpenSeal } from '../../codec.ts';
import { isObject, type JsonObject, listOf, textOf } from '../../json.ts';
import { booleanMember, objectMember, present, textMember } from '../../members.ts';
import { opaqueOf, readableOf } from './keepsakes.ts';

/** The official member first, then those of compatible servers. */
export const reasoningFields = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'include_reasoning',
];

/** undefined: nothing was said of it. Throws invalid_request for an effort that nobody knows. */
export function reasoningWish(json: JsonObject): ReasoningWish | undefined {
  const reasoning = objectMember(json, 'reasoning') ?? {};
  const thinking = objectMember(json, 'thinking') ?? {};
  const effort = effortMember(json, 'reasoning_effort') ?? effortMember(reasoning, 'effort', 'reasoning.effort');
  const budgetTokens =
    countOf(reasoning, 'max_tokens', 0, 'reasoning.max_tokens') ??
    countOf(thinking, 'budget_tokens', 0, 'thinking.budget_tokens') ??
    countOf(json, 'thinking_budget', 0);
  const isOff =
    reasoning['enabled'] === false ||
    thinking['type'] === 'disabled' ||
    booleanMember(json, 'enable_thinking') === false;
  const isOn =
    reasoning['enabled'] === true ||
    textOf(thinking['type']) !== undefined ||
    json['enable_thinking'] === true ||
    json['include_reasoning'] === true;
  const isHidden = reasoning['exclude'] === true || booleanMember(json, 'include_reasoning') === false;
  const told = isOff ? (effort ?? 'none') : effort;
  if (told === undefined && budgetTokens === undefined && !isOn && !isHidden) return undefined;
  return { ...present({ effort: told, budgetTokens: isOff ? undefined : budgetTokens }), visible: !isHidden };
}

function effortMember(json: JsonObject, field: string, name = field): Effort | undefined {
  const effort = textMember(json, field, name);
  if (effort === undefined || (efforts as readonly string[]).includes(effort)) return effort as Effort | undefined;
  throw invalid(`The field "${name}" must be one of ${efforts.join(', ')}.`, name);
}

/**
 * The thoughts of an assistant message. Details that this gateway sealed hold the exact words of each; else the words
 * are there alone.
 */
export function reasoningParts(message: JsonObject, open: OpenSeal): ReasoningPart[] {
  const details = [...listOf(message['reasoning_details']), ...listOf(message['thinking_blocks'])].filter(isObject);
  const parts = details.map((entry) => reasoningPart(entry, open)).filter((part) => part !== undefined);
  if (parts.some(({ text }) => text !== '')) return parts;
  const text = textOf(message['reasoning_content']) ?? textOf(message['reasoning']);
  return text === undefined ? parts : [{ kind: 'reasoning', text }, ...parts];
}

/** undefined: nobody can read it. */
export function reasoningPart(entry: JsonObject, open: OpenSeal): ReasoningPart | undefined {
  const opaque = opaqueOf(entry);
  const keepsake = opaque === undefined ? undefined : open(opaque);
  const text = readableOf(entry);
  if (keepsake === undefined) return text === '' ? undefined : { kind: 'reasoning', text };
  const isRedacted = textOf(entry['signature']) === undefined;
  return { kind: 'reasoning', text, keepsake, ...(isRedacted && text === '' ? { redacted: true } : {}) };
}
