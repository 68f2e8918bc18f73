/** How many processes share the limits: each says every few seconds that it is there. */
import type { Host } from '../../core/contract.ts';
import type { Counters } from '../../core/vocabulary.ts';
import { presenceScript } from './script.ts';

const wordHoldsMs = 10_000;

export class Presence {
  static readonly intervalMs = 2_500;
  readonly #counters: Counters;
  readonly #key: string;
  readonly #name: string;
  #processes = 1;

  constructor(counters: Counters, host: Host) {
    this.#counters = counters;
    this.#key = `${host.schema}:limits:processes`;
    this.#name = host.random.bytes(12).toString('base64url');
  }

  /** As many as were seen last; at least this one. */
  get processes(): number {
    return this.#processes;
  }

  /** Says that this process is there. While the counters are away, what was seen last holds. */
  async tell(): Promise<void> {
    try {
      const seen = await this.#counters.run(presenceScript, [this.#key], [this.#name, wordHoldsMs]);
      this.#processes = Math.max(1, Number(seen));
    } catch {
      // The limiter's breaker tells of it.
    }
  }
}
