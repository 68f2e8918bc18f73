/** Words the turns of a Prompt as system prompt and messages, in the order and form that upstreams insist on. Pure. */
import type { ReasoningPart, Turn } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { mergedTurns, pairedTurns, withoutEmpty } from '../../wording/history.ts';
import { type BlockContext, encodePart, ownValue, resultMedia } from './encode-blocks.ts';

/** Stands where the protocol wants a turn and nobody said anything. */
const placeholder = { type: 'text', text: '.' };
const goOn = { role: 'user', content: [{ type: 'text', text: 'Continue.' }] };

export interface Messages {
  readonly system: JsonObject[];
  readonly messages: { readonly role: Turn['role']; readonly content: readonly JsonObject[] }[];
}

/** Throws what `Losses.refuse` throws. `mayPrefill`: the upstream goes on with an answer that the client has begun. */
export function encodeTurns(turns: readonly Turn[], context: BlockContext, mayPrefill: boolean): Messages {
  const { leading, rest } = splitLeading(turns);
  const placed = (context.target.traits.system_anywhere ?? true) ? rest : rest.map(asUserTurn);
  const ordered = mergedTurns(pairedTurns(mergedTurns(withoutEmpty(placed, { blanks: true }))));
  const given = givenReasoning(ordered, context.target.maker);
  const messages = ordered.map((turn) => encodeTurn(turn, given, context));
  const system = withoutEmpty(leading, { blanks: true }).flatMap((turn) => encodeTurn(turn, given, context).content);
  return { system, messages: framed(messages, mayPrefill) };
}

function splitLeading(turns: readonly Turn[]): { leading: readonly Turn[]; rest: readonly Turn[] } {
  const first = turns.findIndex((turn) => turn.role !== 'system');
  return first === -1 ? { leading: turns, rest: [] } : { leading: turns.slice(0, first), rest: turns.slice(first) };
}

/** A system message for upstreams that take none between other messages: user text that says what it is. */
function asUserTurn(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const parts = turn.parts.map((part) =>
    part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part,
  );
  return { role: 'user', parts };
}

/**
 * The reasoning that is given back. Signatures build on one another: where one cannot be given back, none before it may be
 * either, so what is left out is always the beginning of the history's reasoning.
 */
function givenReasoning(turns: readonly Turn[], maker: string): ReadonlySet<ReasoningPart> {
  const all = turns.flatMap((turn) => turn.parts.filter((part) => part.kind === 'reasoning'));
  const lastForeign = all.findLastIndex((part) => ownValue(part.keepsake, maker) === undefined);
  return new Set(all.slice(lastForeign + 1));
}

function encodeTurn(
  turn: Turn,
  given: ReadonlySet<ReasoningPart>,
  context: BlockContext,
): Messages['messages'][number] {
  const { losses, maker } = context.target;
  if (turn.phase !== undefined) losses.drop('phase');
  const content = turn.parts.flatMap((part) => {
    if (part.kind !== 'reasoning') return encodePart(part, context);
    const value = given.has(part) ? ownValue(part.keepsake, maker) : undefined;
    if (value === undefined) return [];
    if (part.redacted) return [{ type: 'redacted_thinking', data: value }];
    return [{ type: 'thinking', thinking: part.text, signature: value }];
  });
  content.push(...turn.parts.flatMap((part) => resultMedia(part, context)));
  if (turn.name !== undefined) nameSpeaker(content, turn, context.target);
  return { role: turn.role, content: content.length === 0 ? [placeholder] : content };
}

/** Participants have no names here: a user's stands in front of what it says. */
function nameSpeaker(content: JsonObject[], turn: Turn, { losses }: EncodeContext): void {
  const at = content.findIndex((block) => block['type'] === 'text');
  if (turn.role !== 'user' || at === -1) losses.drop('names');
  else content[at] = { ...content[at], text: `${turn.name}: ${content[at]?.['text']}` };
}

/** The first turn is the user's, and so is the last, unless the upstream may be given the beginning of its answer. */
function framed(messages: Messages['messages'], mayPrefill: boolean): Messages['messages'] {
  const first = messages.find((message) => message.role !== 'system');
  const framedMessages =
    first?.role === 'user' ? messages : [{ role: 'user' as const, content: [placeholder] }, ...messages];
  const last = framedMessages.at(-1);
  if (last?.role !== 'assistant') return framedMessages;
  if (!mayPrefill) return [...framedMessages, goOn as Messages['messages'][number]];
  return [...framedMessages.slice(0, -1), trimmed(last)];
}

/** White space at the end of a beginning is refused. */
function trimmed(message: Messages['messages'][number]): Messages['messages'][number] {
  const last = message.content.at(-1);
  if (last?.['type'] !== 'text') return message;
  const text = String(last['text']).trimEnd();
  return { ...message, content: [...message.content.slice(0, -1), { ...last, text }] };
}
