/** Streams at the pace of tokens: each stream gets a chunk every 20 ms, all of them spread over that time. */
import type { ServerResponse } from 'node:http';

/** One slot of the wheel for each millisecond between two chunks of a stream: 50 chunks a second. */
const slots = 20;
export const chunksPerSecond = 1_000 / slots;

/** How a chunk tells when it was written: microseconds of the machine's monotonic clock, which all processes share. */
export const stampMark = 'at=';
export const stampDigits = 15;

export function stampNow(): string {
  return `${stampMark}${String(process.hrtime.bigint() / 1000n).padStart(stampDigits, '0')}`;
}

interface Paced {
  readonly outgoing: ServerResponse;
  readonly tail: Buffer;
  left: number;
}

export class Pacer {
  readonly #stamped: (stamp: string) => Buffer;
  readonly #wheel: Paced[][] = Array.from({ length: slots }, () => []);
  #added = 0;
  #timer: NodeJS.Timeout | undefined;
  #turn = 0;

  /** `stamped` makes a chunk of the body that holds the stamp. */
  constructor(stamped: (stamp: string) => Buffer) {
    this.#stamped = stamped;
  }

  add(outgoing: ServerResponse, chunks: number, tail: Buffer): void {
    this.#wheel[this.#added++ % slots]!.push({ outgoing, tail, left: chunks });
    this.#timer ??= this.#start();
  }

  /** Turns that came late are made up for: the pace is kept on the whole. */
  #start(): NodeJS.Timeout {
    const startedAt = performance.now() - this.#turn;
    return setInterval(() => {
      while (this.#turn < performance.now() - startedAt) this.#write(this.#turn++ % slots);
    }, 1);
  }

  #write(slot: number): void {
    const streams = this.#wheel[slot]!;
    if (streams.length === 0) return;
    const chunk = this.#stamped(stampNow());
    // Past Node's own wording of chunks, which would cost this process more than the gateway may take.
    const bytes = Buffer.from(`${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`);
    for (const { outgoing } of streams) outgoing.socket?.write(bytes);
    let ended = 0;
    for (const stream of streams) {
      if (--stream.left > 0) continue;
      stream.outgoing.end(stream.tail);
      ended++;
    }
    if (ended > 0) this.#wheel[slot] = streams.filter(({ left }) => left > 0);
  }
}
