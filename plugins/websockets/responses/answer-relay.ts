/** One answer of a turn on its way to the client: frames of the HTTP stream become messages. */
import { FrameReader, parseFrame } from '../../common/kit/sse.ts';
import { type Ending, endingOf, naming } from './events.ts';

const terminal = new Set(['response.completed', 'response.incomplete', 'response.failed']);

export class AnswerRelay {
  /** The answer that may be continued; undefined: none. */
  ending: Ending | undefined;
  /** The protocol's own end was sent. */
  hasEnded = false;
  /** Data of an `error` event: sent only if no failed response with the same error follows. */
  error: string | undefined;
  #waiting: Promise<void> | undefined;
  readonly #reader = new FrameReader((raw) => this.#pass(raw));
  readonly #previousId: string | undefined;
  readonly #send: (message: string) => Promise<void> | undefined;

  /** `previousId`: the response that was continued here. `send` returns a promise while the client is slow. */
  constructor(previousId: string | undefined, send: (message: string) => Promise<void> | undefined) {
    this.#previousId = previousId;
    this.#send = send;
  }

  /** Passes on what this chunk completes; a promise: the next chunk must wait for the client. */
  feed(chunk: Uint8Array): Promise<void> | undefined {
    this.#waiting = undefined;
    this.#reader.feed(chunk);
    return this.#waiting;
  }

  #pass(raw: Buffer): void {
    const frame = parseFrame(raw);
    if (frame === undefined || frame.data === '' || frame.data === '[DONE]') return;
    const { event = '', data } = frame;
    if (event === 'error') {
      this.error = data;
      return;
    }
    if (event === 'response.completed' || event === 'response.incomplete') this.ending = endingOf(data);
    this.hasEnded ||= terminal.has(event);
    this.#waiting = this.#send(this.#previousId === undefined ? data : naming(data, this.#previousId)) ?? this.#waiting;
  }
}
