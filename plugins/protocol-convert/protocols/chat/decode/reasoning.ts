/** Decodes the requested amount of reasoning and the reasoning of earlier answers. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import { hasEffect } from '../../../../common/canonical/dropped-parameters.ts';
import type { ReasoningPart, ReasoningSettings } from '../../../../common/canonical/prompt.ts';
import { type Effort, efforts } from '../../../../common/domain/traits.ts';
import { countOf, invalid } from '../../../request/checks.ts';
import { booleanMember, objectMember, present, textMember } from '../../../request/members.ts';
import { opaqueOf, readableOf } from '../opaque-state.ts';
import { type Position, positionOfId } from '../reply-members.ts';

/** The official member first, then members of compatible servers. */
export const reasoningFields = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'include_reasoning',
];

/** undefined: not requested. Throws invalid_request for an unknown effort. */
export function decodeReasoningSettings(json: JsonObject): ReasoningSettings | undefined {
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
  const effective = isOff ? (effort ?? 'none') : effort;
  if (effective === undefined && budgetTokens === undefined && !isOn && !isHidden) return undefined;
  return { ...present({ effort: effective, budgetTokens: isOff ? undefined : budgetTokens }), visible: !isHidden };
}

function effortMember(json: JsonObject, field: string, name = field): Effort | undefined {
  const effort = textMember(json, field, name);
  if (effort === undefined || (efforts as readonly string[]).includes(effort)) return effort as Effort | undefined;
  throw invalid(`The field "${name}" must be one of ${efforts.join(', ')}.`, name);
}

/** A thought and its position among the other parts of the message. */
export interface PlacedReasoning {
  readonly part: ReasoningPart;
  /** Number of blocks before it; 0 if the client does not give it. */
  readonly blocksBefore: number;
  /** The exact position; absent if the client does not return it. */
  readonly place?: Omit<Position, 'blocks'> | undefined;
}

/**
 * The thoughts of an assistant message. Details that this gateway sealed hold the exact text of each thought and its
 * position; without them only the text is available.
 */
export function reasoningParts(message: JsonObject, field: string, context: DecodeContext): PlacedReasoning[] {
  const details = ['reasoning_details', 'thinking_blocks'].flatMap((member) => {
    const at = `${field}.${member}`;
    const entries = listOf(message[member]).filter(isObject);
    if (entries.length === 0 && hasEffect(message[member])) context.dropped.dropField(at);
    return entries.map((entry) => ({ entry, at }));
  });
  const positioned = details.flatMap(({ entry, at }, ordinal) => {
    const part = reasoningPart(entry, at, context);
    return part === undefined ? [] : [{ part, ...placeOf(entry, ordinal) }];
  });
  if (positioned.some(({ part }) => part.text !== '')) return positioned;
  const text = textOf(message['reasoning_content']) ?? textOf(message['reasoning']);
  return text === undefined ? positioned : [{ part: { kind: 'reasoning', text }, blocksBefore: 0 }, ...positioned];
}

/**
 * Entry indexes count the blocks of the whole message: an index beyond the entry's own ordinal means that other blocks
 * precede it.
 */
function placeOf({ index, id }: JsonObject, ordinal: number): Pick<PlacedReasoning, 'blocksBefore' | 'place'> {
  const blocksBefore = typeof index === 'number' && Number.isSafeInteger(index) ? Math.max(0, index - ordinal) : 0;
  return { blocksBefore, place: positionOfId(textOf(id)) };
}

/** Members of an entry that hold no reasoning. */
const labels = new Set(['type', 'index', 'id', 'format', 'cache_control']);

/** undefined: the entry is empty, or only another maker can read it, which is recorded as the loss of `field`. */
export function reasoningPart(entry: JsonObject, field: string, context: DecodeContext): ReasoningPart | undefined {
  const opaque = opaqueOf(entry);
  const opaqueState = opaque === undefined ? undefined : context.open(opaque);
  const text = readableOf(entry);
  if (opaqueState === undefined) {
    if (text !== '') return { kind: 'reasoning', text };
    if (Object.entries(entry).some(([member, value]) => !labels.has(member) && hasEffect(value)))
      context.dropped.dropField(field);
    return undefined;
  }
  const isRedacted = textOf(entry['signature']) === undefined;
  return { kind: 'reasoning', text, opaqueState, ...(isRedacted && text === '' ? { redacted: true } : {}) };
}
