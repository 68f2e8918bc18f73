/** When an account's due grants and expiries are applied: before a call that comes after the last check is over. */

import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { clocksDifferMs } from '../grants/term-rows.ts';
import type { CachedBalance } from '../ledger/cached-balance.ts';
import type { CallPlan } from '../ledger/terms.ts';

/** The pause after a check with something still due, and after a failed one. */
const repeatMs = 1_000;
const retryMs = 5_000;

export interface DueTermsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Applies due grants and expiries to an account; resolves with the time of the next ones. */
  readonly upkeep: (accountId: string, plan: CallPlan | undefined) => Promise<number>;
}

export class DueTerms {
  readonly #options: DueTermsOptions;

  constructor(options: DueTermsOptions) {
    this.#options = options;
  }

  /** Whether nothing is due at `now`. A clock that went back makes the last check worthless. */
  areApplied(cached: CachedBalance, now: number): boolean {
    return now < cached.upkeepAt && now >= cached.upkeepFrom;
  }

  /** Concurrent calls share one run. */
  async apply(cached: CachedBalance, plan: CallPlan | undefined): Promise<void> {
    const now = this.#options.clock.now();
    if (this.areApplied(cached, now)) return;
    if (cached.term === undefined && cached.pool === undefined && plan?.terms.grant === undefined) {
      check(cached, now, Number.POSITIVE_INFINITY);
      return;
    }
    cached.upkeep ??= this.#run(cached, plan).finally(() => {
      cached.upkeep = undefined;
    });
    await cached.upkeep;
  }

  async #run(cached: CachedBalance, plan: CallPlan | undefined): Promise<void> {
    const { upkeep, clock, log } = this.#options;
    const began = clock.now();
    try {
      const next = await upkeep(cached.accountId, plan);
      // Where a period ended during the check, it is due again at once.
      check(cached, began, next > began ? next : clock.now() + repeatMs);
    } catch (error) {
      // The cached balance can be spent all the same.
      check(cached, began, clock.now() + retryMs);
      log.warn({ error, account_id: cached.accountId }, 'due grants of an account could not be applied; retrying');
    }
  }
}

function check(cached: CachedBalance, from: number, until: number): void {
  cached.upkeepFrom = from - clocksDifferMs;
  cached.upkeepAt = until;
}
