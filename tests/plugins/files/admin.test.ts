/** Uploaded files of all accounts: each page of each filter is that of the rows sorted in memory, and comes from an index. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { FileAdmin } from '../../../plugins/common/domain/admin/files.ts';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { openFileAdmin } from '../../../plugins/files/admin.ts';
import { FileRows } from '../../../plugins/files/rows.ts';
import { UploadRows } from '../../../plugins/files/upload-rows.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fc } from '../../helpers/properties.ts';

const accounts = ['one', 'two'];
const purposes = ['batch', 'user_data'];
const hourMs = 3_600_000;

/** One without a purpose is a task's; one that is not kept, or has expired, is gone. */
const given = fc.record({
  account: fc.constantFrom(...accounts),
  purpose: fc.option(fc.constantFrom(...purposes)),
  state: fc.constantFrom('writing', 'kept', 'kept', 'gone'),
  hour: fc.integer({ min: 0, max: 4 }),
  hasExpired: fc.boolean(),
  bytes: fc.integer({ min: 1, max: 1_000 }),
});
type Given = typeof given extends fc.Arbitrary<infer T> ? T : never;
const filter = fc.record({
  accountId: fc.option(fc.constantFrom(...accounts), { nil: undefined }),
  purpose: fc.option(fc.constantFrom(...purposes), { nil: undefined }),
});

let database: TestDatabase;
let uploads: UploadRows;
let admin: FileAdmin;
let files: ReturnType<typeof sql>;
before(async () => {
  database = await openDatabase({ plugins: ['files'] });
  files = sql`${sql.identifier(database.schema)}.files`;
  uploads = new UploadRows(database);
  admin = openFileAdmin({ rows: new FileRows(database), uploads, clock: database.host.clock });
});

const createdAt = ({ hour }: Given) => database.host.clock.now() - (5 - hour) * hourMs;

async function insert(rows: readonly Given[]): Promise<void> {
  await database.orm.execute(sql`delete from ${files}`);
  for (const [index, row] of rows.entries()) {
    const until = database.host.clock.now() + (row.hasExpired ? -1 : 1);
    await database.orm.execute(
      sql`insert into ${files} (id, account_id, task_id, number, state, media_type, bytes, created_at, sweep_at, name, purpose)
        values (${`file-${index}`}, ${row.account}, ${`task-${index}`}, 0, ${row.state}, 'text/plain', ${row.bytes},
          ${new Date(createdAt(row)).toISOString()}::timestamptz, ${new Date(until).toISOString()}::timestamptz,
          ${row.purpose === null ? null : `name ${index}`}, ${row.purpose})`,
    );
  }
}

const isListed = ({ purpose, state, hasExpired }: Given) => purpose !== null && state === 'kept' && !hasExpired;

test('pages list every matching file once, newest first, and no deleted one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(given, { maxLength: 12 }),
      filter,
      fc.integer({ min: 1, max: 4 }),
      async (rows, wanted, limit) => {
        await insert(rows);
        const found = [];
        for (let after: string | undefined, pages = 0; ; pages++) {
          const page = await admin.list(wanted, { limit, after });
          assert.ok(page.rows.length <= limit && pages <= rows.length);
          found.push(...page.rows);
          if (page.next === undefined) break;
          after = page.next;
        }
        const expected = rows
          .map((row, index) => ({ ...row, id: `file-${index}`, name: `name ${index}` }))
          .filter(
            (row) =>
              isListed(row) &&
              (wanted.accountId ?? row.account) === row.account &&
              (wanted.purpose ?? row.purpose) === row.purpose,
          )
          .sort((one, other) => other.hour - one.hour || (one.id < other.id ? 1 : -1));
        assert.deepEqual(
          found.map((file) => [file.id, file.accountId, file.name, file.purpose, file.bytes, file.createdAt]),
          expected.map((row) => [row.id, row.account, row.name, row.purpose, row.bytes, createdAt(row)]),
        );
        for (const account of accounts) {
          const own = rows.filter((row) => row.account === account);
          const sum = own.reduce((bytes, row) => bytes + row.bytes, 0);
          assert.equal(await admin.storedBytes(account), sum);
        }
      },
    ),
    { numRuns: 40, endOnFailure: true },
  );
});

test("a file is found and deleted once by its id alone; a task's file is neither", async () => {
  const usual = { account: 'two', purpose: 'batch', state: 'kept', hour: 1, hasExpired: false, bytes: 5 } as const;
  await insert([usual, { ...usual, purpose: null }]);
  assert.equal((await admin.find('file-0'))?.accountId, 'two');
  assert.equal(await admin.find('file-1'), undefined);
  assert.equal(await admin.remove('file-1'), false);
  assert.equal(await admin.remove('file-0'), true);
  assert.equal(await admin.find('file-0'), undefined);
  assert.equal(await admin.remove('file-0'), false);
});

test('a page is read from an index in its order, and a cursor that is none is refused', async () => {
  const plans = [
    [{}, 'files_newest'],
    [{ accountId: 'one' }, 'files_uploaded'],
    [{ purpose: 'batch' }, 'files_by_purpose'],
  ] as const;
  const now = database.host.clock.now();
  await insert([]);
  await database.orm.execute(
    sql`insert into ${files} (id, account_id, task_id, number, state, media_type, bytes, created_at, sweep_at, name, purpose)
      select 'file-' || n, (array['one', 'two', 'three', 'four', 'five'])[n % 5 + 1], 'task-' || n, 0, 'kept', 'text/plain', 1,
        at - n * interval '1 minute', at + interval '1 day', 'a name', (array['batch', 'batch_output', 'user_data'])[n % 3 + 1]
      from generate_series(1, 3000) as n, (select ${new Date(now).toISOString()}::timestamptz as at) as moment`,
  );
  await database.orm.execute(sql`analyze ${files}`);
  for (const [wanted, index] of plans)
    for (const after of [undefined, { createdAt: now - 10 * hourMs, id: 'file-1' }]) {
      const lines = await rowsOf<{ 'QUERY PLAN': string }>(
        database.orm,
        sql`explain ${uploads.statement(wanted, { limit: 26, after }, now)}`,
      );
      const plan = lines.map((line) => line['QUERY PLAN']).join('\n');
      assert.match(plan, new RegExp(`Scan Backward using ${index} `), plan);
      assert.doesNotMatch(plan, /Sort/, plan);
    }
  const encoded = Buffer.from(JSON.stringify(['1e3', 'a'])).toString('base64url');
  for (const after of ['x', encoded])
    await assert.rejects(admin.list({}, { limit: 5, after }), { kind: 'invalid_request', field: 'after' }, after);
});
