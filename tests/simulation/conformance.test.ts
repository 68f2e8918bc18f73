/**
 * The database in memory means what the real ones do: the same random histories of claims, batches and entries, on it and on
 * the embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers and leave the same rows.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import type { PlanTerms } from '../../core/vocabulary.ts';
import type { Funds } from '../../plugins/billing/funds.ts';
import type { JournalRecord } from '../../plugins/billing/records.ts';
import { rowsOf, tablesOf } from '../../plugins/billing/sql.ts';
import { type Store, sqlStore } from '../../plugins/billing/store.ts';
import { keepUp } from '../../plugins/billing/terms.ts';
import { openDatabase, type TestDatabase } from '../helpers/database.ts';
import { lineOf } from '../plugins/billing/world.ts';
import { Chance } from './chance.ts';
import { MemoryLedger } from './memory-ledger.ts';

const accounts = ['alice', 'bob', 'carol'] as const;
const migrations = new URL('../../plugins/billing/migrations/', import.meta.url);
const databases: TestDatabase[] = [];
after(() => Promise.all(databases.map((database) => database.close())));

const plan: PlanTerms = {
  name: 'plan',
  limits: {},
  models: undefined,
  multiplier: undefined,
  grant: { amount: money(5_000n), every: 'day' },
  windows: { '5h': money(1_500n) },
};

/** What one history does to a store, step after step; each step's answer as plain values. */
type Step = (store: Store) => Promise<unknown>;

class Script {
  readonly steps: Step[] = [];
  readonly #chance: Chance;
  readonly #requests: string[];
  readonly #texts: { text: string; ids: string[]; applied: number; journal: string }[] = [];
  readonly #owners = new Map<string, string>();
  #at = Date.UTC(2027, 0, 1);
  #applied = 0;
  #count = 0;

  constructor(seed: number, length: number) {
    this.#chance = new Chance(seed);
    const id = (index: number) =>
      `01a3185c-${seed.toString(16).padStart(4, '0')}-7000-8000-${String(index).padStart(12, '0')}`;
    this.#requests = Array.from({ length: 12 }, (_, index) => id(index));
    this.#claim();
    for (let step = 0; step < length; step += 1) {
      this.#at += this.#chance.pick([0, 1, 60_000, 7 * 3_600_000, 30 * 3_600_000]);
      this.#chance
        .pick([this.#claim, this.#batch, this.#batch, this.#batch, this.#again, this.#entry, this.#funds])
        .call(this);
    }
  }

  #claim(): void {
    const journal = this.#chance.pick(['one', 'two']);
    this.#count += 1;
    const owner = `owner-${this.#count}`;
    this.#owners.set(journal, owner);
    // Now and then the epoch is an old one.
    const epoch = this.#chance.oneIn(8) ? 1 : this.#count;
    this.steps.push(async (store) => [await store.claim(journal, owner, epoch), await store.cursorOf(journal)]);
  }

  #batch(): void {
    const chance = this.#chance;
    const records = Array.from({ length: chance.between(1, 6) }, () => this.#record());
    // Now and then the batch names an account too few, or comes from a process that was shut out.
    const named = new Set(records.flatMap((record) => ('account' in record ? [record.account] : [])));
    if (chance.oneIn(15)) named.delete(chance.pick(accounts));
    const journal = chance.pick(['one', 'two']);
    this.#applied += records.length;
    const text = lineOf(this.#applied, ...records).toString('utf8');
    const given = { text, ids: [...named], applied: this.#applied, journal };
    this.#texts.push(given);
    this.#push(given, chance.oneIn(10) ? 'nobody' : this.#owners.get(journal));
  }

  /** A batch whose answer was lost is applied again. */
  #again(): void {
    if (this.#texts.length > 0) {
      const given = this.#chance.pick(this.#texts);
      this.#push(given, this.#owners.get(given.journal));
    }
  }

  #push(
    { text, ids, applied, journal }: { text: string; ids: string[]; applied: number; journal: string },
    owner = 'nobody',
  ) {
    this.steps.push(async (store) => plain(await store.apply(text, ids, { journal, owner, applied })));
  }

  #funds(): void {
    const at = this.#at;
    this.steps.push(async (store) => plain(await store.funds([...accounts, 'nobody'], at)));
  }

  #record(): JournalRecord {
    const chance = this.#chance;
    const index = chance.below(this.#requests.length);
    const shared = { id: this.#requests[index]!, at: this.#at, account: accounts[index % accounts.length]! };
    const amount = String(chance.below(900));
    const price = { input: '1', output: '2' };
    switch (chance.below(5)) {
      case 0:
      case 1:
        return {
          ...shared,
          kind: 'HOLD',
          key: 'k',
          model: 'm',
          input: 1,
          output: 2,
          amount,
          price,
          ratio: '1/1',
          version: 'v',
        };
      case 2:
        return { ...shared, kind: 'EXTEND', part: chance.between(1, 2), output: 5, amount };
      case 3:
        return { ...shared, kind: 'VOID', model: 'm', held: amount, reason: 'refused', attempts: this.#attempts() };
      default:
        return {
          ...shared,
          kind: 'SETTLE',
          key: 'k',
          model: 'm',
          input: 1,
          held: amount,
          cost: String(chance.below(1_200)),
          usage: { input: chance.below(9), output: 2 },
          estimated: chance.oneIn(2),
          terminal: true,
          reason: 'answered',
          price,
          ratio: '1/1',
          version: 'v',
          ...(chance.oneIn(4) ? { absorbed: String(chance.below(50)) } : {}),
          attempts: this.#attempts(),
        };
    }
  }

  #attempts() {
    return Array.from({ length: this.#chance.below(3) }, (_, index) => ({
      number: index + 1,
      provider: 'p',
      model: 'pm',
      credential: 'p#1',
      protocol: 'chat',
      startedAt: this.#at,
      result: this.#chance.pick(['answered', 'refused'] as const),
    }));
  }

  #entry(): void {
    const chance = this.#chance;
    const [account, at, amount] = [chance.pick(accounts), this.#at, money(BigInt(chance.between(1, 4_000)))];
    const reference = `reference-${chance.below(12)}`;
    // A time of its own for each, because of two that end together the id decides, and ids are drawn anew.
    this.#count += 1;
    const expiresAt = chance.oneIn(2) ? undefined : at + 3_600_000 * chance.between(1, 40) + this.#count;
    const grant = { kind: 'top-up', reason: 'test', reference, expiresAt };
    const fate = chance.below(5);
    this.steps.push((store) =>
      store.transact(account, at, async (entries) => {
        if (fate < 2) await entries.credit(amount, grant);
        else if (fate === 2) await entries.debit(amount, { reason: 'test', reference: `debit-${reference}` });
        else await keepUp(entries, plan);
        if (fate === 4) await entries.credit(amount, { ...grant, reference: `${reference}-undone-${at}` });
        if (fate === 4) throw new GatewayError('conflict', 'thought better of it');
        return String(entries.balance);
      }),
    );
  }
}

/** Values that can be compared: amounts as digits, grants without their ids. */
function plain(found: Map<string, Money | Funds>): unknown {
  return [...found]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([id, value]) => {
      if (typeof value === 'bigint') return [id, String(value)];
      const pots = value.pool?.pots.map(({ remaining, expiresAt }) => [String(remaining), expiresAt]);
      // What others have spent may stand beside it, and matters to nobody.
      const own = [...(value.pool?.spent ?? [])].filter(([key]) => key.startsWith(`plan:${id}:`));
      const spent = own.map(([key, sum]) => `${key} ${sum}`).sort();
      return [id, String(value.balance), pots, pots === undefined ? undefined : spent];
    });
}

/** A step's answer, or what kind of refusal it met. */
async function answerOf(step: Step, store: Store): Promise<unknown> {
  try {
    return await step(store);
  } catch (error) {
    return error instanceof GatewayError ? `${error.kind} ${error.code}` : `refused: ${(error as Error).name}`;
  }
}

async function rowsIn(database: TestDatabase): Promise<unknown> {
  const table = tablesOf(database.schema);
  const read = async (statement: ReturnType<typeof sql>) =>
    (await rowsOf<{ row: string }>(database.orm, statement)).map(({ row }) => row);
  return {
    ledger:
      await read(sql`select concat_ws(' ', account_id, kind, coalesce(request_id::text, '-'), part, amount, held, revenue,
      funding, absorbed, balance_after, round(extract(epoch from created_at) * 1000)::bigint, coalesce(reference, '-')) as row
      from ${table('ledger')} order by seq`),
    balances: await read(sql`select concat_ws(' ', account_id, balance, held) as row from ${table('balances')}
      where balance <> 0 or held <> 0 order by account_id`),
    totals: await read(
      sql`select concat_ws(' ', available, held, revenue, funding, absorbed) as row from ${table('totals')}`,
    ),
    usage: await read(sql`select concat_ws(' ', request_id, account_id, cost, held, classes->>'input', estimated) as row
      from ${table('usage')} order by request_id`),
    attempts: await read(sql`select concat_ws(' ', request_id, number, result) as row from ${table('attempts')}
      order by request_id, number`),
    pots: await read(sql`select concat_ws(' ', grants.reference, remaining) as row from ${table('pots')} as pots
      join ${table('grants')} as grants on grants.id = pots.grant_id order by 1`),
    draws:
      await read(sql`select concat_ws(' ', draws.amount, grants.reference, round(extract(epoch from held_at) * 1000)::bigint)
      as row from ${table('draws')} as draws join ${table('grants')} as grants on grants.id = draws.grant_id order by 1`),
    cursors: await read(
      sql`select concat_ws(' ', journal, owner, epoch, applied) as row from ${table('journal_cursor')} order by 1`,
    ),
  };
}

function rowsOfMemory(memory: MemoryLedger): unknown {
  const { totals, accounts: balances } = memory;
  const referenceOf = (grantId: string) => memory.grantsById.get(grantId)!.reference;
  const words = (...values: unknown[]) => values.map(String).join(' ');
  return {
    ledger: memory.rows.map((row) =>
      words(row.account, row.kind, row.request ?? '-', row.part, row.amount, row.held, row.revenue, row.funding).concat(
        ` ${words(row.absorbed, row.balanceAfter, row.at, row.reference ?? '-')}`,
      ),
    ),
    balances: [...balances]
      .filter(([, { balance, held }]) => balance !== 0n || held !== 0n)
      .map(([id, { balance, held }]) => words(id, balance, held))
      .sort(),
    totals: [words(totals.available, totals.held, totals.revenue, totals.funding, totals.absorbed)],
    usage: [...memory.usage.values()]
      .map((record) =>
        words(record.id, record.account, record.cost, record.held, record.usage.input, record.estimated ? 't' : 'f'),
      )
      .sort(),
    attempts: [...memory.attempts].map(([key, { result }]) => words(key, result)).sort(),
    pots: [...memory.pots.byGrant].map(([id, { pot }]) => words(referenceOf(id), pot.remaining)).sort(),
    draws: memory.pots.draws.map(({ amount, grantId, heldAt }) => words(amount, referenceOf(grantId), heldAt)).sort(),
    cursors: [...memory.cursors]
      .map(([journal, { owner, epoch, applied }]) => words(journal, owner, epoch, applied))
      .sort(),
  };
}

/** Rows of texts without an order of their own compare as sorted by this process. */
function sorted(tables: unknown): unknown {
  const entries = Object.entries(tables as Record<string, string[]>);
  return Object.fromEntries(entries.map(([name, rows]) => [name, name === 'ledger' ? rows : [...rows].sort()]));
}

test('the database in memory answers as a real one does, and is left with the same rows', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase();
    databases.push(database);
    await database.migrate('billing', migrations);
    const [memory, real] = [new MemoryLedger(), sqlStore(database)];
    const { steps } = new Script(seed, 60);
    for (const [index, step] of steps.entries()) {
      assert.deepEqual(await answerOf(step, memory), await answerOf(step, real), `history ${seed}, step ${index}`);
    }
    assert.deepEqual(sorted(rowsOfMemory(memory)), sorted(await rowsIn(database)), `history ${seed}`);
  }
});
