/** Credit lines: money that an account has each month before it has paid, given as a grant; what was used of it is paid afterwards. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Money, money } from '../../common/domain/money.ts';
import type { CreditLineView, CreditMonth, CreditState } from '../../common/domain/organizations/credit-lines.ts';
import { type CreditGrant, creditKind } from '../grants/credit-rows.ts';
import { type Month, monthAt, monthOf } from '../grants/months.ts';
import type { Entries } from './entries.ts';
import type { Grant } from './entry-rows.ts';

export interface CreditTerms {
  /** Months of accounts that have no time zone of their own are those of this one. */
  readonly zone: string;
  /** Behind the end of a month: until then what was used in it is to be paid. */
  readonly payWithinMs: number;
  /** Behind that: the line stops until it is paid. Undefined: it goes on. */
  readonly stopAfterMs: number | undefined;
  /** How long processes may spend what they know of: an end that is moved forward comes after this. */
  readonly noticeMs: number;
}

const none = money(0n);
const shownMonths = 12;
const shownMs = 400 * 24 * 3_600_000;
/** With it balances stay far from the limits of a `bigint`. */
const largestLine = 1_000_000_000_000_000n;

/** With a number behind it: what a line brings for a month in several parts is given once each. */
const prefixOf = (accountId: string, month: string): string => `${creditKind}:${accountId}:${month}:`;
const monthIn = ({ reference }: Pick<CreditGrant, 'reference'>): string => reference.split(':').at(-2)!;
const unpaidOf = ({ used, paid }: CreditGrant): bigint => used - paid;
const isOpen = ({ expiresAt }: CreditGrant, at: number): boolean => expiresAt > at;

/**
 * Brings what the line has for this month: the rest where it was raised or a charge was given back. Where it was lowered, or an earlier
 * month is overdue, what is open ends soon. Once over all processes, since the account is locked. Resolves with the time of the next change.
 */
export async function giveCredit(entries: Entries, terms: CreditTerms): Promise<number> {
  const { tables, at, accountId } = entries;
  const line = await tables.credit.line();
  if (line === undefined) return Number.POSITIVE_INFINITY;
  const zone = line.zone ?? terms.zone;
  const month = monthOf(monthAt(at, zone), zone);
  const known = await tables.credit.grants(month.from);
  const stopsAt = stopOf(known, terms, at);
  const allowed: bigint = stopsAt <= at ? none : line.amount;
  const brought = known.filter(({ reference }) => reference.startsWith(prefixOf(accountId, month.name)));
  const counted = brought.reduce((sum, grant) => sum + countedOf(grant, at), 0n);
  if (allowed > counted) await entries.credit(money(allowed - counted), grantFor(month, accountId, brought.length + 1));
  else if (allowed < counted) await endSoon(entries, brought, at + terms.noticeMs);
  const ends = brought.filter((grant) => isOpen(grant, at)).map(({ expiresAt }) => expiresAt);
  if (allowed < counted && ends.length > 0) ends.push(at + terms.noticeMs);
  return Math.min(month.until, ...ends, stopsAt > at ? stopsAt : Number.POSITIVE_INFINITY);
}

/** What a grant takes of its month's line: all of it while it is open, then what was used; without what was paid of it by then. */
function countedOf(grant: CreditGrant, at: number): bigint {
  return (isOpen(grant, at) ? grant.amount : grant.used) - grant.paid;
}

const grantFor = ({ name, until }: Month, accountId: string, number: number): Grant => ({
  ...{ kind: creditKind, reason: `credit line of ${name}`, reference: `${prefixOf(accountId, name)}${number}` },
  expiresAt: until,
});

async function endSoon(entries: Entries, brought: readonly CreditGrant[], endsAt: number): Promise<void> {
  for (const grant of brought)
    if (grant.used < grant.amount && grant.expiresAt > endsAt) await entries.endEarly(grant.id, endsAt);
}

/** When the line stops, or has stopped, because of what is not paid. */
function stopOf(grants: readonly CreditGrant[], { payWithinMs, stopAfterMs }: CreditTerms, at: number): number {
  if (stopAfterMs === undefined) return Number.POSITIVE_INFINITY;
  const unpaid = grants.filter((grant) => grant.monthEnd <= at && unpaidOf(grant) > 0n);
  return Math.min(...unpaid.map(({ monthEnd }) => monthEnd + payWithinMs + stopAfterMs));
}

/**
 * A credit that comes as payment pays what is due, the oldest month first: at most what it has brought, so that calls find no less to spend
 * than before. A line that has stopped goes on at once.
 */
export async function creditAndPay(
  entries: Entries,
  amount: Money,
  grant: Grant,
  terms: CreditTerms | undefined,
): Promise<boolean> {
  const isNew = await entries.credit(amount, grant);
  if (!isNew || terms === undefined || grant.kind !== 'top-up' || grant.expiresAt !== undefined) return isNew;
  const grants = await entries.tables.credit.grants(entries.at);
  const due = grants.filter(({ monthEnd }) => monthEnd <= entries.at);
  await pay(entries, due, amount, `paid:${grant.reference}`);
  if (due.length > 0) await giveCredit(entries, terms);
  return isNew;
}

/**
 * What was given back of a charge is first taken off what is to be paid, as far as a line has paid it: before that it had cost its client
 * nothing. `earlier`: what of the charge was given back before.
 */
export async function settleRefund(
  entries: Entries,
  charge: { readonly requestId: string; readonly earlier: bigint },
  amount: Money,
  reference: string,
): Promise<void> {
  const draws = await entries.tables.credit.paidOf(charge.requestId);
  const credited = draws.reduce((sum, draw) => sum + draw.amount, 0n) - charge.earlier;
  if (credited <= 0n) return;
  // A call is held at one time, so that all of it is of one month.
  const month = monthIn(draws[0]!);
  const grants = await entries.tables.credit.grants(entries.at);
  const own = grants.filter((grant) => monthIn(grant) === month);
  await pay(entries, own, least(credited, amount), `refunded:${reference}`);
}

/** Takes it out of the money that does not expire. */
async function pay(entries: Entries, grants: readonly CreditGrant[], amount: bigint, reference: string): Promise<void> {
  let left = least(amount, await entries.wallet());
  for (const grant of grants) {
    const part = least(unpaidOf(grant), left);
    if (part <= 0n) continue;
    left -= part;
    await entries.post({
      ...{
        kind: 'PAYOUT',
        amount: -part,
        funding: part,
        grantId: grant.id,
        reference: `${grant.reference}:${reference}`,
      },
      detail: { kind: creditKind, reason: `credit line of ${monthIn(grant)}`, of: grant.reference },
    });
  }
}

const least = (left: bigint, right: bigint): bigint => (left < right ? left : right);

export async function setCredit(entries: Entries, amount: Money, reason: string, terms: CreditTerms): Promise<void> {
  if (amount < 0n || amount > largestLine)
    throw new GatewayError('invalid_request', 'A credit line is from 0 to 1,000,000 USD a month.', { field: 'amount' });
  const line = await entries.tables.credit.line();
  if (line?.amount !== amount)
    await entries.tables.credit.setLine({ number: (line?.number ?? 0) + 1, amount, reason }, entries.at);
  await giveCredit(entries, terms);
}

export async function viewCredit(entries: Entries, terms: CreditTerms): Promise<CreditLineView | undefined> {
  const { tables, at } = entries;
  const line = await tables.credit.line();
  if (line === undefined) return undefined;
  const grants = await tables.credit.grants(at - shownMs);
  const left = grants.filter((grant) => isOpen(grant, at)).reduce((sum, { amount, used }) => sum + amount - used, 0n);
  const stopsAt = stopOf(grants, terms, at);
  const months = monthsOf(grants, terms, at).toReversed();
  return {
    ...{ amount: line.amount, left: money(left), isStopped: stopsAt <= at },
    stopsAt: stopsAt > at && stopsAt < Number.POSITIVE_INFINITY ? stopsAt : undefined,
    months: months.filter(({ state }, index) => index < shownMonths || state !== 'paid'),
  };
}

/** Oldest first. */
export function monthsOf(
  grants: readonly Pick<CreditGrant, 'reference' | 'monthEnd' | 'used' | 'paid'>[],
  terms: Pick<CreditTerms, 'payWithinMs'>,
  at: number,
): CreditMonth[] {
  return Array.from(Map.groupBy(grants, monthIn), ([month, parts]) => {
    const until = Math.max(...parts.map(({ monthEnd }) => monthEnd));
    const dueAt = until + terms.payWithinMs;
    const used = parts.reduce((sum, part) => sum + part.used, 0n);
    const paid = parts.reduce((sum, part) => sum + part.paid, 0n);
    return {
      month,
      until,
      dueAt,
      used: money(used),
      paid: money(paid),
      state: stateOf({ until, dueAt, due: used - paid }, at),
    };
  });
}

function stateOf(
  month: { readonly until: number; readonly dueAt: number; readonly due: bigint },
  at: number,
): CreditState {
  if (month.until > at) return 'running';
  if (month.due <= 0n) return 'paid';
  return month.dueAt <= at ? 'overdue' : 'due';
}
