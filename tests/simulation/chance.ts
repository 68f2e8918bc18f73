/** Seeded chance: every draw of a simulated world comes from one of these, so that a seed is all there is. */
import type { Random } from '../../core/contract/host-tools.ts';

/** The generator `sfc32`: small, fast, and of a period that no run comes near. */
export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream = 0) {
    this.#a = seed >>> 0;
    this.#b = Math.imul(seed, 0x9e3779b1) >>> 0;
    this.#c = (stream ^ 0x85ebca6b) >>> 0;
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** 32 random bits. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + sum) | 0;
    return sum >>> 0;
  }

  /** Uniform in [0, 1). */
  fraction(): number {
    return this.next() / 2 ** 32;
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor((this.next() / 2 ** 32) * bound);
  }

  between(lowest: number, highest: number): number {
    return lowest + this.below(highest - lowest + 1);
  }

  /** true once in `often` draws, on the average. */
  oneIn(often: number): boolean {
    return this.next() < 2 ** 32 / often;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  /** The index of one of these weights, drawn by its share. */
  weighted(weights: readonly number[]): number {
    let sum = 0;
    for (const weight of weights) sum += weight;
    let left = this.fraction() * sum;
    for (let index = 0; index < weights.length; index += 1) {
      left -= weights[index]!;
      if (left < 0) return index;
    }
    return weights.length - 1;
  }

  /** A waiting time in milliseconds: mostly short, now and then several times the mean. */
  delay(meanMs: number): number {
    return -Math.log(1 - this.fraction()) * meanMs;
  }

  /** What the gateway's own plugins draw from. */
  random(): Random {
    return {
      fraction: () => this.fraction(),
      bytes: (count) => {
        const bytes = Buffer.alloc(count);
        for (let at = 0; at < count; at += 1) bytes[at] = this.next() >>> 24;
        return bytes;
      },
    };
  }
}
