/** Numbers and encodes the events of one stream, and keeps the items that were sent. Pure. */

/** One stream's events in order. `members` are JSON members without braces; a frame ends with a blank line. */
export class Frames {
  #next = 0;

  /** The next event's number. */
  get next(): number {
    return this.#next;
  }

  frame(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}",${members},"sequence_number":${this.#next++}}\n\n`;
  }

  /** A delta's frame before its text: built once for each part, as deltas are most of a stream. */
  deltaHead(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}",${members},"delta":`;
  }

  delta(head: string, text: string): string {
    return head + JSON.stringify(text) + `,"sequence_number":${this.#next++}}\n\n`;
  }

  /** Texts carry the list of their tokens' log probabilities, empty or not: SDKs read it. */
  textDelta(head: string, text: string, logprobs: string): string {
    return head + JSON.stringify(text) + `,"logprobs":${logprobs},"sequence_number":${this.#next++}}\n\n`;
  }
}

/** The answer's items as JSON texts, by `output_index`; the final list omits items that have not ended. */
export class Output {
  readonly #items: string[] = [];

  /** Reserves the index of a new item. */
  take(): number {
    return this.#items.push('') - 1;
  }

  set(index: number, item: string): void {
    this.#items[index] = item;
  }

  get json(): string {
    return `[${this.#items.filter((item) => item !== '').join(',')}]`;
  }
}
