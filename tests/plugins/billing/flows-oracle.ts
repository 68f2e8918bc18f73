/** Where money came from and what became of it, by going through all rows one after another with lots of money: shares nothing with reports. */
import { type SQL, sql } from 'drizzle-orm';

interface RowOf {
  readonly seq: string;
  readonly account: string;
  readonly kind: string;
  readonly amount: string;
  readonly at: string;
  readonly grant: string | null;
  readonly grant_kind: string | null;
  readonly reference: string | null;
  readonly expires: boolean;
  readonly request: string | null;
  readonly refund_of: string | null;
  readonly draws: readonly (readonly [kind: string, amount: string])[] | null;
}

interface Lot {
  readonly grant: string;
  readonly isPaid: boolean;
  left: bigint;
}

export interface Flow {
  readonly at: number;
  readonly account: string;
  readonly what: 'card' | 'byHand' | 'paidBack' | 'plan' | 'code' | 'promotion' | 'usedPaid' | 'usedGiven' | 'owed';
  readonly amount: bigint;
}

/** All rows of the ledger in their order. `table` names tables of billing. */
export async function flowsByRows(
  rows: <Row>(statement: SQL) => Promise<Row[]>,
  table: (name: string) => SQL,
): Promise<Flow[]> {
  const all = await rows<RowOf>(sql`
    select ledger.seq::text as seq, ledger.account_id as account, ledger.kind, ledger.amount::text as amount,
      floor(extract(epoch from ledger.created_at) * 1000)::bigint::text as at, ledger.grant_id::text as "grant", grants.kind as grant_kind,
      grants.reference, grants.expires_at is not null as expires, ledger.request_id::text as request, refunds.request_id::text as refund_of,
      (select json_agg(json_build_array(of.kind, draws.amount::text)) from ${table('allocations')} as draws
        join ${table('grants')} as of on of.id = draws.grant_id where draws.account_id = ledger.account_id and draws.seq = ledger.seq) as draws
    from ${table('movements')} as ledger left join ${table('grants')} as grants on grants.id = ledger.grant_id
    left join ${table('refunds')} as refunds on refunds.grant_id = ledger.grant_id and ledger.kind = 'REFUND' order by ledger.seq`);
  const flows: Flow[] = [];
  for (const own of Map.groupBy(all, ({ account }) => account).values()) flows.push(...flowsOfOne(own));
  return flows;
}

function flowsOfOne(rows: readonly RowOf[]): Flow[] {
  const flows: Flow[] = [];
  const lots: Lot[] = [];
  const withGrants = new Set<string>();
  let overdrawn = 0n;
  let hasPaid = false;
  for (const row of rows) {
    const [amount, at] = [BigInt(row.amount), Number(row.at)];
    const note = (what: Flow['what'], of: bigint) => flows.push({ at, account: row.account, what, amount: of });
    const draws = row.draws ?? [];
    const drawn = draws.reduce((total, [, each]) => total + BigInt(each), 0n);
    for (const [kind, each] of draws) {
      note(kind === 'top-up' ? 'usedPaid' : 'usedGiven', BigInt(each));
      if (kind === 'top-up') note('owed', -BigInt(each));
    }
    if (drawn > 0n && row.request !== null) withGrants.add(row.request);
    const take = (wanted: bigint) => {
      let left = wanted;
      for (const lot of lots) {
        const part = lot.left < left ? lot.left : left;
        lot.left -= part;
        left -= part;
        note(lot.isPaid ? 'usedPaid' : 'usedGiven', part);
        if (lot.isPaid) note('owed', -part);
      }
      overdrawn += left;
      note('usedPaid', left);
    };
    if (row.kind === 'CREDIT' || row.kind === 'REFUND') {
      const kind = row.grant_kind!;
      const isPaid = kind === 'top-up' || (kind === 'refund' && hasPaid && !withGrants.has(row.refund_of!));
      hasPaid ||= kind === 'top-up';
      if (kind === 'top-up') note(row.reference!.startsWith('stripe:') ? 'card' : 'byHand', amount);
      else if (row.kind === 'CREDIT') note(kind === 'plan' || kind === 'code' ? kind : 'promotion', amount);
      if (isPaid) note('owed', amount);
      if (row.expires) {
        overdrawn -= drawn;
        note('usedPaid', -drawn);
      } else {
        const covered = overdrawn < amount ? overdrawn : amount;
        overdrawn -= covered;
        lots.push({ grant: row.grant!, isPaid, left: amount - covered });
        note('usedPaid', -covered);
        note(isPaid ? 'usedPaid' : 'usedGiven', covered);
        if (isPaid) note('owed', -covered);
      }
    } else if (row.kind === 'PAYOUT') {
      const lot = lots.find(({ grant }) => grant === row.grant)!;
      lot.left += amount;
      note('paidBack', -amount);
      if (lot.isPaid) note('owed', amount);
    } else if (row.kind === 'EXPIRE') {
      if (row.grant_kind === 'top-up') note('owed', amount);
    } else take(-amount - drawn);
  }
  return flows;
}

/** The sum of what happened within the span; of what is owed, of all before its end. */
export function sumWithin(flows: readonly Flow[], what: Flow['what'], from: number, until: number): bigint {
  return flows
    .filter((flow) => flow.what === what && flow.at < until && (what === 'owed' || flow.at >= from))
    .reduce((total, { amount }) => total + amount, 0n);
}
