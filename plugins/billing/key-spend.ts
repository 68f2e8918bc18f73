/** What a key has spent, as the database knows it once all that ended here has reached it; and holds within its cap. */
import { zero } from '../../core/money.ts';
import type { KeyCap } from '../../core/vocabulary.ts';
import type { Books } from './books.ts';
import type { CapShare, Caps, KeySpend } from './caps.ts';
import { boundOf } from './charge.ts';
import type { Desk } from './desk.ts';
import type { Hold, Terms } from './hold.ts';
import type { Store } from './store.ts';

/** Charges since `from` (wall-clock milliseconds) and open orders. Rejects while the database is away. */
export async function keySpend(
  rows: Store,
  { journal, flusher }: Books,
  keyId: string,
  from: number,
): Promise<KeySpend> {
  await journal.turn().promise;
  if (!(await flusher.drain())) throw new Error('the ledger cannot be written');
  return rows.spentBy(keyId, from);
}

/** A hold within its key's cap: at once where the key is known. 402 when it does not fit. */
export function holdWithin(caps: Caps, cap: KeyCap, terms: Terms, desk: Desk): Hold | Promise<Hold> {
  const share = caps.enter(terms.keyId, cap, boundOf(terms, terms.outputTokens));
  return share instanceof Promise ? share.then((later) => holdBy(later, terms, desk)) : holdBy(share, terms, desk);
}

function holdBy(share: CapShare, terms: Terms, desk: Desk): Hold | Promise<Hold> {
  const giveBack = (error: unknown): never => {
    share.end(zero, terms.at);
    throw error;
  };
  try {
    const hold = desk.hold({ ...terms, cap: share });
    return hold instanceof Promise ? hold.catch(giveBack) : hold;
  } catch (error) {
    return giveBack(error);
  }
}
