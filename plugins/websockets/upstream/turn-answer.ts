/** The answer of one turn: the upstream's messages as the server-sent events of an answer over HTTP. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';

/** Waiting bytes above which reading from the upstream pauses. */
const pauseAboveBytes = 256 * 1024;

export interface TurnAnswerOptions {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Stop and continue reading from the upstream. */
  pause(): void;
  resume(): void;
  /** The rest is not wanted any more. */
  abandon(): void;
}

export class TurnAnswer implements AsyncIterableIterator<Uint8Array> {
  readonly #options: TurnAnswerOptions;
  readonly #frames: Buffer[] = [];
  #waitingBytes = 0;
  #hasBegun = false;
  #hasEnded = false;
  #failure: UpstreamError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: TurnAnswerOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  push(type: string, data: string): void {
    if (this.#hasEnded) return;
    const frame = Buffer.from(`event: ${type}\ndata: ${oneLine(data)}\n\n`);
    this.#hasBegun = true;
    this.#frames.push(frame);
    this.#waitingBytes += frame.length;
    if (this.#waitingBytes > pauseAboveBytes) this.#options.pause();
    this.#wake?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  /** Ends the answer by an error, after the frames so far. */
  fail(message: string, options: { timedOut?: boolean; cause?: unknown } = {}): void {
    if (this.#hasEnded) return;
    this.#failure = new UpstreamError(this.#hasBegun ? 'body' : 'sent', message, options);
    this.end();
  }

  /** Resolves when the answer has begun; rejects with an UpstreamError. */
  async begun(): Promise<void> {
    if (this.#frames.length === 0 && !this.#hasEnded) await this.#more(this.#options.firstByteTimeoutMs);
    if (this.#frames.length === 0 && this.#failure !== undefined) throw this.#failure;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#frames.length === 0 && !this.#hasEnded) await this.#more(this.#options.idleTimeoutMs);
    const value = this.#take();
    if (value !== undefined) return { done: false, value };
    if (this.#failure !== undefined) throw this.#failure;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#hasEnded) this.#options.abandon();
    this.end();
    this.#take();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): Buffer | undefined {
    if (this.#frames.length === 0) return undefined;
    const frames = this.#frames.splice(0);
    if (this.#waitingBytes > pauseAboveBytes) this.#options.resume();
    this.#waitingBytes = 0;
    return frames.length === 1 ? frames[0] : Buffer.concat(frames);
  }

  async #more(withinMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.fail('the upstream sends nothing', { timedOut: true });
        this.#options.abandon();
      }, withinMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

/** JSON has line breaks only between tokens, where a space means the same. */
function oneLine(json: string): string {
  return json.includes('\n') || json.includes('\r') ? json.replace(/[\r\n]+/g, ' ') : json;
}
