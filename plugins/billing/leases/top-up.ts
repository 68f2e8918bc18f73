/** Lease top-up: gives balances more money, from the whole balance or from shares that processes lease. */
import type { Money } from '../../common/domain/money.ts';
import type { Balance } from '../ledger/balance.ts';
import type { Flusher } from '../ledger/flusher.ts';

/** How often a waiting call has asked, and since which monotonic time it waits. */
export interface WaitState {
  readonly tries: number;
  readonly since: number;
}

export interface LeaseTopUp {
  /**
   * A call needs `amount`, which the balance balance lacks. True: check again; false: it is not available. 503 when
   * this is unknown.
   */
  request(balance: Balance, amount: Money, patience: WaitState): Promise<boolean>;
  /** The balance runs low: acquires more in the background. */
  topUp(balance: Balance): void;
  /** A running answer will need `amount` soon. */
  prepare(balance: Balance, amount: Money): void;
}

/** One process spends all balances: there is nothing to lease, but a credit may have just arrived. */
export function wholeBalanceTopUp(flusher: Flusher): LeaseTopUp {
  return {
    request: async (balance, _amount, { tries }) => tries === 0 && flusher.freshen(balance),
    topUp: () => {},
    prepare: () => {},
  };
}
