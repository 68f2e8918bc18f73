/** Events of an answer that wait for a verdict, and what leaves in their place. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { DepthError } from '../../../core/json/splice.ts';
import type { Event } from '../../common/canonical/reply.ts';
import { changed, jsonPiece, type Piece } from '../pieces.ts';

export type Delta = Extract<Event, { type: `${'text' | 'refusal' | 'reasoning' | 'tool'}-delta` }>;
export type BlockEnd = Extract<Event, { type: `${'text' | 'refusal' | 'reasoning' | 'tool'}-end` }>;

/** An event that waits for its turn; `made`: what takes its place, once that is known. */
export interface Held {
  readonly event: Event;
  made: readonly Event[] | undefined;
}

export function textOf(held: readonly Held[]): string {
  let text = '';
  for (const { event } of held) text += (event as Delta).text;
  return text;
}

/** The end of the last delta that lies before this place: a part of one would be a change. */
export function wholeDeltas(held: readonly Held[], until: number): number {
  let length = 0;
  for (const { event } of held) {
    const next = length + (event as Delta).text.length;
    if (next > until) break;
    length = next;
  }
  return length;
}

/** These deltas leave as they came; how many there are. */
export function settle(held: readonly Held[], until = Number.POSITIVE_INFINITY): number {
  let length = 0;
  let count = 0;
  for (const one of held) {
    length += (one.event as Delta).text.length;
    if (length > until) break;
    one.made ??= [one.event];
    count++;
  }
  return count;
}

/** Log probabilities name the tokens of the text: they are left out. */
export function withText(delta: Delta, text: string): Delta {
  return delta.type === 'text-delta' ? { ...delta, text, logprobs: undefined } : { ...delta, text };
}

/** A vendor's signature is of its own text. */
export function unsigned(event: BlockEnd): BlockEnd {
  return event.type === 'text-end' || event.type === 'reasoning-end' ? { ...event, opaqueState: undefined } : event;
}

/** undefined: the call has no arguments. */
export function inputPiece(held: readonly Held[]): Piece | undefined {
  const last = held.at(-1);
  if (last === undefined) return undefined;
  const text = textOf(held);
  const write = (by: string) => {
    for (const one of held) one.made = [];
    last.made = [withText(last.event as Delta, by)];
  };
  try {
    const piece = jsonPiece(text, 'assistant', write);
    if (piece !== undefined) return piece;
  } catch (error) {
    throw error instanceof DepthError ? tooLarge() : error;
  }
  return {
    texts: [{ role: 'assistant', text }],
    write: (changes) => write(changed(text, changes.get(0) ?? [])),
  };
}

export function tooLarge(): GatewayError {
  return new GatewayError('upstream_failed', 'A text of the answer is too large to be checked.', {
    code: 'answer_too_large',
    shouldRetry: false,
  });
}
