/** The body of an answer, which is whole or pulled in chunks: read to its end, or copied as it passes. */
import type { Answer, AnswerBody } from '../../../core/contract/message.ts';

export function isWhole(body: Answer['body']): body is Uint8Array | string {
  return typeof body === 'string' || body instanceof Uint8Array;
}

export function asBytes(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

/** Reads no further than `maxBytes` and a chunk. */
export async function wholeBody(body: Answer['body'], maxBytes: number): Promise<Uint8Array> {
  if (isWhole(body)) return asBytes(body);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks);
}

/** The bytes of a body that have passed. */
export class BodyCopy {
  readonly #maxBytes: number;
  readonly #takes: ((bytes: number) => boolean) | undefined;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;

  /** `takes`: whether there is room for so many more; without it there is. */
  constructor(maxBytes: number, takes?: (bytes: number) => boolean) {
    this.#maxBytes = maxBytes;
    this.#takes = takes;
  }

  /** Returns the body to send in its place. */
  of(body: AnswerBody): AnswerBody {
    if (!isWhole(body)) return new Copying(body[Symbol.asyncIterator](), this);
    this.add(asBytes(body));
    this.end();
    return body;
  }

  add(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBytes && this.#takes?.(chunk.length) !== false) {
      this.#chunks.push(chunk);
      return;
    }
    this.#chunks = [];
    this.#bytes = Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.#ended = true;
  }

  /** Undefined: it has not ended, or is larger than the limit. */
  whole(): Uint8Array | undefined {
    return this.#ended && this.#bytes <= this.#maxBytes ? Buffer.concat(this.#chunks) : undefined;
  }
}

class Copying implements AsyncIterableIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #copy: BodyCopy;

  constructor(source: AsyncIterator<Uint8Array>, copy: BodyCopy) {
    this.#source = source;
    this.#copy = copy;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const step = await this.#source.next();
    if (step.done === true) this.#copy.end();
    else this.#copy.add(step.value);
    return step;
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}
