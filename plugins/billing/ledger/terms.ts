/** Grants of plans: the first process to notice posts each period's grant and removes expired ones. */

import type { PlanTerm } from '../../common/domain/ledger.ts';
import { money } from '../../common/domain/money.ts';
import type { PlanTerms } from '../../common/domain/plans.ts';
import type { GrantBalance, WindowLimits } from '../grants/balances.ts';
import { calendarAnchors, periodAt } from '../grants/periods.ts';
import { clocksDifferMs, type StoredTerm } from '../grants/term-rows.ts';
import { type CreditTerms, giveCredit } from './credit-lines.ts';
import type { Entries } from './entries.ts';

/**
 * A call admitted before a grant expired may still be paid by it. So the remainder is booked as expired only when no such call
 * can still run: after this delay if nothing is held or leased, otherwise a day later if the free balance covers
 * it. Deferred work may hold money for longer; removing it then would overdraw the account.
 */
export const expireAfterMs = 15 * 60_000;
const expireAnywayMs = 24 * 3_600_000;

/** The plan in the call's context, and the call's arrival time: wall-clock milliseconds of its node. */
export interface CallPlan {
  readonly terms: PlanTerms;
  readonly at: number;
}

export function isRunning(term: StoredTerm | undefined, at: number): term is StoredTerm {
  return term !== undefined && (term.endsAt === undefined || term.endsAt > at);
}

/** What else may be due; absent: nothing. */
export interface Due {
  /** What follows an ended term. */
  readonly onEnded?: ((term: PlanTerm) => Promise<void>) | undefined;
  readonly credit?: CreditTerms | undefined;
}

/** Ends the running term and begins another. The remainder of the old term's grant keeps its own expiry. */
export async function beginTerm({ tables, at }: Entries, plan: PlanTerms, endsAt: number | undefined): Promise<void> {
  await tables.terms.endAll(at);
  const amount = plan.grant?.amount ?? 0n;
  const every = amount > 0n ? plan.grant!.every : undefined;
  await tables.terms.add({ plan: plan.name, amount, every, limits: limitsOf(plan), startsAt: at, endsAt });
}

/**
 * Removes expired grants and posts due ones: by the purchased term that is running, or by the plan in the call's
 * context if it was not purchased. Idempotent across processes, because each grant has its own reference. Resolves
 * with the time of the next change.
 */
export async function applyDueTerms(
  entries: Entries,
  callPlan: CallPlan | undefined,
  { onEnded, credit }: Due = {},
): Promise<number> {
  const { terms } = entries.tables;
  let term = await terms.last(entries.at);
  if (term !== undefined && !isRunning(term, entries.at) && onEnded !== undefined) {
    await onEnded(term);
    term = await terms.last(entries.at);
  }
  const next = isRunning(term, entries.at)
    ? await giveByTerm(entries, term)
    : await giveUnbought(entries, callPlan, term);
  // Behind the others: what an account owes is taken out of what comes first.
  const credited = credit === undefined ? Number.POSITIVE_INFINITY : await giveCredit(entries, credit);
  return Math.min(next, credited, await bookExpired(entries));
}

/**
 * A call on a purchased plan may arrive here after its term and later ones have ended: the plan's grant was for the
 * purchased term only. A call that arrives after the term's end by any clock is on a new assignment of the plan.
 */
async function giveUnbought(
  entries: Entries,
  callPlan: CallPlan | undefined,
  ended: StoredTerm | undefined,
): Promise<number> {
  if (callPlan === undefined) return Number.POSITIVE_INFINITY;
  const { terms: plan, at } = callPlan;
  const isOver = ended !== undefined && (await entries.tables.terms.hasEnded(plan.name, at - clocksDifferMs));
  return isOver ? entries.at : giveByPlan(entries, plan);
}

/** The term's periods count from its beginning. */
async function giveByTerm(entries: Entries, term: StoredTerm): Promise<number> {
  const endsAt = term.endsAt ?? Number.POSITIVE_INFINITY;
  const { every, amount } = term;
  if (every === undefined) return endsAt;
  const { start, end } = periodAt(every, term.startsAt, entries.at);
  const source = `term:${term.id}`;
  await entries.credit(money(amount), {
    kind: 'plan',
    reason: `plan ${term.plan}`,
    reference: `${source}:${start}`,
    expiresAt: Math.min(end, endsAt),
    windows: windowsOf(source, term.startsAt, term.limits),
  });
  return Math.min(end, endsAt);
}

/** The periods of a plan without a purchased term are calendar periods in UTC. */
async function giveByPlan(entries: Entries, plan: PlanTerms): Promise<number> {
  if (plan.grant === undefined || plan.grant.amount === 0n) return Number.POSITIVE_INFINITY;
  const { amount, every } = plan.grant;
  const anchor = calendarAnchors[every];
  const { start, end } = periodAt(every, anchor, entries.at);
  const source = `plan:${entries.accountId}:${plan.name}`;
  const reference = `${source}:${every}:${start}`;
  // The configured amount may have changed since the period began: each period is granted once.
  if (await entries.knowsGrant(reference)) return end;
  await entries.credit(amount, {
    kind: 'plan',
    reason: `plan ${plan.name}`,
    reference,
    expiresAt: end,
    windows: windowsOf(source, anchor, limitsOf(plan)),
  });
  return end;
}

function windowsOf(source: string, anchor: number, limits: WindowLimits) {
  return Object.keys(limits).length === 0 ? undefined : { source, anchor, limits };
}

function limitsOf({ windows = {} }: PlanTerms): WindowLimits {
  return Object.fromEntries(Object.entries(windows).filter(([, limit]) => limit !== undefined)) as WindowLimits;
}

/** Posts the remainder of each expired grant once. Resolves with the time of the next check. */
async function bookExpired(entries: Entries): Promise<number> {
  const { grants: grantBalances } = await entries.pool();
  let next = Number.POSITIVE_INFINITY;
  for (const grantBalance of grantBalances) {
    if (mayExpire(grantBalance, entries)) await entries.expire(grantBalance);
    else next = Math.min(next, Math.max(grantBalance.expiresAt, entries.at) + expireAfterMs);
  }
  return next;
}

function mayExpire(
  { expiresAt, remaining }: GrantBalance,
  { at, held, leased, balance, isComplete }: Entries,
): boolean {
  if (!isComplete) return false;
  // Charges for leased money may be missing from the ledger, also those of a disconnected process.
  if (held === 0n && leased === 0n) return at >= expiresAt + expireAfterMs;
  return at >= expiresAt + expireAnywayMs && balance - leased >= remaining;
}
