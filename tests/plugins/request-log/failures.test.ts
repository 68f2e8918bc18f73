/** Failures by cause and requests by duration, against rows that are counted by hand. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { type RequestQueries, requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { noId } from '../../../plugins/common/rollups/sums-in-memory.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeHost, requestIdAt, setUp } from '../../helpers/fakes.ts';

const start = Date.UTC(2026, 10, 1);
const hourMs = 3_600_000;
const whole = { from: start, until: start + 48 * hourMs };
const acme = randomUUID();

type Failure = readonly [status: number, outcome: string, kind: string | null, code: string | null];
const succeeded: Failure = [200, 'complete', null, null];
const kinds: readonly (readonly [count: number, hour: number, failure: Failure])[] = [
  [50, 1, succeeded],
  [7, 2, [429, 'complete', 'rate_limited', 'key_requests']],
  [5, 3, [401, 'complete', 'unauthorized', null]],
  [3, 4, [404, 'complete', null, null]],
  [4, 5, [502, 'failed', 'upstream_failed', null]],
  [2, 6, [500, 'complete', null, 'weird\u0001 "code"']],
  [6, 7, [499, 'client_left', null, 'gone']],
  [1, 40, [429, 'complete', 'rate_limited', 'key_requests']],
];
const durations = [0, 40, 49, 51, 75, 150, 4_000, 700_000];

let store: TestDatabase;
let queries: RequestQueries;
before(async () => {
  store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  await setUp(requestLog, host, {});
  queries = host.get(requestQueries);
  await insert(kinds.flatMap(([count, hour, failure]) => rowsOf(count, start + hour * hourMs, failure)));
});
after(() => store.close());

function rowsOf(count: number, at: number, [status, outcome, kind, code]: Failure, account = noId) {
  return Array.from({ length: count }, (_, index) => ({
    id: requestIdAt(at + index),
    received_at: new Date(at + index).toISOString(),
    operation: 'chat',
    account_id: account,
    model: 'small',
    streamed: false,
    status,
    outcome,
    error_kind: kind,
    error_code: code,
    attempts: 1,
    first_byte_ms: index % 2 === 0 ? durations[index % durations.length] : null,
    total_ms: durations[index % durations.length],
    bytes_in: 1,
    bytes_out: 1,
  }));
}

async function insert(rows: readonly object[]): Promise<void> {
  const table = sql`${sql.identifier(store.schema)}.requests`;
  await store.orm.execute(sql`insert into ${table}
    select * from jsonb_populate_recordset(null::${table}, ${JSON.stringify(rows)}::jsonb)`);
  await rebuildSums(store.orm, store.schema, requestSums);
}

test('failures are counted by code, else kind, else status; disconnected clients and successes are none', async () => {
  const rows = await queries.causes(whole, 100);
  assert.deepEqual(
    rows.map(({ result, cause, requests }) => [result, cause, requests]),
    [
      ['client_error', 'key_requests', 8],
      ['client_error', 'unauthorized', 5],
      ['upstream_error', 'upstream_failed', 4],
      ['client_error', '404', 3],
      ['upstream_error', 'weird\u0001 "code"', 2],
    ],
  );
});

test('a filter narrows the causes', async () => {
  const upstream = await queries.causes({ ...whole, result: 'upstream_error' }, 100);
  assert.deepEqual(
    upstream.map(({ cause }) => cause),
    ['upstream_failed', 'weird\u0001 "code"'],
  );
  assert.deepEqual(await queries.causes({ ...whole, result: 'ok' }, 100), []);
  assert.deepEqual(await queries.causes({ ...whole, model: 'large' }, 100), []);
  const late = await queries.causes({ ...whole, from: start + 39 * hourMs }, 100);
  assert.deepEqual(late, [{ result: 'client_error', cause: 'key_requests', requests: 1 }]);
});

test("failures of the gateway itself are left out of a model's success rate, in sums and rows", async () => {
  const without = { ...whole, withoutCauses: ['upstream_failed', 'rpm'] };
  const [all, judged] = [await queries.groups(whole, 'model', 9), await queries.groups(without, 'model', 9)];
  const failuresIn = (groups: typeof all) => groups.reduce((sum, { results }) => sum + results.upstream_error, 0);
  assert.deepEqual([failuresIn(all), failuresIn(judged)], [6, 2]);
  const recent = [await queries.recentGroups(whole, 9), await queries.recentGroups(without, 9)];
  assert.deepEqual(
    recent.map(({ model }) => model.reduce((sum, { results }) => sum + results.upstream_error, 0)),
    [6, 2],
  );
  const listed = await queries.list({ ...without, result: 'upstream_error' }, { limit: 100 });
  assert.equal(listed.rows.length, 2);
});

test('the requests of each cause are listed once, newest first, at any page length', async () => {
  for (const { cause, result, requests } of await queries.causes(whole, 100)) {
    for (const limit of [1, 3, 500]) {
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page = await queries.list({ ...whole, result, cause }, { limit, after });
        found.push(...page.rows.map(({ id }) => id));
        for (const row of page.rows) assert.equal(row.errorCode ?? row.errorKind ?? String(row.status), cause);
        after = page.next;
      } while (after !== undefined);
      assert.equal(found.length, requests, cause);
      assert.deepEqual(found, [...new Set(found)].sort().reverse(), cause);
    }
  }
  for (const cause of ['gone', '200', 'nothing', '\0'])
    assert.deepEqual(await queries.list({ ...whole, cause }, { limit: 5 }), { rows: [], next: undefined });
});

test('requests are counted by their duration', async () => {
  const { edges, firstByte, total } = await queries.durations(whole);
  const wanted = edges.map(() => [0, 0]);
  for (const [count] of kinds)
    for (let index = 0; index < count; index++) {
      const place = edges.findLastIndex((edge) => edge <= durations[index % durations.length]!);
      wanted[place]![1]! += 1;
      if (index % 2 === 0) wanted[place]![0]! += 1;
    }
  assert.deepEqual(
    edges.map((_, index) => [firstByte[index], total[index]]),
    wanted,
  );
  const none = await queries.durations({ ...whole, model: 'large' });
  assert.deepEqual(new Set([...none.firstByte, ...none.total]), new Set([0]));
});

test('thousands of failures are all counted, and the rare ones among them are found', async () => {
  const day = { from: start + 72 * hourMs, until: start + 96 * hourMs };
  await insert([
    ...rowsOf(30, day.from + hourMs, [400, 'complete', 'invalid_request', null], acme),
    ...rowsOf(1_995, day.from + 2 * hourMs, [429, 'complete', 'rate_limited', null], acme),
    ...rowsOf(9, day.from + 2 * hourMs, [503, 'failed', 'overloaded', null], acme),
  ]);
  const rows = await queries.causes(day, 100);
  assert.deepEqual(
    rows.map(({ cause, requests }) => [cause, requests]),
    [
      ['rate_limited', 1_995],
      ['invalid_request', 30],
      ['overloaded', 9],
    ],
  );
  const oldest = await queries.list({ ...day, accountId: acme, cause: 'invalid_request' }, { limit: 100 });
  assert.equal(oldest.rows.length, 30);
  assert.deepEqual(await queries.causes(day, 1), rows.slice(0, 1));
  assert.deepEqual(await queries.causes(day, 1, ['overloaded', 'model_not_found']), rows.slice(2), 'however rare');
});
