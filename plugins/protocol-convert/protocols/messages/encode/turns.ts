/** Encodes the turns of a Prompt as system prompt and messages, in the order and form that upstreams require. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { Part, ReasoningPart, Turn } from '../../../../common/canonical/prompt.ts';
import { mergedTurns, pairedTurns, withoutEmpty } from '../../../../common/encoding/history.ts';
import { isMedia } from '../../../../common/encoding/media.ts';
import { readableTurns } from '../../../../common/encoding/readable-media.ts';
import { type BlockContext, encodePart, ownValue, problemOf, resultMedia } from './blocks.ts';

/** Content of a turn that the protocol requires and the conversation does not have. */
const placeholder = { type: 'text', text: '.' };
const continuation = { role: 'user', content: [{ type: 'text', text: 'Continue.' }] };

export interface Messages {
  readonly system: JsonObject[];
  readonly messages: { readonly role: Turn['role']; readonly content: readonly JsonObject[] }[];
}

/**
 * Throws what `DroppedParameters.refuse` throws. `mayPrefill`: the upstream continues an answer that the client has started.
 */
export function encodeTurns(turns: readonly Turn[], context: BlockContext, mayPrefill: boolean): Messages {
  const { dropped } = context.target;
  const { leading, rest } = splitLeading(readableTurns(turns, (part) => problemOf(part, context.target), dropped));
  const placed = (context.target.traits.system_anywhere ?? true) ? rest : rest.map(asUserTurn);
  const shown = placed.flatMap(withMediaShown);
  const ordered = mergedTurns(pairedTurns(mergedTurns(withoutEmpty(shown, { blanks: true }))));
  const given = givenReasoning(ordered, context.target.maker);
  const messages = ordered.map((turn) => encodeTurn(turn, given, context));
  const system = withoutEmpty(leading, { blanks: true }).flatMap((turn) => encodeTurn(turn, given, context).content);
  return { system, messages: framed(messages, mayPrefill) };
}

function splitLeading(turns: readonly Turn[]): { leading: readonly Turn[]; rest: readonly Turn[] } {
  const first = turns.findIndex((turn) => turn.role !== 'system');
  return first === -1 ? { leading: turns, rest: [] } : { leading: turns.slice(0, first), rest: turns.slice(first) };
}

/** A system message for upstreams that accept none between other messages: user text that is marked as such. */
function asUserTurn(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const parts = turn.parts.map((part) =>
    part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part,
  );
  return { role: 'user', parts };
}

/** Media that the model generated, in a user turn after its own: upstreams accept no media in an assistant turn. */
function withMediaShown(turn: Turn): Turn[] {
  if (turn.role !== 'assistant' || !turn.parts.some(isMedia)) return [turn];
  const shown = turn.parts
    .filter(isMedia)
    .flatMap((part): Part[] => [{ kind: 'text', text: `(${part.kind} of your answer before:)` }, part]);
  return [
    { ...turn, parts: turn.parts.filter((part) => !isMedia(part)) },
    { role: 'user', parts: shown },
  ];
}

/**
 * The reasoning to return. Signatures depend on their predecessors: if one cannot be returned, none before it may be either,
 * so the omitted reasoning is always a prefix of the history's.
 */
function givenReasoning(turns: readonly Turn[], maker: string): ReadonlySet<ReasoningPart> {
  const all = turns.flatMap((turn) => turn.parts.filter((part) => part.kind === 'reasoning'));
  const lastForeign = all.findLastIndex((part) => ownValue(part.opaqueState, maker) === undefined);
  return new Set(all.slice(lastForeign + 1));
}

function encodeTurn(
  turn: Turn,
  given: ReadonlySet<ReasoningPart>,
  context: BlockContext,
): Messages['messages'][number] {
  const { dropped, maker } = context.target;
  if (turn.phase !== undefined) dropped.drop('phase');
  const content = turn.parts.flatMap((part) => {
    if (part.kind !== 'reasoning') return encodePart(part, context);
    const value = given.has(part) ? ownValue(part.opaqueState, maker) : undefined;
    if (value === undefined) return [];
    if (part.redacted) return [{ type: 'redacted_thinking', data: value }];
    return [{ type: 'thinking', thinking: part.text, signature: value }];
  });
  content.push(...turn.parts.flatMap((part) => resultMedia(part, context)));
  if (turn.name !== undefined) nameSpeaker(content, turn, context.target);
  return { role: turn.role, content: content.length === 0 ? [placeholder] : content };
}

/** The protocol has no participant names: a user's name precedes the text. */
function nameSpeaker(content: JsonObject[], turn: Turn, { dropped }: EncodeContext): void {
  const at = content.findIndex((block) => block['type'] === 'text');
  if (turn.role !== 'user' || at === -1) dropped.drop('names');
  else content[at] = { ...content[at], text: `${turn.name}: ${content[at]?.['text']}` };
}

/** The first turn is the user's, and so is the last, unless the upstream accepts the start of its answer. */
function framed(messages: Messages['messages'], mayPrefill: boolean): Messages['messages'] {
  const first = messages.find((message) => message.role !== 'system');
  const framedMessages =
    first?.role === 'user' ? messages : [{ role: 'user' as const, content: [placeholder] }, ...messages];
  const last = framedMessages.at(-1);
  if (last?.role !== 'assistant') return framedMessages;
  if (!mayPrefill) return [...framedMessages, continuation as Messages['messages'][number]];
  return [...framedMessages.slice(0, -1), trimmed(last)];
}

/** Upstreams refuse trailing white space in a prefill. */
function trimmed(message: Messages['messages'][number]): Messages['messages'][number] {
  const last = message.content.at(-1);
  if (last?.['type'] !== 'text') return message;
  const text = String(last['text']).trimEnd();
  return { ...message, content: [...message.content.slice(0, -1), { ...last, text }] };
}
