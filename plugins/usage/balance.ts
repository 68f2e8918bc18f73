/** An account's balance and spend, in the shapes that clients poll. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { LedgerQueries } from '../common/domain/admin/ledger.ts';
import type { Pool } from '../common/domain/ledger.ts';
import { formatUsd } from '../common/domain/money.ts';
import { tagsIn } from './query.ts';

const dayMs = 86_400_000;
/** Clients show the balance as a limit less the usage since then, and ask for at most this time. */
const limitDays = 100;

export interface Subject {
  readonly ledger: LedgerQueries;
  readonly pool: Pool | undefined;
  readonly accountId: string;
  readonly now: number;
}

async function balanceOf({ ledger, pool, accountId }: Subject): Promise<bigint> {
  await pool?.applyDue(accountId);
  return (await ledger.balances([accountId])).get(accountId) ?? 0n;
}

async function spentIn({ ledger, accountId }: Subject, from: number, until: number) {
  const [sums] = from < until ? await ledger.spendBetween({ accountId }, [from, until]) : [];
  return { requests: sums?.requests ?? 0, cost: sums?.cost ?? 0n };
}

/** Sums of calls with these tags, or of each value of a name. */
async function spentByTag({ ledger, accountId }: Subject, tags: readonly string[], from: number, until: number) {
  const cells = await ledger.spendTable({ accountId, tags, bounds: [from, until], by: ['tag'] });
  return new Map(cells.map(({ group: [name], requests, cost }) => [name!, { requests, cost }]));
}

const none = { requests: 0, cost: 0n };
const period = ({ requests, cost }: typeof none) => ({ requests, cost: formatUsd(cost) });

export async function balance(subject: Subject): Promise<object> {
  const left = await balanceOf(subject);
  return { object: 'balance', balance: formatUsd(left), currency: 'USD', is_available: left > 0n };
}

/** Today's and this month's spending (UTC) beside the balance; of a query with a tag also by this. */
export async function spending(subject: Subject, query: URLSearchParams): Promise<object> {
  const { now } = subject;
  const today = Math.floor(now / dayMs) * dayMs;
  const at = new Date(now);
  const month = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
  const tags = tagsIn(query);
  const byTag = (from: number) => (tags === undefined ? undefined : spentByTag(subject, tags, from, today + dayMs));
  const [left, ofToday, ofMonth, tagsToday, tagsOfMonth] = await Promise.all([
    balanceOf(subject),
    spentIn(subject, today, today + dayMs),
    spentIn(subject, month, today + dayMs),
    byTag(today),
    byTag(month),
  ]);
  return {
    object: 'usage',
    currency: 'USD',
    balance: formatUsd(left),
    remaining: Number(formatUsd(left)),
    unit: 'USD',
    is_valid: left > 0n,
    today: period(ofToday),
    month: period(ofMonth),
    ...(tagsOfMonth && {
      tags: [...tagsOfMonth].map(([name, sums]) => ({
        tag: name,
        today: period(tagsToday?.get(name) ?? none),
        month: period(sums),
      })),
    }),
  };
}

/** The limit is the balance and the spend of the last hundred days. */
export async function subscription(subject: Subject): Promise<object> {
  const { now } = subject;
  const tomorrow = Math.floor(now / dayMs) * dayMs + dayMs;
  const [left, { cost }] = await Promise.all([
    balanceOf(subject),
    spentIn(subject, tomorrow - limitDays * dayMs, tomorrow),
  ]);
  const limit = Number(formatUsd(left + cost));
  return {
    object: 'billing_subscription',
    has_payment_method: true,
    soft_limit_usd: limit,
    hard_limit_usd: limit,
    system_hard_limit_usd: limit,
    access_until: 0,
  };
}

/** `start_date` (inclusive) and `end_date` (exclusive) are UTC days; absent: the last hundred days. */
export async function usedBetween(subject: Subject, query: URLSearchParams): Promise<object> {
  const tomorrow = Math.floor(subject.now / dayMs) * dayMs + dayMs;
  const until = dayIn(query, 'end_date') ?? tomorrow;
  const from = dayIn(query, 'start_date') ?? until - limitDays * dayMs;
  const { cost } = await spentIn(subject, from, until);
  // In cents, exactly.
  return { object: 'list', total_usage: Number(formatUsd(cost * 100n)) };
}

function dayIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isFinite(at)) return at;
  throw new GatewayError('invalid_request', `"${name}" is a day, as 2026-01-31.`, { field: name, shouldRetry: false });
}
