/** Numbers and words the events of one stream, and keeps the items that are told so far. Pure. */

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

  /** All of a delta's frame before its text: made once for each part, as deltas are most of a stream. */
  deltaHead(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}",${members},"delta":`;
  }

  delta(head: string, text: string): string {
    return head + JSON.stringify(text) + `,"sequence_number":${this.#next++}}\n\n`;
  }

  /** Texts carry the list of their tokens' probabilities, empty or not: SDKs read it. */
  textDelta(head: string, text: string, logprobs: string): string {
    return head + JSON.stringify(text) + `,"logprobs":${logprobs},"sequence_number":${this.#next++}}\n\n`;
  }
}

/** The answer's items as JSON texts, by `output_index`; items that have not ended are left out of the end's list. */
export class Output {
  readonly #items: string[] = [];

  /** The place of a new item. */
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
