/** Restores the order in which the model wrote the parts of an assistant message. Pure. */
import type { MediaPart, Part, ToolCallPart } from '../../../../common/canonical/prompt.ts';
import type { PlacedReasoning } from './reasoning.ts';

/** The parts of one message, by the member that holds them. */
export interface MessageParts {
  readonly reasoning: readonly PlacedReasoning[];
  readonly content: readonly Part[];
  readonly images: readonly MediaPart[];
  readonly calls: readonly ToolCallPart[];
}

/**
 * Thoughts are inserted at the position that the client gives, by default in front. Content, images and calls follow in this
 * order.
 */
export function interleaved({ reasoning, content, images, calls }: MessageParts): Part[] {
  const parts: Part[] = [];
  const left = { content: new Queue<Part>(content), images: new Queue<Part>(images), calls: new Queue<Part>(calls) };
  let thoughts = 0;
  let textLength = 0;
  const takeText = (end: number): void => {
    for (let next = left.content.first; next !== undefined && textLength < end; next = left.content.first) {
      const length = next.kind === 'text' ? next.text.length : 0;
      const isSplit = next.kind === 'text' && textLength + length > end;
      if (next.kind === 'text' && isSplit) {
        const { opaqueState: _, citations: _cited, cache: _mark, ...before } = next;
        parts.push({ ...before, text: next.text.slice(0, end - textLength) });
        left.content.replaceFirst({ ...next, text: next.text.slice(end - textLength) });
        textLength = end;
      } else {
        left.content.moveTo(parts, 1);
        textLength += length;
      }
    }
  };
  for (const { part, blocksBefore, place } of reasoning) {
    if (place !== undefined) {
      takeText(place.text);
      left.images.moveTo(parts, place.images - left.images.taken);
      left.calls.moveTo(parts, place.calls - left.calls.taken);
    } else {
      let missing = blocksBefore - (parts.length - thoughts);
      for (const list of [left.content, left.images, left.calls]) missing -= list.moveTo(parts, missing);
    }
    parts.push(part);
    thoughts++;
  }
  for (const list of [left.content, left.images, left.calls]) list.moveTo(parts, Number.POSITIVE_INFINITY);
  return parts;
}

/** Parts that are taken from the front, without moving the others. */
class Queue<T> {
  readonly #parts: T[];
  #taken = 0;

  constructor(parts: readonly T[]) {
    this.#parts = [...parts];
  }

  get first(): T | undefined {
    return this.#parts[this.#taken];
  }

  get taken(): number {
    return this.#taken;
  }

  replaceFirst(part: T): void {
    this.#parts[this.#taken] = part;
  }

  /** Moves up to `count` parts; returns how many. */
  moveTo(target: T[], count: number): number {
    const end = Math.min(this.#parts.length, this.#taken + Math.max(0, count));
    const before = this.#taken;
    while (this.#taken < end) target.push(this.#parts[this.#taken++]!);
    return end - before;
  }
}
