/** Notices the end of a chunked answer, wherever its packets are cut. */

const mark = Buffer.from('\r\n0\r\n\r\n');

export class AnswerEnd {
  /** The last bytes so far, at most as many as the mark has. */
  #last: Buffer = Buffer.alloc(0);

  /** Whether the answer ends with these bytes. */
  isAt(data: Buffer): boolean {
    const seen = data.length < mark.length ? Buffer.concat([this.#last, data]) : data;
    this.#last = seen.subarray(-mark.length);
    return this.#last.equals(mark);
  }
}
