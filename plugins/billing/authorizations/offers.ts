/** The authorization that an exchange may place for its order, and the amount that a call of any kind would hold. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { caller } from '../../common/domain/accounts.ts';
import { vendorBatch } from '../../common/domain/calls.ts';
import { type Authorization, heldEstimate } from '../../common/domain/ledger.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import { maxCount } from '../../common/domain/usage.ts';
import { admitted } from '../../common/wire/admission-rules.ts';
import type { ScopeServices } from '../budgets/own.ts';
import type { Scope } from '../budgets/scope.ts';
import { type HoldRules, otherTerms, termsOf } from '../reservations/call-terms.ts';
import { firstHold } from '../reservations/charge.ts';
import { withReservations } from './admitted.ts';
import type { AuthorizationStore } from './authorizations.ts';

/** Deferred work is held in full. */
const fullOrder: HoldRules = { stepTokens: maxCount, nonStreaming: 'estimate' };

/** The authorization of deferred work, within its scopes. */
export function authorizationOf(
  exchange: Exchange,
  authorizationStore: AuthorizationStore,
  { tallies, book, own }: ScopeServices,
  at: number,
): Authorization {
  const terms = termsOf(exchange, fullOrder, at);
  const identity = exchange.get(caller);
  const offer = authorizationStore.offer(terms);
  const reserved = exchange.find(admitted);
  const kept = reserved === undefined ? offer : withReservations(offer, reserved);
  if (identity.cap === undefined && book.isEmpty) return kept;
  const scopes = async () => {
    await own.ready(identity.accountId);
    return book.scopesOf(identity, terms);
  };
  return tallies.guard(kept, scopes, offer.amount);
}

/** What each scope of the calls would hold of them is taken for a moment. */
export async function requireWithin(
  calls: readonly Exchange[],
  { tallies, book, own }: ScopeServices,
  rules: HoldRules,
  at: number,
): Promise<void> {
  const needs = new Map<string, { readonly scope: Scope; amount: Money }>();
  for (const exchange of calls) {
    const identity = exchange.get(caller);
    await own.ready(identity.accountId);
    for (const scope of book.scopesOf(identity, termsOf(exchange, rules, at))) {
      // Another model may take them.
      if (scope.instead !== undefined) continue;
      const need = needs.get(scope.key) ?? { scope, amount: zero };
      need.amount = money(need.amount + exchange.get(heldEstimate));
      needs.set(scope.key, need);
    }
  }
  for (const { scope, amount } of needs.values()) (await tallies.enter([scope], amount)).end(zero, at, '');
}

/** Its money is set aside by an authorization. */
export function isOrder(exchange: Exchange): boolean {
  return exchange.endpoint.deferred === true || exchange.find(vendorBatch) === 'order';
}

/** The hold of a call at its beginning: by the dearest model that may serve it. */
export function amountOf(exchange: Exchange, rules: HoldRules, at: number): Money {
  if (isOrder(exchange)) return firstHold(termsOf(exchange, fullOrder, at));
  const terms = termsOf(exchange, rules, at);
  return firstHold({ ...terms, others: otherTerms(exchange, rules, at) });
}
