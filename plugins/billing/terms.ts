/** What plans bring: a grant for each period, given by whoever notices first that it is due; what has expired is taken off. */
import { money } from '../../core/money.ts';
import type { PlanTerm, PlanTerms } from '../../core/vocabulary.ts';
import type { Entries } from './entries.ts';
import { calendarAnchors, periodAt } from './periods.ts';
import type { Pot, WindowLimits } from './pots.ts';
import { clocksDifferMs, type StoredTerm } from './term-rows.ts';

/**
 * A call that was let in before a grant expired may still be paid by it. So the rest lapses only when none can be running
 * any more: a while later, when nothing is set aside or leased; else a day later, if what is free covers it. Work that is done later
 * may have the rest set aside for longer than that: taken off, it would put the account below zero.
 */
const lapseAfterMs = 15 * 60_000;
const lapseAnywayMs = 24 * 3_600_000;

/** The plan that a call was told to be on, and when it came: wall-clock milliseconds by its node's clock. */
export interface StatedPlan {
  readonly terms: PlanTerms;
  readonly at: number;
}

export function isRunning(term: StoredTerm | undefined, at: number): term is StoredTerm {
  return term !== undefined && (term.endsAt === undefined || term.endsAt > at);
}

/** Ends the running term now and begins another. What is left of the old one's grant keeps its own end. */
export async function beginTerm({ tables, at }: Entries, plan: PlanTerms, endsAt: number | undefined): Promise<void> {
  await tables.terms.endAll(at);
  const amount = plan.grant?.amount ?? 0n;
  const every = amount > 0n ? plan.grant!.every : undefined;
  await tables.terms.add({ plan: plan.name, amount, every, limits: limitsOf(plan), startsAt: at, endsAt });
}

/**
 * Takes off what has expired and gives what is due: by the term that was bought and runs, else by the plan that the account
 * is on without having bought it, as a call states it. Any number of times, by any process: each grant has its reference.
 * Resolves with the time at which there is something to do again.
 */
export async function keepUp(
  entries: Entries,
  stated: StatedPlan | undefined,
  onEnded?: (term: PlanTerm) => Promise<void>,
): Promise<number> {
  const { terms } = entries.tables;
  let term = await terms.last(entries.at);
  if (term !== undefined && !isRunning(term, entries.at) && onEnded !== undefined) {
    await onEnded(term);
    term = await terms.last(entries.at);
  }
  const next = isRunning(term, entries.at)
    ? await giveByTerm(entries, term)
    : await giveUnbought(entries, stated, term);
  return Math.min(next, await lapseExpired(entries));
}

/**
 * A call that came on a plan that was bought may get here when that term is over, and others after it: what the plan brings
 * was for those who had bought it. Whoever comes after its end by any clock was given the plan anew.
 */
async function giveUnbought(
  entries: Entries,
  stated: StatedPlan | undefined,
  ended: StoredTerm | undefined,
): Promise<number> {
  if (stated === undefined) return Number.POSITIVE_INFINITY;
  const { terms: plan, at } = stated;
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

/** The periods of a plan that nobody bought are those of the calendar, in UTC. */
async function giveByPlan(entries: Entries, plan: PlanTerms): Promise<number> {
  if (plan.grant === undefined || plan.grant.amount === 0n) return Number.POSITIVE_INFINITY;
  const { amount, every } = plan.grant;
  const anchor = calendarAnchors[every];
  const { start, end } = periodAt(every, anchor, entries.at);
  const source = `plan:${entries.accountId}:${plan.name}`;
  const reference = `${source}:${every}:${start}`;
  // What the configuration gives now may differ from what it gave at the period's beginning: once is enough.
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

/** Posts what is left of grants that have expired, once for each. Resolves with when the next of them is to be looked at. */
async function lapseExpired(entries: Entries): Promise<number> {
  const { pots } = await entries.pool();
  let next = Number.POSITIVE_INFINITY;
  for (const pot of pots) {
    if (mayLapse(pot, entries)) await entries.lapse(pot);
    else next = Math.min(next, Math.max(pot.expiresAt, entries.at) + lapseAfterMs);
  }
  return next;
}

function mayLapse({ expiresAt, remaining }: Pot, { at, held, leased, balance, isComplete }: Entries): boolean {
  if (!isComplete) return false;
  // Of what is leased the ledger may not have the charges yet, or a process that is cut off.
  if (held === 0n && leased === 0n) return at >= expiresAt + lapseAfterMs;
  return at >= expiresAt + lapseAnywayMs && balance - leased >= remaining;
}
