/** Faults that are put in at the seams, each a bug that somebody could write, to show that the oracle would find it. */
import type { Run } from '../../core/chain.ts';
import type { LiveExchange } from '../../core/exchange.ts';
import type { Files } from '../../plugins/billing/segments.ts';
import type { Store } from '../../plugins/billing/store.ts';
import type { Chance } from './chance.ts';

export interface Mutant {
  /** What the bug would be. */
  readonly summary: string;
  readonly files?: (files: Files, chance: Chance) => Files;
  /** The database itself. */
  readonly store?: (store: Store, chance: Chance) => Store;
  /** A process's way to the database. */
  readonly link?: (store: Store, chance: Chance) => Store;
  readonly exchange?: (exchange: LiveExchange, chance: Chance) => LiveExchange;
  readonly forward?: Run;
}

/** The gateway as it is. */
export const sound: Mutant = { summary: 'no fault' };
