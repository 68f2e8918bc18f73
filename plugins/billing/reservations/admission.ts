/** Refuses an account without spendable money before its request's body is read, unless the call may be free. */
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { caller } from '../../common/domain/accounts.ts';
import { vendorBatch } from '../../common/domain/calls.ts';
import { catalog } from '../../common/domain/models.ts';
import type { Money } from '../../common/domain/money.ts';
import { plan } from '../../common/domain/plans.ts';
import { type PriceBook, versionAt } from '../../common/domain/prices.ts';
import type { Reservations } from './reservations.ts';

/** Throws or rejects with 402. Returns a promise only when the balance must be looked up. */
export function admitByBalance(
  exchange: Exchange,
  reservations: Reservations,
  host: Host,
): undefined | Promise<undefined> {
  if (!isCharged(exchange) || exchange.find(vendorBatch) !== undefined) return undefined;
  return requireFunds(exchange, reservations, host, exchange.endpoint.modelKind ?? 'chat');
}

/** The same for requests that are no call themselves. `kind`: of the models that may be free. `amount`: at least this much. */
export function requireFunds(
  exchange: Exchange,
  reservations: Reservations,
  host: Host,
  kind: string | undefined,
  amount?: Money,
): undefined | Promise<undefined> {
  const identity = exchange.find(caller);
  if (identity === undefined) return undefined;
  const terms = exchange.find(plan);
  // What the call costs is known once its body is read; the rest is refused then.
  if (amount === undefined && reservations.bridging && mayBeFree(kind, host)) return undefined;
  const requested = reservations.requireFunds(identity.accountId, terms && { terms, at: exchange.receivedAt }, amount);
  return requested?.then(
    () => undefined,
    (error: unknown) => {
      const hasNoFunds = error instanceof GatewayError && error.kind === 'insufficient_balance';
      if (hasNoFunds && amount === undefined && mayBeFree(kind, host)) return undefined;
      throw error;
    },
  );
}

function isCharged({ endpoint: { charges = false }, request }: Exchange): boolean {
  return typeof charges === 'function' ? charges(request) : charges;
}

/** Whether some model of this kind may cost nothing now: by its price, as every ratio is above 0. */
function mayBeFree(kind: string | undefined, host: Host): boolean {
  const at = host.clock.now();
  return (host.find(catalog)?.list() ?? []).some(
    (model) => (kind === undefined || model.kind === kind) && hasFreePrice(model.prices, at),
  );
}

/** Whether all usage of a call is free at one of the current prices. */
function hasFreePrice(prices: PriceBook | undefined, at: number): boolean {
  const version = prices === undefined ? undefined : versionAt(prices, at);
  return version?.all().some(({ price }) => Object.values(price).every((amount) => amount === 0n)) ?? false;
}
