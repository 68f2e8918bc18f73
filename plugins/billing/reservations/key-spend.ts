/** A key's spending in the database, including everything that ended here; and holds within its cap. */

import type { KeyCap } from '../../common/domain/accounts.ts';
import { zero } from '../../common/domain/money.ts';
import type { Journal } from '../journal/journal.ts';
import type { Flusher } from '../ledger/flusher.ts';
import type { KeySpend, LedgerStore } from '../ledger/store.ts';
import type { CapShare, Caps } from './caps.ts';
import { firstHold } from './charge.ts';
import type { Hold } from './hold.ts';
import type { Reservations } from './reservations.ts';
import type { Terms } from './terms.ts';

/** Charges since `from` (wall-clock milliseconds) and open authorizations. Rejects while the database is away. */
export async function keySpend(
  rows: LedgerStore,
  { journal, flusher }: { readonly journal: Journal; readonly flusher: Flusher },
  keyId: string,
  from: number,
): Promise<KeySpend> {
  await journal.turn().promise;
  if (!(await flusher.drain())) throw new Error('the ledger cannot be written');
  return rows.spentBy(keyId, from);
}

/** A hold within its key's cap: at once for a known key. 402 when it does not fit. */
export function holdWithin(caps: Caps, cap: KeyCap, terms: Terms, reservations: Reservations): Hold | Promise<Hold> {
  const share = caps.enter(terms.keyId, cap, firstHold(terms));
  return share instanceof Promise
    ? share.then((later) => holdBy(later, terms, reservations))
    : holdBy(share, terms, reservations);
}

function holdBy(share: CapShare, terms: Terms, reservations: Reservations): Hold | Promise<Hold> {
  const releaseShare = (error: unknown): never => {
    share.end(zero, terms.at);
    throw error;
  };
  try {
    const hold = reservations.create({ ...terms, cap: share });
    return hold instanceof Promise ? hold.catch(releaseShare) : hold;
  } catch (error) {
    return releaseShare(error);
  }
}
