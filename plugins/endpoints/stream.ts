/** A body that is passed on as it comes, while a meter follows it. */
import type { AnswerBody } from '../../core/contract/message.ts';
import type { StreamMeter } from './description.ts';

export class MeteredStream implements AsyncIterableIterator<Uint8Array> {
  readonly #source: Iterator<Uint8Array> | AsyncIterator<Uint8Array>;
  readonly #meter: StreamMeter;
  #hasEnded = false;

  constructor(body: AnswerBody, meter: StreamMeter) {
    if (typeof body === 'string') this.#source = [Buffer.from(body)].values();
    else this.#source = body instanceof Uint8Array ? [body].values() : body[Symbol.asyncIterator]();
    this.#meter = meter;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#hasEnded) return { done: true, value: undefined };
    try {
      for (;;) {
        const step = await this.#source.next();
        if (step.done === true) return this.#last(this.#meter.end());
        const value = this.#meter.feed(step.value);
        if (value !== undefined) return { done: false, value };
      }
    } catch (error) {
      const last = this.#meter.end(error);
      if (last === undefined) throw error;
      await this.#source.return?.();
      return this.#last(last);
    }
  }

  #last(bytes: Uint8Array | undefined): IteratorResult<Uint8Array> {
    this.#hasEnded = true;
    return bytes === undefined ? { done: true, value: undefined } : { done: false, value: bytes };
  }

  /** The client left: the upstream's body is closed too. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}
