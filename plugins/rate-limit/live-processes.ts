/** Counts the processes that share the limits: each sends a heartbeat every few seconds. */
import type { Host } from '../../core/contract/contract.ts';
import type { Counters } from '../common/domain/counters.ts';
import { heartbeatScript } from './script.ts';

const heartbeatTtlMs = 10_000;

export class LiveProcesses {
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

  /** The last count; at least this process. */
  get processes(): number {
    return this.#processes;
  }

  /** Records this process. On an error of the counters the last count stays. */
  async heartbeat(): Promise<void> {
    try {
      const seen = await this.#counters.run(heartbeatScript, [this.#key], [this.#name, heartbeatTtlMs]);
      this.#processes = Math.max(1, Number(seen));
    } catch {
      // The limiter's circuit breaker logs the failure.
    }
  }
}
