/** When an account's due grants and expiries are applied: before a call that comes after the last check is over. */

import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { Balance } from '../ledger/balance.ts';
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

  /** Concurrent calls share one run. */
  async apply(balance: Balance, plan: CallPlan | undefined): Promise<void> {
    const now = this.#options.clock.now();
    if (balance.isChecked(now)) return;
    if (balance.isPlain && plan?.terms.grant === undefined) balance.checked(now, Number.POSITIVE_INFINITY);
    else await balance.check(() => this.#run(balance, plan));
  }

  async #run(balance: Balance, plan: CallPlan | undefined): Promise<void> {
    const { upkeep, clock, log } = this.#options;
    const began = clock.now();
    try {
      const next = await upkeep(balance.accountId, plan);
      // Where a period ended during the check, it is due again at once.
      balance.checked(began, next > began ? next : clock.now() + repeatMs);
    } catch (error) {
      // The balance in memory can be spent all the same.
      balance.checked(began, clock.now() + retryMs);
      log.warn({ error, account_id: balance.accountId }, 'due grants of an account could not be applied; retrying');
    }
  }
}
