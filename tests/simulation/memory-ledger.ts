/**
 * The ledger's database in memory: the meaning of every statement of the store, nothing of its text. The conformance test
 * holds it against the embedded database and PostgreSQL.
 */
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import { type Cursor, ShutOutError } from '../../plugins/billing/batch.ts';
import type { Grant } from '../../plugins/billing/grants.ts';
import type {
  AttemptNote,
  EndRecord,
  ExtendRecord,
  HoldRecord,
  JournalRecord,
  SettleRecord,
} from '../../plugins/billing/records.ts';
import type { Store } from '../../plugins/billing/store.ts';

type PostingRecord = HoldRecord | ExtendRecord | EndRecord;

export interface Row {
  readonly seq: number;
  readonly account: string;
  readonly kind: PostingRecord['kind'] | 'CREDIT';
  readonly request: string | undefined;
  readonly part: number;
  readonly grant: Grant | undefined;
  readonly amount: bigint;
  readonly held: bigint;
  readonly revenue: bigint;
  readonly funding: bigint;
  readonly balanceAfter: bigint;
  readonly record: PostingRecord | undefined;
}

export interface StoredGrant extends Grant {
  readonly account: string;
  readonly amount: bigint;
}

export interface StoredAttempt {
  readonly request: string;
  readonly note: AttemptNote;
}

export interface Totals {
  available: bigint;
  held: bigint;
  revenue: bigint;
  funding: bigint;
}

/** The rows of one request, by what the unique indexes know of them. */
interface Known {
  hold: boolean;
  ended: boolean;
  parts: number[];
}

type Draft = Omit<Row, 'seq' | 'balanceAfter'>;

export class MemoryLedger implements Store {
  readonly rows: Row[] = [];
  readonly balancesByAccount = new Map<string, bigint>();
  readonly grants = new Map<string, StoredGrant>();
  readonly usage = new Map<string, SettleRecord>();
  readonly attempts = new Map<string, StoredAttempt>();
  readonly totals: Totals = { available: 0n, held: 0n, revenue: 0n, funding: 0n };
  readonly cursors = new Map<string, { owner: string; applied: number }>();
  readonly #known = new Map<string, Known>();

  async claim(journal: string, owner: string): Promise<number> {
    const cursor = this.cursors.get(journal);
    const applied = cursor?.applied ?? 0;
    this.cursors.set(journal, { owner, applied });
    return applied;
  }

  async apply(text: string, accountIds: readonly string[], cursor: Cursor): Promise<Map<string, Money>> {
    const given = recordsOf(text);
    const fresh = given.map(postingOf).filter((draft) => !this.#isKnown(draft));
    const locked = new Map(accountIds.map((id) => [id, this.balancesByAccount.get(id) ?? 0n]));
    const running = new Map(locked);
    const rows: Row[] = [];
    for (const draft of fresh) {
      const before = running.get(draft.account);
      if (before === undefined) throw new Error('null value in column "balance_after" violates not-null constraint');
      running.set(draft.account, before + draft.amount);
      // Its number is given when it is inserted: of two alike in one statement the second is left out.
      rows.push({ ...draft, seq: 0, balanceAfter: before + draft.amount });
    }
    for (const record of given) checkUsage(record);
    const claimed = this.cursors.get(cursor.journal);
    if (claimed?.owner !== cursor.owner)
      throw new ShutOutError(`journal ${cursor.journal} now belongs to another process`);
    // From here on nothing can fail: it is the commit.
    for (const [accountId, balance] of locked) this.balancesByAccount.set(accountId, balance);
    for (const row of rows) if (!this.#isKnown(row)) this.#insert(row);
    for (const record of given) this.#note(record);
    claimed.applied = Math.max(claimed.applied, cursor.applied);
    return new Map(accountIds.map((id) => [id, money(this.balancesByAccount.get(id)!)]));
  }

  async balances(accountIds: readonly string[]): Promise<Map<string, Money>> {
    return new Map(accountIds.map((id) => [id, money(this.balancesByAccount.get(id) ?? 0n)]));
  }

  async credit(account: string, amount: Money, grant: Grant): Promise<Money> {
    if (amount <= 0n || amount > 1_000_000_000_000_000_000n) {
      throw new GatewayError('invalid_request', 'The amount must be above 0 and at most 1,000,000,000 USD.');
    }
    const before = this.balancesByAccount.get(account) ?? 0n;
    const known = this.grants.get(grant.reference);
    if (known !== undefined) {
      if (known.account !== account || known.amount !== amount) throw new GatewayError('conflict', 'used before');
      this.balancesByAccount.set(account, before);
      return money(before);
    }
    this.grants.set(grant.reference, { ...grant, account, amount });
    const none = { request: undefined, part: 0, held: 0n, revenue: 0n, record: undefined };
    this.balancesByAccount.set(account, before);
    this.#insert({
      ...none,
      seq: 0,
      account,
      kind: 'CREDIT',
      grant,
      amount,
      funding: -amount,
      balanceAfter: before + amount,
    });
    return money(before + amount);
  }

  #isKnown({ request, kind, part }: Draft): boolean {
    const known = request === undefined ? undefined : this.#known.get(request);
    if (known === undefined) return false;
    if (kind === 'HOLD') return known.hold;
    if (kind === 'EXTEND') return known.parts.includes(part);
    return known.ended;
  }

  #insert(row: Row): void {
    this.rows.push({ ...row, seq: this.rows.length + 1 });
    this.balancesByAccount.set(row.account, this.balancesByAccount.get(row.account)! + row.amount);
    this.totals.available += row.amount;
    this.totals.held += row.held;
    this.totals.revenue += row.revenue;
    this.totals.funding += row.funding;
    if (row.request === undefined) return;
    let known = this.#known.get(row.request);
    if (known === undefined) {
      known = { hold: false, ended: false, parts: [] };
      this.#known.set(row.request, known);
    }
    if (row.kind === 'HOLD') known.hold = true;
    else if (row.kind === 'EXTEND') known.parts.push(row.part);
    else known.ended = true;
  }

  /** Usage and attempts stand beside the rows, once each. */
  #note(record: PostingRecord): void {
    if (record.kind !== 'SETTLE' && record.kind !== 'VOID') return;
    if (record.kind === 'SETTLE' && !this.usage.has(record.id)) this.usage.set(record.id, record);
    for (const note of record.attempts) {
      const key = `${record.id} ${note.number}`;
      if (!this.attempts.has(key)) this.attempts.set(key, { request: record.id, note });
    }
  }
}

/** The records of journal lines `CRC FIRST [RECORD, …]` that make a row. */
function recordsOf(text: string): PostingRecord[] {
  const found: PostingRecord[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    for (const record of JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]) {
      if (record.kind !== 'SENT' && record.kind !== 'PROGRESS') found.push(record);
    }
  }
  return found;
}

function postingOf(record: PostingRecord): Draft {
  const { kind, id: request, account } = record;
  const shared = { account, kind, request, grant: undefined, funding: 0n, record };
  if (record.kind === 'HOLD' || record.kind === 'EXTEND') {
    const amount = BigInt(record.amount);
    const part = record.kind === 'EXTEND' ? record.part : 0;
    return { ...shared, part, amount: -amount, held: amount, revenue: 0n };
  }
  const held = BigInt(record.held);
  const cost = record.kind === 'SETTLE' ? BigInt(record.cost) : 0n;
  return { ...shared, part: 0, amount: held - cost, held: -held, revenue: cost };
}

function checkUsage(record: PostingRecord): void {
  if (record.kind === 'SETTLE' && BigInt(record.cost) < 0n)
    throw new Error('violates check constraint "usage_cost_check"');
}
