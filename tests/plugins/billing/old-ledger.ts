/**
 * The ledger as it was before it had movements alone: rows of holds, extensions, settlements and voids, with `usage` and
 * `attempts` beside them. Keeps, as plain sums, what a migration must leave as it is.
 */
import { type SQL, sql } from 'drizzle-orm';
import { remainingIn } from '../../../plugins/billing/grants/allocations.ts';
import { allocate, type GrantBalance, type Spent } from '../../../plugins/billing/grants/balances.ts';
import type { AttemptNote } from '../../../plugins/billing/model/records.ts';
import { jsonOf, tablesOf } from '../../../plugins/billing/model/sql.ts';
import type { Database } from '../../../plugins/common/domain/database.ts';
import { money } from '../../../plugins/common/domain/money.ts';

type Row = Record<string, unknown>;

/** A line of a statement: a movement, and the money of the account after it. */
export interface OldLine {
  readonly kind: string;
  readonly requestId: string | undefined;
  readonly change: bigint;
  readonly balanceAfter: bigint;
  readonly at: number;
}

/** A call that has ended. */
interface OldCall {
  readonly id: string;
  readonly account: string;
  readonly key: string | null;
  readonly settled: boolean;
  readonly reason: string | null;
  readonly held: bigint;
  readonly cost: bigint;
  readonly own: bigint | null;
  readonly absorbed: bigint;
  readonly attempts: AttemptNote[];
  readonly heldAt: number;
  readonly at: number;
}

export interface OldHold {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly at: number;
  readonly isAuthorization: boolean;
  held: bigint;
  extensions: number;
}

interface Account {
  balance: bigint;
  held: bigint;
  readonly grants: GrantBalance[];
  readonly spent: Spent;
  readonly topUps: { readonly id: string; left: bigint }[];
}

interface NewRow {
  readonly kind: string;
  readonly amount: bigint;
  readonly held?: bigint;
  readonly revenue?: bigint;
  readonly absorbed?: bigint;
  readonly request?: string;
  readonly part?: number;
  readonly grant?: string;
  readonly reference?: string;
  readonly detail: Row;
}

const dayMs = 86_400_000;
/** One nano-USD for each token. */
const price = { input: '1000000' };

export class OldLedger {
  readonly accounts = new Map<string, Account>();
  readonly lines = new Map<string, OldLine[]>();
  readonly calls: OldCall[] = [];
  readonly open: OldHold[] = [];
  readonly refunded = new Map<string, bigint>();
  now = Date.UTC(2026, 8, 1);
  #ids = 0;
  readonly #tables: Record<string, Row[]> = {
    ...{ grants: [], ledger: [], pots: [], draws: [], usage: [], attempts: [], refunds: [], deposits: [], leases: [] },
  };

  account(id: string): Account {
    const known = this.accounts.get(id);
    if (known !== undefined) return known;
    const account: Account = { balance: 0n, held: 0n, grants: [], spent: new Map(), topUps: [] };
    this.accounts.set(id, account);
    this.lines.set(id, []);
    return account;
  }

  newId(): string {
    return `0199${(++this.#ids).toString(16).padStart(4, '0')}-0000-7000-8000-000000000000`;
  }

  post(accountId: string, { kind, amount, held = 0n, revenue = 0n, absorbed = 0n, ...more }: NewRow): number {
    const account = this.account(accountId);
    account.balance += amount;
    account.held += held;
    const funding = -amount - held - revenue - absorbed;
    this.#tables['ledger']!.push({
      ...{ account_id: accountId, kind, request_id: more.request, part: more.part ?? 0, grant_id: more.grant },
      ...{
        reference: more.reference,
        amount: `${amount}`,
        held: `${held}`,
        revenue: `${revenue}`,
        funding: `${funding}`,
      },
      ...{ absorbed: `${absorbed}`, balance_after: `${account.balance}`, detail: more.detail, created_at: this.now },
    });
    if (amount + held !== 0n)
      this.lines.get(accountId)!.push({
        ...{ kind, requestId: more.request, change: amount + held },
        ...{ balanceAfter: account.balance + account.held, at: this.now },
      });
    return this.#tables['ledger']!.length;
  }

  #draw(seq: number, drawn: ReturnType<typeof allocate>, heldAt: number): void {
    for (const { grant, amount } of drawn)
      this.#tables['draws']!.push({
        ...{ seq, grant_id: grant.grantId, amount: `${amount}`, source: grant.windows?.source, held_at: heldAt },
      });
  }

  #wallet({ balance, held, grants }: Account): bigint {
    return balance + held - remainingIn(grants);
  }

  credit(accountId: string, amount: bigint, lastsDays: number, dayLimit: bigint | undefined): void {
    const account = this.account(accountId);
    const grantId = this.newId();
    const overdrawn = -this.#wallet(account);
    const expiresAt = this.now + lastsDays * dayMs;
    const windows =
      dayLimit === undefined || lastsDays === 0
        ? undefined
        : { source: `plan ${accountId}`, anchor: Date.UTC(2026, 0, 5), limits: { day: money(dayLimit) } };
    const [kind, reason, reference] = ['top-up', 'test', `credit ${grantId}`];
    this.#tables['grants']!.push({
      ...{ id: grantId, account_id: accountId, kind, amount: `${amount}`, reason, reference, created_at: this.now },
      ...{ expires_at: lastsDays === 0 ? undefined : expiresAt, source: windows?.source, anchor: windows?.anchor },
      windows: windows === undefined ? undefined : { day: `${dayLimit}` },
    });
    const seq = this.post(accountId, { kind: 'CREDIT', amount, grant: grantId, detail: { kind, reason, reference } });
    if (lastsDays === 0) {
      account.topUps.push({ id: grantId, left: amount });
      return;
    }
    const grant: GrantBalance = { grantId, remaining: money(amount), expiresAt, windows };
    account.grants.push(grant);
    const due = overdrawn < amount ? overdrawn : amount;
    if (due > 0n) this.#draw(seq, allocate([grant], account.spent, 0n, due, this.now), this.now);
  }

  debit(accountId: string, amount: bigint): void {
    const account = this.account(accountId);
    const wallet = this.#wallet(account);
    const expired = remainingIn(account.grants.filter(({ expiresAt }) => expiresAt <= this.now));
    if (account.balance - expired < amount) return;
    const reference = `debit ${this.newId()}`;
    const seq = this.post(accountId, { kind: 'DEBIT', amount: -amount, reference, detail: { reason: 'test' } });
    this.#draw(seq, allocate(account.grants, account.spent, wallet, amount, this.now), this.now);
  }

  /** At a price of 0 too: a row that moves nothing. */
  buy(accountId: string, cost: bigint): void {
    const account = this.account(accountId);
    if (this.#wallet(account) - account.held < cost) return;
    const reference = `sale ${this.newId()}`;
    this.post(accountId, { kind: 'PURCHASE', amount: -cost, revenue: cost, reference, detail: { reason: 'pro' } });
  }

  payOut(accountId: string, amount: bigint): void {
    const account = this.account(accountId);
    const topUp = account.topUps.find(({ left }) => left >= amount);
    if (topUp === undefined || this.#wallet(account) - account.held < amount) return;
    topUp.left -= amount;
    const reference = `payout ${this.newId()}`;
    this.post(accountId, { kind: 'PAYOUT', amount: -amount, grant: topUp.id, reference, detail: { reason: 'test' } });
  }

  lapse(accountId: string): void {
    for (const grant of this.account(accountId).grants) {
      if (grant.expiresAt > this.now || grant.remaining === 0n) continue;
      const detail = { reason: 'what was left of a grant expired', grant: grant.grantId };
      this.post(accountId, { kind: 'LAPSE', amount: -grant.remaining, grant: grant.grantId, detail });
      grant.remaining = money(0n);
    }
  }

  hold(accountId: string, amount: bigint, key: string, isAuthorization: boolean): void {
    const hold = {
      id: this.newId(),
      account: accountId,
      key,
      at: this.now,
      held: amount,
      extensions: 0,
      isAuthorization,
    };
    const detail = { model: 'm', input_tokens: 1, output_tokens: 1 };
    this.post(accountId, { kind: 'HOLD', amount: -amount, held: amount, request: hold.id, detail });
    this.open.push(hold);
  }

  extend(hold: OldHold, amount: bigint): void {
    if (hold.isAuthorization) return;
    hold.held += amount;
    hold.extensions += 1;
    const part = hold.extensions;
    const detail = { output_tokens: part };
    this.post(hold.account, { kind: 'EXTEND', amount: -amount, held: amount, request: hold.id, part, detail });
  }

  /** `cost`: undefined where it is not charged. `tries`: attempts before the last one, each of which cost `absorbed`. */
  end(hold: OldHold, cost: bigint | undefined, tries: number, absorbed: bigint): void {
    const { id, account: accountId, key, held, at: heldAt } = hold;
    this.open.splice(this.open.indexOf(hold), 1);
    const account = this.account(accountId);
    const wallet = this.#wallet(account);
    const attempts = this.#attempts(id, accountId, cost !== undefined, tries, absorbed);
    const bears = absorbed * BigInt(tries);
    const own = cost === undefined || cost % 3n === 0n ? null : cost / 2n;
    const reason = cost === undefined ? 'unknown' : 'answered';
    const formula = {
      usage: { input: Number(cost ?? 0n) },
      price,
      ratio: '1/1',
      price_version: 'v1',
      estimated: false,
    };
    // What set a hold's end before there were voids.
    const kind = cost !== undefined ? 'SETTLE' : tries === 0 ? 'EXPIRE' : 'VOID';
    const seq = this.post(accountId, {
      ...{ kind, amount: held - (cost ?? 0n), held: -held, revenue: cost ?? 0n, absorbed: bears, request: id },
      detail: { model: 'm', reason, ...(cost === undefined ? {} : formula) },
    });
    if (cost !== undefined) {
      this.#draw(seq, allocate(account.grants, account.spent, wallet, cost, heldAt), heldAt);
      this.#tables['usage']!.push({
        ...{
          request_id: id,
          account_id: accountId,
          key_id: key,
          model: 'm',
          provider: 'vendor',
          target_model: 'vendor-m',
        },
        ...{ classes: formula.usage, estimated_input: 1, held: `${held}`, cost: `${cost}`, own_cost: own?.toString() },
        ...{ estimated: false, terminal: true, price_version: 'v1', ratio: '1/1', created_at: this.now, plan: 'free' },
      });
    }
    this.calls.push({
      ...{
        id,
        account: accountId,
        key: cost === undefined ? null : key,
        settled: cost !== undefined,
        reason,
        held,
        own,
      },
      ...{ cost: cost ?? 0n, absorbed: bears, attempts, heldAt, at: this.now },
    });
  }

  #attempts(id: string, account: string, charged: boolean, tries: number, absorbed: bigint): AttemptNote[] {
    const target = { provider: 'vendor', model: 'vendor-m', credential: 'vendor#1', protocol: 'chat' };
    const notes: AttemptNote[] = [];
    const add = (note: Omit<AttemptNote, 'number' | keyof typeof target | 'startedAt' | 'durationMs'>) => {
      const number = notes.length + 1;
      notes.push({ number, ...target, startedAt: this.now - 5, durationMs: 5, ...note } as AttemptNote);
    };
    for (let index = 0; index < tries; index++)
      add({
        ...{ result: 'unknown', error: 'reset' },
        ...(absorbed === 0n
          ? {}
          : { bearer: 'operator' as const, absorbed: `${absorbed}`, usage: { input: 3 }, estimated: true }),
      } as never);
    if (charged) add({ result: 'answered', status: 200, bearer: 'client' } as never);
    for (const note of notes)
      this.#tables['attempts']!.push({
        ...{ request_id: id, number: note.number, account_id: account, ...target, result: note.result },
        ...{
          status: note.status,
          duration_ms: 5,
          error: note.error,
          started_at: note.startedAt,
          borne_by: note.bearer,
        },
        ...{ absorbed: note.absorbed ?? '0', consumed: note.usage, estimated: note.estimated ?? false },
      });
    return notes;
  }

  refund({ id, account, cost, settled }: OldCall, amount: bigint): void {
    const before = this.refunded.get(id) ?? 0n;
    if (!settled || before + amount > cost) return;
    this.refunded.set(id, before + amount);
    const grantId = this.newId();
    const reference = `refund ${grantId}`;
    this.#tables['grants']!.push({
      ...{
        id: grantId,
        account_id: account,
        kind: 'refund',
        amount: `${amount}`,
        reason: 'test',
        reference,
        created_at: this.now,
      },
    });
    this.#tables['refunds']!.push({ grant_id: grantId, request_id: id, amount: `${amount}` });
    const detail = { kind: 'refund', reason: 'test', reference, of: id };
    this.post(account, { kind: 'REFUND', amount, revenue: -amount, grant: grantId, detail });
    this.account(account).topUps.push({ id: grantId, left: 0n });
  }

  /** What is open now, in rows of its own; and a lease of half of what may be spent. */
  async save({ orm, schema }: Database): Promise<void> {
    const table = tablesOf(schema);
    for (const { id, account, key, held, isAuthorization, at } of this.open)
      if (isAuthorization)
        this.#tables['deposits']!.push({
          request_id: id,
          account_id: account,
          held: `${held}`,
          terms: { key },
          created_at: at,
        });
    for (const [id, { balance, grants }] of this.accounts) {
      for (const { grantId, remaining, expiresAt } of grants)
        this.#tables['pots']!.push({
          grant_id: grantId,
          account_id: id,
          remaining: `${remaining}`,
          expires_at: expiresAt,
        });
      const expires = { node: 'node', epoch: 'e', expires_at: this.now + 3_650 * dayMs };
      if (balance > 1n) this.#tables['leases']!.push({ account_id: id, amount: `${balance / 2n}`, ...expires });
    }
    const balances = Array.from(this.accounts, ([account_id, { balance, held }]) => {
      return { account_id, balance: `${balance}`, held: `${held}` };
    });
    await orm.execute(insertAll(table('balances'), balances));
    for (const [name, rows] of Object.entries(this.#tables)) await orm.execute(insertAll(table(name), rows));
    await orm.execute(sql`
      update ${table('totals')} set (available, held, revenue, funding, absorbed) = (select coalesce(sum(amount), 0),
        coalesce(sum(held), 0), coalesce(sum(revenue), 0), coalesce(sum(funding), 0), coalesce(sum(absorbed), 0)
        from ${table('ledger')})`);
  }
}

/** Rows in their order; numbers in columns of times are milliseconds. */
function insertAll(table: SQL, rows: readonly Row[]): SQL {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (names.length === 0) return sql`select 1`;
  const list = (columns: SQL[]) => sql.join(columns, sql`, `);
  const isTime = (name: string) => name.endsWith('_at') || name === 'anchor';
  const value = (name: string) =>
    isTime(name) ? sql`to_timestamp((given->>${name})::bigint / 1000.0)` : sql`typed.${sql.identifier(name)}`;
  const untimed = rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !isTime(name))));
  return sql`
    insert into ${table} (${list(names.map((name) => sql.identifier(name) as unknown as SQL))})
    select ${list(names.map(value))}
    from json_array_elements(${jsonOf(rows)}) with ordinality as one (given, place)
    join (select *, row_number() over () as place from json_populate_recordset(null::${table}, ${jsonOf(untimed)})) as typed using (place)
    order by place`;
}
