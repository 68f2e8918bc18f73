/** What the records of a batch become in the database in memory: postings, by the meaning of the batch statement. */

import { countsModel, type Spending } from '../../plugins/billing/budgets/scope.ts';
import type { StoredAuthorization } from '../../plugins/billing/ledger/authorization-rows.ts';
import type { EntryRow } from '../../plugins/billing/ledger/entry-rows.ts';
import type { AttemptNote, EndRecord, JournalRecord } from '../../plugins/billing/model/records.ts';
import type { Attribution } from '../../plugins/common/domain/accounts.ts';

/** A row of the ledger. */
export interface Row {
  readonly seq: number;
  readonly account: string;
  readonly kind: 'CHARGE' | EntryRow['kind'];
  readonly request: string | undefined;
  readonly grantId: string | undefined;
  readonly reference: string | undefined;
  readonly amount: bigint;
  readonly revenue: bigint;
  readonly funding: bigint;
  readonly balanceAfter: bigint;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/** What changes the money that may be spent, without a call of this process: a row of the ledger, or a deposit that begins or ends. */
export interface Entry extends Omit<Row, 'kind' | 'seq' | 'balanceAfter' | 'revenue' | 'funding'> {
  readonly kind: Row['kind'] | 'HOLD' | EndRecord['kind'];
  /** When its transaction ran, where the row has another time. */
  readonly postedAt?: number;
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

export function isEnd(record: JournalRecord): record is EndRecord {
  return record.kind === 'SETTLE' || record.kind === 'VOID';
}

export function costIn(record: EndRecord): bigint {
  return record.kind === 'SETTLE' ? BigInt(record.cost) : 0n;
}

/** The row that an end makes, if it cost something. */
export function chargeOf(record: EndRecord): Draft {
  const { id: request, account, at } = record;
  const cost = costIn(record);
  const none = { grantId: undefined, reference: undefined, funding: 0n };
  return { ...none, account, kind: 'CHARGE', request, amount: -cost, revenue: cost, at };
}

/** Throws as the constraint does. */
export function checkCall(record: EndRecord): void {
  if (costIn(record) < 0n) throw new Error('violates check constraint "calls_cost_check"');
}

const results = ['running', 'not_sent', 'refused', 'unknown', 'answered'] as const;
const bearers = [undefined, 'client', 'operator'] as const;

/** The attempts of a record, which has them by place, or, from earlier versions and scripts, by name. */
export function attemptsIn({ attempts, provider, target }: EndRecord): AttemptNote[] {
  return attempts.map((stored): AttemptNote => {
    if (!Array.isArray(stored)) return stored as AttemptNote;
    const places = stored.map((value) => value ?? undefined);
    const [number, by, model, credential, protocol, startedAt, result, status, durationMs, bearer] = places;
    const [absorbed, error, usage, estimated] = places.slice(10);
    return {
      ...{ number, credential, protocol, startedAt, status, durationMs, absorbed, error, usage, estimated },
      ...{ provider: by === 0 ? provider : by, model: model === 0 ? target : model },
      ...{ result: results[result as number], bearer: bearers[bearer as number] },
    } as AttemptNote;
  });
}

/** Whether a vendor may have worked for a request. */
export function mayHaveRun(record: EndRecord): boolean {
  return attemptsIn(record).some(({ result }) => result !== 'refused' && result !== 'not_sent');
}

/** What a scope was charged since `from`, and what is set aside for its orders. */
export function spentIn(
  calls: Iterable<EndRecord>,
  deposits: Iterable<StoredAuthorization & { readonly account: string }>,
  spending: Spending,
  from: number,
): { readonly spent: bigint; readonly ordered: bigint } {
  let [spent, ordered] = [0n, 0n];
  const { accountId, key, person, project, tag } = spending;
  const counts = (call: Pick<EndRecord, 'account' | 'key' | 'model' | 'person' | 'project' | 'tags'>) =>
    (key === undefined ? call.account === accountId : call.key === key) &&
    (person === undefined || call.person === person) &&
    (project === undefined || call.project === project) &&
    (tag === undefined || call.tags?.split(',').includes(tag) === true) &&
    countsModel(spending, call.model);
  for (const call of calls) if (call.at >= from && counts(call)) spent += costIn(call);
  for (const { account, terms, held } of deposits) {
    const { attribution, ...call } = JSON.parse(terms) as {
      key: string;
      model: string;
      attribution?: Attribution;
      tags?: string;
    };
    if (counts({ account, person: attribution?.person, project: attribution?.project, ...call })) ordered += held;
  }
  return { spent, ordered };
}
