/** What the records of a batch become in the database in memory: postings, by the meaning of the batch statement. */
import { money } from '../../core/money.ts';
import type { KeySpend } from '../../plugins/billing/caps.ts';
import type { KeptDeposit } from '../../plugins/billing/deposit-rows.ts';
import type { EntryRow } from '../../plugins/billing/entry-rows.ts';
import type {
  AttemptNote,
  EndRecord,
  ExtendRecord,
  HoldRecord,
  JournalRecord,
  SettleRecord,
} from '../../plugins/billing/records.ts';

/** Records that make a ledger row. */
export type PostingRecord = HoldRecord | ExtendRecord | EndRecord;

export interface Row {
  readonly seq: number;
  readonly account: string;
  readonly kind: PostingRecord['kind'] | EntryRow['kind'];
  readonly request: string | undefined;
  readonly part: number;
  readonly grantId: string | undefined;
  readonly reference: string | undefined;
  readonly amount: bigint;
  readonly held: bigint;
  readonly revenue: bigint;
  readonly funding: bigint;
  readonly absorbed: bigint;
  readonly balanceAfter: bigint;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export type Draft = Omit<Row, 'seq' | 'balanceAfter'>;

/** The records of journal lines `CRC FIRST … [RECORD, …]`. */
export function recordsOf(text: string): JournalRecord[] {
  const found: JournalRecord[] = [];
  for (const line of text.split('\n')) {
    if (line !== '') found.push(...(JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]));
  }
  return found;
}

export function makesRow(record: JournalRecord): record is PostingRecord {
  return record.kind !== 'SENT' && record.kind !== 'PROGRESS';
}

export function postingOf(record: PostingRecord): Draft {
  const { kind, id: request, account, at } = record;
  const shared = { account, kind, request, grantId: undefined, reference: undefined, at };
  if (record.kind === 'HOLD' || record.kind === 'EXTEND') {
    const amount = BigInt(record.amount);
    const part = record.kind === 'EXTEND' ? record.part : 0;
    return { ...shared, part, amount: -amount, held: amount, revenue: 0n, funding: 0n, absorbed: 0n };
  }
  const held = BigInt(record.held);
  const cost = record.kind === 'SETTLE' ? BigInt(record.cost) : 0n;
  const absorbed = BigInt(record.absorbed ?? 0);
  return { ...shared, part: 0, amount: held - cost, held: -held, revenue: cost, funding: -absorbed, absorbed };
}

/** Throws as the constraint does. */
export function checkUsage(record: PostingRecord): void {
  if (record.kind === 'SETTLE' && BigInt(record.cost) < 0n)
    throw new Error('violates check constraint "usage_cost_check"');
}

/** Whether a vendor may have worked for a request; attempts are known by request and number. */
export function mayHaveRun(attempts: ReadonlyMap<string, AttemptNote>, requestId: string): boolean {
  for (const [key, { result }] of attempts)
    if (key.startsWith(`${requestId} `) && result !== 'refused' && result !== 'not_sent') return true;
  return false;
}

/** What a key was charged since `from`, and what is set aside for its orders. */
export function spentIn(
  charges: Iterable<SettleRecord>,
  deposits: Iterable<KeptDeposit>,
  keyId: string,
  from: number,
): KeySpend {
  let [settled, ordered] = [0n, 0n];
  for (const { key, at, cost } of charges) if (key === keyId && at >= from) settled += BigInt(cost);
  for (const { terms, held } of deposits) {
    if ((JSON.parse(terms) as { key?: string }).key === keyId) ordered += held;
  }
  return { settled: money(settled), ordered: money(ordered) };
}
