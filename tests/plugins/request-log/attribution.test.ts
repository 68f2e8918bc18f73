/** Requests by the project and the person that they were for, in lists, sums and groups. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../plugins/common/rollups/fold.ts';
import { requestQueriesOf } from '../../../plugins/request-log/queries.ts';
import { addRows, requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase } from '../../helpers/database.ts';
import { requestIdAt } from '../../helpers/fakes.ts';

const start = Date.UTC(2026, 9, 20, 0, 7);
const quarterMs = 900_000;
const account = '0190a000-0000-7000-8000-000000000001';
const key = '0190a000-0000-7000-8000-000000000002';
/** The projects of one key's calls, a quarter of an hour apart. */
const projects = ['web', 'web', undefined, 'shop', 'web', undefined];

const rowAt = (index: number) => {
  const at = start + index * quarterMs;
  return {
    ...{ request_id: requestIdAt(at), received_at: new Date(at).toISOString(), operation: 'chat', status: 200 },
    ...{ account_id: account, key_id: key, project: projects[index], person: index === 3 ? 'ann' : undefined },
    ...{ outcome: 'complete', streamed: false, attempts: 1, bytes_in: 0, bytes_out: 0, total_ms: 5, model: 'm' },
  };
};

test('calls of one key count for the project and the person of each, whatever the key was in before and after', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const { orm, schema } = store;
  const queries = requestQueriesOf(
    store,
    requestSums,
    () => undefined,
    () => 0,
    () => undefined,
  );
  await addRows(store, JSON.stringify(projects.map((_, index) => rowAt(index))));
  const span = { from: start - 1, until: start + projects.length * quarterMs };
  const look = async (filter: Parameters<typeof queries.sums>[0]) => {
    const { rows } = await queries.list(filter, { limit: 10 });
    const { requests } = await queries.sums(filter);
    assert.equal(rows.length, requests, JSON.stringify(filter));
    return rows.map(({ projectId }) => projectId ?? '');
  };
  for (const folded of [false, true]) {
    if (folded) await foldSums(orm, schema, requestSums, start + 24 * 3_600_000, 1);
    for (const accountId of [account, undefined]) {
      const all = { ...span, accountId };
      assert.deepEqual(await look({ ...all, projectIds: ['web'] }), ['web', 'web', 'web']);
      assert.deepEqual(await look({ ...all, projectIds: ['shop', 'web'] }), ['web', 'shop', 'web', 'web']);
      assert.deepEqual(await look({ ...all, projectIds: [''] }), ['', '']);
      assert.deepEqual(await look({ ...all, projectIds: [] }), []);
      assert.deepEqual(await look({ ...all, projectIds: ['\0'] }), []);
      assert.deepEqual(await look({ ...all, personId: 'ann' }), ['shop']);
      assert.deepEqual(await look({ ...all, personId: 'ann', projectIds: ['web'] }), []);
      const groups = await queries.groupCounts(all, 'project', 10);
      assert.deepEqual(
        groups.map(({ group, requests }) => [group, requests]),
        [
          ['web', 3],
          ['shop', 1],
        ],
      );
    }
  }
  assert.deepEqual(await checkSums(orm, schema, requestSums), []);
});

test('a group without project and person has the hash that an earlier version gives it', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const { orm, schema } = store;
  await addRows(store, JSON.stringify([rowAt(2)]));
  const [found] = await rowsOf<{ same: boolean }>(
    orm,
    sql`select bool_and(id = hashtextextended(concat_ws(E'\\x1f', account_id, key_id, model, provider, operation, result, '' || nullif(cause, '')), 0)) as same
      from ${sql.identifier(schema)}.request_sums_groups`,
  );
  assert.equal(found!.same, true);
});
