/** The one thread of a simulated world: what happens next, at which virtual time, until nothing is left. */

/** The one that an event belongs to. A process that has died hears of nothing any more. */
export interface Life {
  alive: boolean;
}

interface Happening {
  readonly at: number;
  readonly order: number;
  readonly life: Life | undefined;
  readonly label: number;
  readonly work: () => void;
}

/** Events that run in one turn of the real event loop; between two of them every promise that can go on does. */
const batch = 256;
const systemImmediate = globalThis.setImmediate;

export class Schedule {
  /** Virtual milliseconds since the world began. */
  now = 0;
  /** Operations so far. */
  operations = 0;
  /** Whose code is running; an event of no one's sets it before it calls into a process. */
  current: Life | undefined;
  readonly #heap: Happening[] = [];
  readonly #labels = new Map<string, number>();
  readonly #counts: number[] = [0];
  #orders = 0;
  #low = 0x811c9dc5;
  #high = 0x01000193;

  /** `work` happens after a while, unless its owner has died by then. Equal times keep their order. */
  after(delayMs: number, life: Life | undefined, label: string, work: () => void): void {
    this.#push({ at: this.now + delayMs, order: this.#orders++, life, label: this.#labelOf(label), work });
  }

  /** Adds what happened to the fingerprint of this run. */
  trace(value: number): void {
    this.#low = Math.imul(this.#low ^ value, 0x01000193);
    this.#high = Math.imul(this.#high + value, 0x85ebca6b) ^ (this.#high >>> 13);
  }

  traceText(text: string): void {
    for (let at = 0; at < text.length; at += 1) this.trace(text.charCodeAt(at));
  }

  /** Two runs that did the same have the same fingerprint. */
  get fingerprint(): string {
    return [this.#low, this.#high].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** How often each kind of event has happened. */
  get counts(): Map<string, number> {
    return new Map(Array.from(this.#labels, ([label, number]) => [label, this.#counts[number]!]));
  }

  /** Runs one event after another until `done` says so or nothing is left. Rejects with what an event throws. */
  run(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = 0;
      let ended = false;
      const step = () => {
        left -= 1;
        if (!ended) {
          try {
            ended = done() || !this.#step();
          } catch (error) {
            ended = true;
            reject(error);
          }
        }
        if (left > 0) return;
        if (ended) resolve();
        else refill();
      };
      const refill = () => {
        left = batch;
        for (let count = 0; count < batch; count += 1) systemImmediate(step);
      };
      refill();
    });
  }

  #step(): boolean {
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) {
      if (next.life?.alive === false) continue;
      this.now = next.at;
      this.operations += 1;
      this.current = next.life;
      this.#counts[next.label]! += 1;
      this.trace(next.label);
      this.trace(Math.floor(next.at * 1_000));
      next.work();
      return true;
    }
    return false;
  }

  #labelOf(label: string): number {
    let number = this.#labels.get(label);
    if (number === undefined) {
      number = this.#labels.size + 1;
      this.#labels.set(label, number);
      this.#counts.push(0);
    }
    return number;
  }

  #push(item: Happening): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isEarlier(item, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = item;
  }

  #pop(): Happening | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isEarlier(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isEarlier(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isEarlier(left: Happening, right: Happening): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order);
}

/** Runs `work` after a while; without one at the end of this turn of the event loop. */
type Wait = (delayMs: number | undefined, work: () => void) => void;

/**
 * Gives the timers of the code under test to the schedule while `body` runs: the end of a turn of the event loop is an
 * event like any other, and much may happen before it. Worlds must not run side by side in one process.
 */
export async function withFakeTime<T>(wait: Wait, body: () => Promise<T>): Promise<T> {
  const { setImmediate, setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const clear = (timer: Timer | undefined) => {
    if (timer !== undefined) timer.isOver = true;
  };
  const after = (work: () => void, delayMs = 0) => {
    const timer: Timer = { isOver: false, unref: () => timer };
    wait(delayMs, () => timer.isOver || work());
    return timer;
  };
  const every = (work: () => void, delayMs: number) => {
    const timer: Timer = { isOver: false, unref: () => timer };
    const tick = () => {
      if (timer.isOver) return;
      wait(delayMs, tick);
      work();
    };
    wait(delayMs, tick);
    return timer;
  };
  const fakes = { setTimeout: after, clearTimeout: clear, setInterval: every, clearInterval: clear };
  Object.assign(globalThis, { ...fakes, setImmediate: (work: () => void) => wait(undefined, work) });
  try {
    return await body();
  } finally {
    Object.assign(globalThis, { setImmediate, setTimeout, clearTimeout, setInterval, clearInterval });
  }
}

interface Timer {
  isOver: boolean;
  unref(): Timer;
}
