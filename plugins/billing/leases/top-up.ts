/** Lease top-up: gives cached balances more money, from the whole balance or from shares that processes lease. */
import type { Money } from '../../common/domain/money.ts';
import type { CachedBalance } from '../ledger/cached-balance.ts';
import type { Flusher } from '../ledger/flusher.ts';

/** How often a waiting call has asked, and since which monotonic time it waits. */
export interface WaitState {
  readonly tries: number;
  readonly since: number;
}

export interface LeaseTopUp {
  /**
   * A call needs `amount`, which the cached balance lacks. True: check again; false: it is not available. 503 when
   * this is unknown.
   */
  request(cached: CachedBalance, amount: Money, patience: WaitState): Promise<boolean>;
  /** The balance runs low: acquires more in the background. */
  topUp(cached: CachedBalance): void;
  /** A running answer will need `amount` soon. */
  prepare(cached: CachedBalance, amount: Money): void;
}

/** One process spends all balances: there is nothing to lease, but a credit may have just arrived. */
export function wholeBalanceTopUp(flusher: Flusher): LeaseTopUp {
  return {
    request: async (cached, _amount, { tries }) => tries === 0 && flusher.freshen(cached),
    topUp: () => {},
    prepare: () => {},
  };
}
