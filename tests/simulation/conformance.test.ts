/**
 * The database in memory means what the real ones do: the same random histories of claims, batches and entries, on it and on
 * the embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers and leave the same rows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Contents } from '../../plugins/billing/archive/contents.ts';
import { idIn, linesOf, monthAt } from '../../plugins/billing/archive/format.ts';
import { archiveRound } from '../../plugins/billing/archive/round.ts';
import { type ArchiveRows, sqlArchiveRows } from '../../plugins/billing/archive/rows.ts';
import { refundRequest } from '../../plugins/billing/ledger/refunds.ts';
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import { rowsOf, tablesOf } from '../../plugins/billing/model/sql.ts';
import { type Store, sqlStore } from '../../plugins/billing/store.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { openDatabase, type TestDatabase } from '../helpers/database.ts';
import { Script, type Step } from './conformance-script.ts';
import { MemoryArchive } from './memory-archive.ts';
import { MemoryLedger } from './memory-ledger.ts';

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
      await read(sql`select concat_ws(' ', account_id, kind, coalesce(request_id::text, '-'), amount, revenue, funding,
      balance_after, round(extract(epoch from created_at) * 1000)::bigint, coalesce(reference, '-')) as row
      from ${table('movements')} order by seq`),
    balances: await read(sql`select concat_ws(' ', account_id, balance, held) as row from ${table('balances')}
      where balance <> 0 or held <> 0 order by account_id`),
    totals: await read(sql`select concat_ws(' ', balance, revenue, funding) as row from ${table('totals')}`),
    calls:
      await read(sql`select concat_ws(' ', id, account_id, settled, cost, held, absorbed, coalesce(classes->>'input', '-'), estimated,
      round(extract(epoch from held_at) * 1000)::bigint) as row from ${table('calls')} order by id`),
    attempts: await read(sql`select concat_ws(' ', id, attempt->>'number', attempt->>'result') as row
      from ${table('calls')}, json_array_elements(${table('attempts_of')}(attempts, provider, target_model)) as attempt order by 1`),
    grantBalances: await read(sql`select concat_ws(' ', grants.reference, remaining,
      round(extract(epoch from known.expires_at) * 1000)::bigint) as row from ${table('grant_balances')} as known
      join ${table('grants')} as grants on grants.id = known.grant_id order by 1`),
    draws:
      await read(sql`select concat_ws(' ', allocations.amount, grants.reference, round(extract(epoch from held_at) * 1000)::bigint)
      as row from ${table('allocations')} as allocations join ${table('grants')} as grants on grants.id = allocations.grant_id order by 1`),
    terms: await read(sql`select concat_ws(' ', account_id, plan, amount, coalesce(every, '-'),
      round(extract(epoch from starts_at) * 1000)::bigint, coalesce(round(extract(epoch from ends_at) * 1000)::text, '-')) as row
      from ${table('terms')} order by 1`),
    refunds: await read(sql`select concat_ws(' ', request_id, refunds.amount, reference) as row
      from ${table('refunds')} as refunds join ${table('grants')} as grants on grants.id = grant_id order by 1`),
    deposits: await read(sql`select concat_ws(' ', request_id, account_id, held, terms->>'of') as row
      from ${table('deposits')} order by 1`),
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
      words(row.account, row.kind, row.request ?? '-', row.amount, row.revenue, row.funding).concat(
        ` ${words(row.balanceAfter, row.at, row.reference ?? '-')}`,
      ),
    ),
    balances: [...balances]
      .filter(([, { balance, held }]) => balance !== 0n || held !== 0n)
      .map(([id, { balance, held }]) => words(id, balance, held))
      .sort(),
    totals: [words(totals.balance, totals.revenue, totals.funding)],
    calls: [...memory.calls.values()].map(callOf).sort(),
    attempts: [...memory.attempts]
      .filter(([key]) => memory.calls.has(key.slice(0, 36)))
      .map(([key, { result }]) => words(key, result))
      .sort(),
    grantBalances: [...memory.grantBalances.byGrant]
      .map(([id, { grant }]) => words(referenceOf(id), grant.remaining, grant.expiresAt))
      .sort(),
    draws: memory.grantBalances.draws
      .map(({ amount, grantId, heldAt }) => words(amount, referenceOf(grantId), heldAt))
      .sort(),
    terms: [...memory.terms.byAccount].flatMap(([account, terms]) =>
      terms.map(({ plan: name, amount, every, startsAt, endsAt }) =>
        words(account, name, amount, every ?? '-', startsAt, endsAt ?? '-'),
      ),
    ),
    refunds: [...memory.refunds].flatMap(([id, list]) =>
      list.map(({ grantId, amount }) => words(id, amount, referenceOf(grantId))),
    ),
    deposits: [...memory.deposits].map(([id, { account, held, terms }]) =>
      words(id, account, held, (JSON.parse(terms) as { of: number }).of),
    ),
    cursors: [...memory.cursors]
      .map(([journal, { owner, epoch, applied }]) => words(journal, owner, epoch, applied))
      .sort(),
  };
}

function callOf(record: EndRecord): string {
  const { id, account, held, absorbed = '0', heldAt, at } = record;
  const [settled, cost, input, estimated] =
    record.kind === 'SETTLE'
      ? ['t', record.cost, record.usage.input, record.estimated ? 't' : 'f']
      : ['f', '0', '-', 'f'];
  return [id, account, settled, cost, held, absorbed, input, estimated, heldAt ?? at].join(' ');
}

/** Rows of texts without an order of their own compare as sorted by this process; ids of terms are drawn. */
function sorted(tables: unknown): unknown {
  const entries = Object.entries(tables as Record<string, string[]>);
  return Object.fromEntries(
    entries.map(([name, rows]) => {
      const plainRows = rows.map((row) => row.replace(/term:[0-9a-f-]{36}/, 'term'));
      return [name, name === 'ledger' ? plainRows : plainRows.sort()];
    }),
  );
}

const arrivalIn = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

const refundOf =
  (account: string, requestId: string): Step =>
  (store) =>
    store.transact(account, Date.UTC(2028, 0, 1), (entries) =>
      refundRequest(entries, requestId, money(10n), { reason: 'test', reference: `late ${requestId}` }),
    );

/** Both sides archive all that they can, with a second process that has no turn, and a file of which a call is missing. */
async function checkArchives(memory: MemoryArchive, real: ArchiveRows, what: string): Promise<void> {
  const files: string[][] = [];
  for (const rows of [memory, real]) {
    const put: string[] = [];
    const contents: Contents = {
      put: async (object, content) => {
        assert.equal(await rows.claim('another', 60_000), undefined, what);
        put.push(`${object.slice(0, -74)} ${linesOf(content).map(idIn).join()}`);
        return 1;
      },
      read: async () => ({ content: '' }),
    };
    const round = { rows, contents, schema: 'main', owner: 'one', until: Number.POSITIVE_INFINITY };
    // The second of several calls is left out: the database refuses to delete it with the others.
    const lacking = bound(rows, async (...given) => (await rows.read(...given)).filter((_line, index) => index !== 1));
    await archiveRound({ ...round, rows: lacking }).catch(() => {});
    while ((await archiveRound(round)) > 0);
    files.push(put);
  }
  assert.deepEqual(files[0], files[1], what);
}

/** The rows with another way to read. */
const bound = (rows: ArchiveRows, read: ArchiveRows['read']): ArchiveRows => ({
  claim: (...given) => rows.claim(...given),
  move: (...given) => rows.move(...given),
  monthFrom: (...given) => rows.monthFrom(...given),
  factsFreeUntil: () => rows.factsFreeUntil(),
  accountsAfter: (...given) => rows.accountsAfter(...given),
  read,
  lastOf: (...given) => rows.lastOf(...given),
  seal: (...given) => rows.seal(...given),
});

/** What is left for a key, and for an account. */
function spent({ budgets }: Store, from: number) {
  const none = money(0n);
  const request = { pending: none, open: none, keep: none, need: none, smallest: none, wish: none, waitedMs: 0 };
  return budgets.read(
    [{ accountId: 'alice', key: 'k' }, { accountId: 'bob' }].map((spending) => ({
      ...request,
      accountId: spending.accountId,
      scope: 'any',
      counted: { spending, from, amount: none },
    })),
  );
}

test('the database in memory gives the answers of a real one, and has the same rows at the end', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase({ plugins: ['billing'] });
    const [memory, real] = [new MemoryLedger(), sqlStore(database)];
    const { steps } = new Script(seed, 90);
    for (const [index, step] of steps.entries()) {
      assert.deepEqual(await answerOf(step, memory), await answerOf(step, real), `history ${seed}, step ${index}`);
    }
    assert.deepEqual(sorted(rowsOfMemory(memory)), sorted(await rowsIn(database)), `history ${seed}`);
    const times = memory.rows.map(({ at }) => at).sort((left, right) => left - right);
    // From before everything, from the middle, and from behind it.
    for (const from of [0, times[times.length >> 1]!, times.at(-1)! + 1]) {
      assert.deepEqual(await spent(memory, from), await spent(real, from), `history ${seed}, from ${from}`);
    }
    const archive = new MemoryArchive(
      memory,
      ({ id }) => monthAt(arrivalIn(id)),
      () => 0,
    );
    await checkArchives(archive, sqlArchiveRows(database), `history ${seed}`);
    assert.deepEqual(sorted(rowsOfMemory(memory)), sorted(await rowsIn(database)), `history ${seed}, archived`);
    for (const id of [...memory.calls.keys(), ...memory.archived.keys(), ...memory.deposits.keys()])
      assert.equal(await memory.endOf(id), await real.endOf(id), `history ${seed}, the end of ${id}`);
    for (const requestId of memory.archived.keys())
      for (const account of ['alice', 'bob'])
        assert.deepEqual(
          await answerOf(refundOf(account, requestId), memory),
          await answerOf(refundOf(account, requestId), real),
          `history ${seed}, a refund of ${requestId}`,
        );
    await database.close();
  }
});
