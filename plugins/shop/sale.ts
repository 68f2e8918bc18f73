/** Plans: bought from the balance, extended, replaced, bought again at their end. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { Accounts } from '../common/domain/accounts.ts';
import type { PlanTerm, Pool, Posting } from '../common/domain/ledger.ts';
import { money } from '../common/domain/money.ts';
import type { PlanOffer, Plans, Purchase } from '../common/domain/plans.ts';

export interface Sales {
  readonly plans: Plans;
  readonly pool: Pool;
  readonly accounts: Accounts;
}

const dayMs = 24 * 3_600_000;
/** A plan that ended longer ago is not renewed and not charged. */
const renewWithinMs = 3 * dayMs;

/** Price and plan in one transaction, once per reference. */
export async function buyPlan(sales: Sales, accountId: string, name: string, reference: string): Promise<Purchase> {
  const offer = offerNamed(sales.plans, name);
  if (offer.price === 0n) {
    const message = `The plan "${name}" is free: it cannot be bought.`;
    throw new GatewayError('invalid_request', message, { field: 'plan', code: 'plan_is_free' });
  }
  return sales.pool.transact(accountId, offer.price, async (posting) => {
    const entry = { reason: `plan ${name}`, reference: `plan:${reference}`, detail: { plan: name } };
    const isNew = await posting.purchase(offer.price, entry);
    const endsAt = isNew ? await enterPlan(sales, posting, offer) : (await posting.term())?.endsAt;
    return { plan: name, price: offer.price, endsAt, balance: posting.balance };
  });
}

/**
 * Puts the account on a plan for `lengthMs`, by default its term. If the account is on this plan already, it is extended
 * from its end; another plan ends now, and the rest of its grant keeps its own end.
 */
export async function enterPlan(
  { accounts }: Sales,
  posting: Posting,
  offer: PlanOffer,
  lengthMs?: number,
): Promise<number | undefined> {
  const term = await posting.term();
  const runs = term?.plan === offer.name;
  if (runs && term.endsAt === undefined) {
    const message = `The account is on the plan "${offer.name}" already, and it does not end.`;
    throw new GatewayError('conflict', message, { field: 'plan', code: 'plan_runs', shouldRetry: false });
  }
  const from = runs ? term.endsAt! : posting.at;
  const endsAt = lengthMs === undefined ? endOf(offer, from) : from + lengthMs;
  if (runs) await posting.extendTerm(term, endsAt);
  else await posting.beginTerm(offer, endsAt);
  await accounts.setPlan(posting.orm, posting.accountId, offer.name, endsAt);
  return endsAt;
}

/** Renews a plan at the end of its term if it is set to renew and the balance covers it; else the default plan applies. */
export async function renewPlan(sales: Sales, posting: Posting, { id, plan, endsAt }: PlanTerm): Promise<void> {
  const offer = sales.plans.offer(plan);
  if (offer?.renew !== true || endsAt === undefined || posting.at - endsAt > renewWithinMs) return;
  try {
    const entry = { reason: `plan ${plan} renewed`, reference: `renewal:${id}`, detail: { plan } };
    if (await posting.purchase(offer.price, entry)) await enterPlan(sales, posting, offer);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'insufficient_balance') throw error;
  }
}

export function offerNamed(plans: Plans, name: string): PlanOffer {
  const offer = plans.offer(name);
  if (offer !== undefined) return offer;
  throw new GatewayError('not_found', `There is no plan "${name}".`, { field: 'plan' });
}

/** End of a term bought at `from`: after its `duration`, else after one period of the grant; undefined: never. */
export function endOf({ durationMs: lastsMs, grant, price }: PlanOffer, from: number): number | undefined {
  if (lastsMs !== undefined) return from + lastsMs;
  if (grant === undefined || price === money(0n)) return undefined;
  return grant.every === 'month' ? monthAfter(from) : from + (grant.every === 'week' ? 7 : 1) * dayMs;
}

/** The same day of the next month, or that month's last day; UTC. */
function monthAfter(from: number): number {
  const at = new Date(from);
  const day = at.getUTCDate();
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + 1);
  const days = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  return at.setUTCDate(Math.min(day, days));
}
