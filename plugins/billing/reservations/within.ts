/** Holds within scopes: the money and a share of each scope are held together, or neither is. */

import { zero } from '../../common/domain/money.ts';
import type { Scope } from '../budgets/scope.ts';
import type { ScopeShare, Tallies } from '../budgets/tallies.ts';
import { firstHold } from './charge.ts';
import type { Hold } from './hold.ts';
import type { Reservations } from './reservations.ts';
import type { Terms } from './terms.ts';

/** At once where all scopes are known. 402 when one of them does not cover the call. */
export function holdWithin(
  tallies: Tallies,
  scopes: readonly Scope[],
  terms: Terms,
  reservations: Reservations,
): Hold | Promise<Hold> {
  const share = tallies.enter(scopes, firstHold(terms));
  return share instanceof Promise
    ? share.then((later) => holdBy(later, terms, reservations))
    : holdBy(share, terms, reservations);
}

function holdBy(share: ScopeShare, terms: Terms, reservations: Reservations): Hold | Promise<Hold> {
  const releaseShare = (error: unknown): never => {
    share.end(zero, terms.at, terms.model);
    throw error;
  };
  try {
    const hold = reservations.create({ ...terms, cap: share });
    return hold instanceof Promise ? hold.catch(releaseShare) : hold;
  } catch (error) {
    return releaseShare(error);
  }
}
