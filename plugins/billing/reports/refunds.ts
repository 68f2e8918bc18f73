/** Refunds of calls within a span, by the times of the refunds: what calls came to is less by them. */
import { sql } from 'drizzle-orm';
import type { KeySet } from '../../common/domain/admin/accounts.ts';
import type { ChargeFilter, SpendGroup, SpendSums } from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { instantText } from '../../common/kit/paging.ts';
import type { ChargeStore } from '../archive/reader.ts';
import { millisecondsOf, rowsOf, tablesOf } from '../model/sql.ts';
import { chargesOf } from './charges.ts';
import { none } from './sums.ts';

/** A refund, with the call that it belongs to. */
export interface Refund {
  readonly at: number;
  readonly amount: bigint;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly provider: string;
  readonly person: string;
  readonly project: string;
  /** Whether the own cost of its call is known. */
  readonly isCosted: boolean;
}

interface Row {
  readonly request_id: string;
  readonly at: string;
  readonly amount: string;
  readonly is_stored: boolean;
  readonly account_id: string;
  readonly key_id: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  readonly person: string | null;
  readonly project: string | null;
  readonly is_costed: boolean | null;
}

/** They are few beside calls. */
export async function refundsIn(store: ChargeStore, filter: ChargeFilter): Promise<Refund[]> {
  const table = tablesOf(store.schema);
  const rows = await rowsOf<Row>(
    store.orm,
    sql`select refunds.request_id::text as request_id, ${millisecondsOf(sql`given.created_at`)} as at, refunds.amount::text as amount,
          calls.id is not null as is_stored, given.account_id, calls.key_id, calls.model, calls.provider, calls.person, calls.project,
          calls.own_cost is not null as is_costed
        from ${table('ledger')} as given
        join ${table('refunds')} as refunds on refunds.account_id = given.account_id and refunds.grant_id = given.grant_id
        left join ${table('calls')} as calls on calls.account_id = given.account_id and calls.id = refunds.request_id
        where given.kind = 'REFUND' and ${within(filter)}
          ${filter.accountId === undefined ? sql`` : sql`and given.account_id = ${filter.accountId}`}`,
  );
  const archived = [...new Set(rows.filter((row) => !row.is_stored).map((row) => row.request_id))];
  const charges = await chargesOf(store, archived, undefined);
  const known = new Map(charges.map((charge) => [charge.requestId, charge]));
  return rows
    .map((row): Refund => {
      const charge = known.get(row.request_id);
      return {
        at: Number.parseInt(row.at, 10),
        amount: BigInt(row.amount),
        account: row.account_id,
        key: row.key_id ?? charge?.keyId ?? '',
        model: row.model ?? charge?.model ?? '',
        provider: row.provider ?? charge?.provider ?? '',
        person: row.person ?? charge?.person ?? '',
        project: row.project ?? charge?.project ?? '',
        isCosted: row.is_stored ? row.is_costed === true : charge?.ownCost !== undefined,
      };
    })
    .filter((refund) => isOf(refund, filter));
}

const within = ({ from, until }: Span) =>
  sql`given.created_at >= ${instantText(from)}::timestamptz and given.created_at < ${instantText(until)}::timestamptz`;

function isOf({ key, model, provider, person, project }: Refund, filter: ChargeFilter): boolean {
  const { keyId = key, model: ofModel = model, provider: ofProvider = provider, personId = person } = filter;
  if (filter.projectIds?.includes(project) === false) return false;
  return (
    keyId === key && ofModel === model && ofProvider === provider && personId === person && isAmong(key, filter.keys)
  );
}

function isAmong(key: string, keys: KeySet | undefined): boolean {
  return keys === undefined || keys.ids.includes(key) !== (keys.not === true);
}

/** These sums without what was given back. */
export function lessRefunds<Sums extends SpendSums>(sums: Sums, refunds: readonly Refund[]): Sums {
  const uncosted = refunds.filter(({ isCosted }) => !isCosted);
  return {
    ...sums,
    refunded: sumOf(refunds),
    uncosted: money((sums.uncosted ?? 0n) - sumOf(uncosted)),
  };
}

/** The same for slots that begin at `at`, in order. */
export function slotsLessRefunds<Slot extends SpendSums & { readonly at: number }>(
  slots: readonly Slot[],
  refunds: readonly Refund[],
): Slot[] {
  const bySlot = Map.groupBy(refunds, ({ at }) => slots.findLast((slot) => slot.at <= at)?.at);
  return slots.map((slot) => lessRefunds(slot, bySlot.get(slot.at) ?? []));
}

/** The same for groups; those of `wanted` that have refunds alone are added. */
export function groupsLessRefunds(
  groups: readonly (SpendGroup & { readonly at: number })[],
  refunds: readonly Refund[],
  {
    by,
    wanted,
    bounds,
  }: { readonly by: RefundGroup; readonly wanted: readonly string[]; readonly bounds: readonly number[] },
): (SpendGroup & { readonly at: number })[] {
  const name = (at: number, group: string) => `${at} ${group}`;
  const slotOf = (at: number) => bounds.findLast((bound) => bound <= at)!;
  const byGroup = Map.groupBy(
    refunds.filter((refund) => wanted.includes(refund[by])),
    (refund) => name(slotOf(refund.at), refund[by]),
  );
  const found = new Set(groups.map(({ at, group }) => name(at, group)));
  const alone = [...byGroup]
    .filter(([known]) => !found.has(known))
    .map(([, [first]]) => ({ ...none, at: slotOf(first!.at), group: first![by] }));
  return [...groups, ...alone].map((sums) => lessRefunds(sums, byGroup.get(name(sums.at, sums.group)) ?? []));
}

export type RefundGroup = 'account' | 'key' | 'model' | 'provider' | 'person' | 'project';

const sumOf = (refunds: readonly Refund[]): Money => money(refunds.reduce((sum, { amount }) => sum + amount, 0n));
