/** A value that is loaded once for all who wait, kept for a while, and given on when it cannot be loaded again. */
import type { Clock } from '../../core/contract/host-tools.ts';

/** After a failure the earlier value is given for so long before the next try. */
const pauseMs = 5_000;

export class Kept<T> {
  readonly #load: () => Promise<T>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #keepMs: number;
  #value: { readonly value: T } | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #changes = 0;
  #loading: Promise<T> | undefined;

  constructor(load: () => Promise<T>, clock: Pick<Clock, 'monotonic'>, keepMs: number) {
    this.#load = load;
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** Rejects only while nothing was ever loaded; each call then tries again. */
  get(): Promise<T> {
    if (this.#value !== undefined && this.#clock.monotonic() < this.#until) return Promise.resolve(this.#value.value);
    this.#loading ??= this.#renewed().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** The next request loads it again; what is being loaded may be from before the change. */
  expire(): void {
    this.#changes += 1;
    this.#until = Number.NEGATIVE_INFINITY;
  }

  async #renewed(): Promise<T> {
    const changes = this.#changes;
    try {
      const value = await this.#load();
      this.#value = { value };
      if (changes === this.#changes) this.#until = this.#clock.monotonic() + this.#keepMs;
      return value;
    } catch (error) {
      if (this.#value === undefined) throw error;
      this.#until = this.#clock.monotonic() + pauseMs;
      return this.#value.value;
    }
  }
}
