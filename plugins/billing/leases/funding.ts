/** Where purses have their money from: the whole balance of each account, or slices that several processes share. */
import type { Money } from '../../../core/money.ts';
import type { Flusher } from '../flusher.ts';
import type { Purse } from '../purses.ts';

/** How often a waiting call has asked, and since which monotonic time it waits. */
export interface Patience {
  readonly tries: number;
  readonly since: number;
}

export interface Funding {
  /** A call needs `amount`, which the purse does not have. true: look again; false: it is not there. 503 when nobody knows. */
  ask(purse: Purse, amount: Money, patience: Patience): Promise<boolean>;
  /** The purse runs low: more is brought beside the calls. */
  topUp(purse: Purse): void;
  /** A running answer will need `amount` soon. */
  prepare(purse: Purse, amount: Money): void;
}

/** One process spends all of every account: there is nothing to bring, but a credit may have come in a moment ago. */
export function wholeBalances(flusher: Flusher): Funding {
  return {
    ask: async (purse, _amount, { tries }) => tries === 0 && flusher.freshen(purse),
    topUp: () => {},
    prepare: () => {},
  };
}
