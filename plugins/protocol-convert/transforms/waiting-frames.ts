/** Frames of a vendor that wait until the transforms have returned all their events, in their order. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { Event } from '../../common/canonical/reply.ts';

/** A frame of the vendor that is not sent yet. */
export interface Waiting {
  readonly bytes: Uint8Array | undefined;
  /** The bytes of frames that are joined to it. */
  more?: Uint8Array[];
  json: JsonObject | undefined;
  readonly events: Event[];
  /** How many of its events the transforms have returned; -1: more frames may be joined to it. */
  returned: number;
}

export class WaitingFrames {
  #all: Waiting[] = [];
  #bytes = 0;

  get all(): readonly Waiting[] {
    return this.#all;
  }

  /** How many bytes wait. */
  get bytes(): number {
    return this.#bytes;
  }

  get last(): Waiting | undefined {
    return this.#all.at(-1);
  }

  push(frame: Waiting): void {
    this.#all.push(frame);
    this.#bytes += frame.bytes?.length ?? 0;
  }

  /** A frame of which more may come, or one more of it. */
  join(bytes: Uint8Array | undefined, isFirst: boolean): void {
    if (isFirst) this.push({ bytes, json: undefined, events: [], returned: -1 });
    else if (bytes !== undefined) {
      const group = this.#all.at(-1)!;
      group.more ??= [];
      group.more.push(bytes);
      this.#bytes += bytes.length;
    }
  }

  /** The first frames of which all events were returned; without `withLast` not the newest one, which may have more events. */
  ready(withLast: boolean, waits: (frame: Waiting) => boolean): readonly Waiting[] {
    const all = this.#all;
    let count = 0;
    while (count < all.length && isReturned(all[count]!)) count++;
    if (count === all.length && !withLast) count--;
    while (count > 0 && waits(all[count - 1]!)) count--;
    return count <= 0 ? none : this.#left(all.splice(0, count));
  }

  /** All of them. */
  take(): readonly Waiting[] {
    const all = this.#all;
    this.#all = [];
    this.#bytes = 0;
    return all;
  }

  get isReturned(): boolean {
    return this.#all.every(isReturned);
  }

  #left(frames: readonly Waiting[]): readonly Waiting[] {
    for (const { bytes, more } of frames) {
      this.#bytes -= bytes?.length ?? 0;
      if (more !== undefined) for (const one of more) this.#bytes -= one.length;
    }
    return frames;
  }
}

const none: readonly Waiting[] = [];
const isReturned = ({ returned, events }: Waiting): boolean => returned === events.length;
