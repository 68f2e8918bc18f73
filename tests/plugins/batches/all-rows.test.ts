/** Batches of all accounts: each page of each filter is that of the rows sorted in memory, and comes from an index. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { AllBatchRows } from '../../../plugins/batches/all-rows.ts';
import { batchEndpoints, batchStates, contentEndpoint } from '../../../plugins/common/domain/admin/batches.ts';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fc } from '../../helpers/properties.ts';

const openStates = ['validating', 'running', 'finishing'];
const accounts = ['one', 'two', 'three'];

interface Given {
  readonly account: string;
  readonly word: (typeof batchStates)[number];
  readonly endpoint: (typeof batchEndpoints)[number];
  /** Many have the same time, to the microsecond. */
  readonly us: number;
  readonly vendor: boolean;
}
const given: fc.Arbitrary<Given> = fc.record({
  account: fc.constantFrom(...accounts),
  word: fc.constantFrom(...batchStates),
  endpoint: fc.constantFrom(...batchEndpoints),
  us: fc.integer({ min: 0, max: 5 }),
  vendor: fc.boolean(),
});
const filter = fc.record({
  accountId: fc.option(fc.constantFrom(...accounts), { nil: undefined }),
  state: fc.option(fc.constantFrom(...batchStates), { nil: undefined }),
  endpoint: fc.option(fc.constantFrom(...batchEndpoints), { nil: undefined }),
});

let database: TestDatabase;
let table: (name: string) => ReturnType<typeof sql>;
before(async () => {
  database = await openDatabase({ plugins: ['batches'] });
  table = (name) => sql`${sql.identifier(database.schema)}.${sql.identifier(name)}`;
});

async function insert(rows: readonly Given[]): Promise<void> {
  await database.orm.execute(sql`delete from ${table('batches')}`);
  for (const [index, { account, word, endpoint, us, vendor }] of rows.entries()) {
    const id = `batch_${index}`;
    const isOpen = openStates.includes(word);
    const isGoogle = endpoint.includes('{model}');
    const address = endpoint.replace('{model}', `m${us}`);
    await database.orm.execute(
      sql`insert into ${table('batches')}
          (id, account_id, key_id, remote_address, dialect, endpoint, headers, input_file, state, outcome, counts, cost, created_at,
            expires_at)
        values (${id}, ${account}, 'key', '::1', ${isGoogle ? 'gemini' : 'chat'}, ${address}, '{}', 'file-1',
          ${isOpen ? word : 'ended'}, ${isOpen ? null : word},
          ${isOpen ? null : '{"succeeded":1,"errored":2,"cancelled":3,"expired":4}'}::json, ${isOpen ? null : '7'}::bigint,
          '2026-11-01T00:00:00Z'::timestamptz + ${us}::int * interval '1 microsecond', now())`,
    );
    if (vendor)
      await database.orm.execute(
        sql`insert into ${table('vendor_batches')} (account_id, batch_id, provider, protocol, model, asked, state)
          values (${account}, ${id}, 'acme', 'chat', 'm', 'm', 'running')`,
      );
  }
}

test('pages list every matching row once, newest first, with its details', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(given, { maxLength: 12 }),
      filter,
      fc.integer({ min: 1, max: 5 }),
      async (rows, wanted, limit) => {
        await insert(rows);
        const all = new AllBatchRows(database);
        const found = [];
        for (let after: string | undefined, pages = 0; ; pages++) {
          const page = await all.list(wanted, { limit, after });
          assert.ok(page.rows.length <= limit && pages <= rows.length);
          found.push(...page.rows);
          if (page.next === undefined) break;
          after = page.next;
        }
        const expected = rows
          .map((row, index) => ({ ...row, id: `batch_${index}` }))
          .filter(
            ({ account, word, endpoint }) =>
              (wanted.accountId ?? account) === account &&
              (wanted.state ?? word) === word &&
              (wanted.endpoint ?? endpoint) === endpoint,
          )
          .sort((one, other) => other.us - one.us || (one.id < other.id ? 1 : -1));
        assert.deepEqual(
          found.map(({ id, accountId, state, outcome, counts, cost, provider }) => [
            ...[id, accountId, outcome ?? state],
            ...[counts?.expired, cost, provider],
          ]),
          expected.map(({ id, account, word, vendor }) => [
            ...[id, account, word],
            ...(openStates.includes(word) ? [undefined, undefined] : [4, 7n]),
            vendor ? 'acme' : undefined,
          ]),
        );
      },
    ),
    { numRuns: 40, endOnFailure: true },
  );
});

test('an invalid cursor is refused by its name', async () => {
  const all = new AllBatchRows(database);
  const cursors = ['x', 'batch_1', ...[['1'], ['-1', 'a'], ['1e3', 'a'], [1, 'a']].map(encoded)];
  for (const after of cursors)
    await assert.rejects(all.list({}, { limit: 5, after }), { kind: 'invalid_request', field: 'after' }, after);
});
const encoded = (values: unknown) => Buffer.from(JSON.stringify(values)).toString('base64url');

test('a page is read from an index in its order, with any one filter', async () => {
  const plans = [
    [{}, 'batches_newest'],
    [{ accountId: 'one' }, 'batches_of_account'],
    [{ state: 'failed' }, 'batches_by_state'],
    [{ endpoint: contentEndpoint }, 'batches_by_endpoint'],
  ] as const;
  const all = new AllBatchRows(database);
  await insert([]);
  await database.orm.execute(
    sql`insert into ${table('batches')}
        (id, account_id, key_id, remote_address, dialect, endpoint, headers, input_file, state, outcome, created_at, expires_at)
      select 'batch_' || n, (array['one', 'two', 'three', 'four', 'five'])[n % 5 + 1], 'key', '::1',
        case when n % 3 = 0 then 'gemini' else 'chat' end, (array['/v1/embeddings', '/v1/messages'])[n % 2 + 1], '{}', 'file-1',
        'ended', (array['completed', 'completed', 'completed', 'failed'])[n % 4 + 1],
        '2026-11-01T00:00:00Z'::timestamptz - n * interval '1 minute', now()
      from generate_series(1, 3000) as n`,
  );
  await database.orm.execute(
    sql`insert into ${table('vendor_batches')} (account_id, batch_id, provider, protocol, model, asked, state)
      select account_id, id, 'acme', 'chat', 'm', 'm', 'ended' from ${table('batches')}`,
  );
  await database.orm.execute(sql`analyze ${table('batches')}, ${table('vendor_batches')}`);
  const after = encoded([String(Date.parse('2026-10-31T12:00:00Z') * 1000), 'batch_1']);
  for (const [wanted, index] of plans)
    for (const page of [{ limit: 25 }, { limit: 25, after }]) {
      const statement = sql`explain ${all.statement(wanted, page)}`;
      const lines = await rowsOf<{ 'QUERY PLAN': string }>(database.orm, statement);
      const plan = lines.map((line) => line['QUERY PLAN']).join('\n');
      assert.match(plan, new RegExp(`Scan Backward using ${index} `), plan);
      assert.doesNotMatch(plan, /Sort|Filter/, plan);
    }
});
