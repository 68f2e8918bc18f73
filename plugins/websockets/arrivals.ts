/** Bytes of a connection before they are a message: counts their memory, limits control frames, and finds stalled messages. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { WebSocketsConfig } from './config.ts';
import { FrameMeter } from './frames.ts';

const minuteMs = 60_000;

export type ArrivalLimits = Pick<WebSocketsConfig, 'control_frames' | 'stall' | 'arrival'>;

export class Arrivals {
  readonly #meter = new FrameMeter();
  readonly #keep: (bytes: number) => GatewayError | undefined;
  readonly #now: () => number;
  #keptBytes = 0;
  /** Monotonic milliseconds of the last bytes, and of the first ones of the message that has not ended. */
  lastAt: number;
  #beganAt = 0;
  #pausedAt: number | undefined;
  #minuteBeganAt: number;
  #controlsBefore = 0;

  /** `keep` takes memory, or gives it back where negative. */
  constructor(keep: (bytes: number) => GatewayError | undefined, now: () => number) {
    this.#keep = keep;
    this.#now = now;
    this.lastAt = now();
    this.#minuteBeganAt = this.lastAt;
  }

  /** Why the connection cannot go on. */
  read(chunk: Uint8Array, { control_frames: most }: ArrivalLimits): GatewayError | undefined {
    const now = this.#now();
    this.lastAt = now;
    if (now - this.#minuteBeganAt >= minuteMs) {
      this.#minuteBeganAt = now;
      this.#controlsBefore = this.#meter.controlFrames;
    }
    this.#meter.read(chunk);
    const { unfinishedBytes, controlFrames } = this.#meter;
    const refusal = this.#keep(unfinishedBytes - this.#keptBytes);
    if (refusal !== undefined) return refusal;
    if (this.#keptBytes === 0 || unfinishedBytes < this.#keptBytes) this.#beganAt = now;
    this.#keptBytes = unfinishedBytes;
    return controlFrames - this.#controlsBefore > most ? tooManyControlFrames() : undefined;
  }

  /** The client is not read: time does not count against its message. */
  pause(): void {
    this.#pausedAt ??= this.#now();
  }

  resume(): void {
    if (this.#pausedAt === undefined) return;
    const now = this.#now();
    this.#beganAt += now - this.#pausedAt;
    this.lastAt = now;
    this.#pausedAt = undefined;
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** A message has begun, and it does not come on or takes too long. */
  isStalled({ stall, arrival }: ArrivalLimits): boolean {
    if (this.#keptBytes === 0 || this.isPaused) return false;
    const now = this.#now();
    return now - this.lastAt > stall || now - this.#beganAt > arrival;
  }

  /** The connection has ended. */
  release(): void {
    this.#keep(-this.#keptBytes);
    this.#keptBytes = 0;
  }
}

const tooManyControlFrames = () =>
  new GatewayError('rate_limited', 'Too many pings and pongs have come on this connection.', {
    code: 'control_frames',
  });
