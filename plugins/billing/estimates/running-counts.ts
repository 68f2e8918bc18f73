/** Running sums of what a target's calls were estimated at and what they were counted at. */
import type { Usage } from '../../common/domain/usage.ts';

/** Calls that a ratio needs at least. */
const fewest = 3;
/** After so many the sums are halved, so that newer calls count more. */
const most = 64;
/** Powers of two of a prompt's size. */
const sizes = 22;

/** Estimated and counted tokens of prompts by size, since what vendors add weighs more in small ones. */
export class SizeCounts {
  readonly #calls = new Array<number>(sizes).fill(0);
  readonly #requested = new Array<number>(sizes).fill(0);
  readonly #counted = new Array<number>(sizes).fill(0);

  add(requested: number, counted: number): void {
    const size = sizeOf(requested);
    if (this.#calls[size]! >= most) this.#halve(size);
    this.#calls[size]!++;
    this.#requested[size]! += requested;
    this.#counted[size]! += counted;
  }

  /** Counted tokens for each of the estimate; undefined: too few calls of such a size. */
  ratio(requested: number): number | undefined {
    const size = sizeOf(requested);
    return this.#calls[size]! < fewest ? undefined : this.#counted[size]! / this.#requested[size]!;
  }

  #halve(size: number): void {
    for (const sums of [this.#calls, this.#requested, this.#counted]) sums[size] = sums[size]! >>> 1;
  }
}

const sizeOf = (tokens: number): number => Math.min(sizes - 1, 31 - Math.clz32(Math.max(1, Math.min(tokens, 2 ** 30))));

/** Tokens and bytes of answers' texts. */
export class AnswerCounts {
  #bytes = 0;
  #tokens = 0;

  /** Reasoning counts where its text has passed: no text has more than a token in two bytes. */
  add({ output = 0, reasoning = 0 }: Usage, bytes: number): void {
    const tokens = 2 * (output + reasoning) <= bytes ? output + reasoning : output;
    if (tokens === 0 || bytes < tokens) return;
    this.#bytes += bytes;
    this.#tokens += tokens;
    if (this.#bytes < halvedBytes) return;
    // Whole numbers, which take no memory of their own.
    this.#bytes >>>= 1;
    this.#tokens >>>= 1;
  }

  get tokensPerByte(): number | undefined {
    return this.#bytes === 0 ? undefined : this.#tokens / this.#bytes;
  }
}

const halvedBytes = 256 * 1024;
