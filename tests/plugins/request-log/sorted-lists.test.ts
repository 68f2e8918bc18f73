/** Lists of requests in other orders than by time, newest first: against the same done by hand. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import {
  type RequestListFilter,
  type RequestQueries,
  type RequestSort,
  requestQueries,
  requestSorts,
} from '../../../plugins/common/domain/admin/requests.ts';
import { callRows } from '../../../plugins/common/domain/call-facts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { totalTokens } from '../../../plugins/common/domain/usage.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { noId } from '../../../plugins/common/rollups/sums-in-memory.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { requestSumsWith } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeHost, requestIdAt, setUp } from '../../helpers/fakes.ts';

const start = Date.UTC(2026, 10, 1);
const whole = { from: start, until: start + 40 * 3_600_000 };
const key = randomUUID();

interface Row {
  readonly id: string;
  readonly at: number;
  readonly call: boolean;
  readonly key_id: string | null;
  readonly status: number;
  readonly usage: Readonly<Record<string, number>> | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number;
  readonly cost: number | null;
}

/** Some are rows of calls, which have a cost; many values occur twice, others are absent. */
const rows = Array.from({ length: 400 }, (_, index): Row => {
  const at = start + ((index * 7_919) % 2_400) * 60_000;
  const call = index % 3 > 0;
  return {
    id: requestIdAt(at),
    at,
    call,
    key_id: index % 5 === 0 ? key : null,
    status: index % 11 === 0 ? 500 : 200,
    usage: index % 4 === 0 ? null : { input: (index * 31) % 90, output: index % 7, request: 1, image: 1_000 },
    first_byte_ms: index % 6 === 0 ? null : ((index * 13) % 50) + 0.5,
    total_ms: (index * 17) % 101,
    cost: call ? (index * 97) % 60 : null,
  };
});

let store: TestDatabase;
let queries: RequestQueries;

before(async () => {
  store = await openDatabase();
  const host = fakeHost({ schema: store.schema });
  const schema = sql.identifier(store.schema);
  host.provide(database, store);
  host.provide(callRows, {
    view: sql`${schema}.paid`,
    costOf: (id) => sql`(select cost from ${schema}.paid as charged where charged.id = ${id})`,
    tagged: () => sql`select null::uuid`,
    forgetFacts: async () => undefined,
  });
  await setUp(requestLog, host, {});
  queries = host.get(requestQueries);
  await store.orm.execute(sql`create table ${schema}.paid (like ${schema}.requests, cost bigint)`);
  await store.orm.execute(sql`alter table ${schema}.paid alter account_id type text, alter key_id type text`);
  for (const call of [false, true]) await insert(call);
  await rebuildSums(
    store.orm,
    store.schema,
    requestSumsWith(() => sql`${schema}.paid`),
  );
});
after(() => store.close());

async function insert(call: boolean): Promise<void> {
  const schema = sql.identifier(store.schema);
  const table = sql.identifier(call ? 'paid' : 'requests');
  const others = {
    account_id: noId,
    operation: 'chat',
    streamed: false,
    outcome: 'complete',
    attempts: 1,
    bytes_in: 1,
    bytes_out: 1,
  };
  const given = rows
    .filter((row) => row.call === call)
    .map(({ at, ...row }) => ({ ...row, ...others, received_at: new Date(at).toISOString() }));
  await store.orm.execute(sql`insert into ${schema}.${table}
    select * from jsonb_populate_recordset(null::${schema}.${table}, ${JSON.stringify(given)}::jsonb)`);
}

const valuesBy: { readonly [By in RequestSort['by']]: (row: Row) => number | null } = {
  time: ({ at }) => at,
  cost: ({ cost }) => cost,
  tokens: ({ usage }) => (usage === null ? null : totalTokens(usage)),
  firstByte: (row) => row.first_byte_ms,
  duration: (row) => row.total_ms,
};

function expected({ keyId, result, cause }: RequestListFilter, { by, order }: RequestSort): string[] {
  const sign = order === 'desc' ? -1 : 1;
  const rank = (row: Row) => {
    const value = valuesBy[by](row);
    return value === null ? Number.POSITIVE_INFINITY : sign * value;
  };
  const isFailed = result === 'upstream_error' || cause === '500';
  return rows
    .filter((row) => (keyId === undefined || row.key_id === keyId) && (!isFailed || row.status === 500))
    .sort((left, right) => {
      const difference = rank(left) === rank(right) ? 0 : rank(left) - rank(right);
      const newer = left.id < right.id ? 1 : -1;
      return difference || (by === 'time' && order === 'asc' ? -newer : newer);
    })
    .map(({ id }) => id);
}

async function listed(filter: RequestListFilter, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await queries.list(filter, { limit, after });
    assert.equal(page.sortedOf, undefined);
    found.push(...page.rows.map(({ id }) => id));
    after = page.next;
    if (after === undefined) return found;
  }
}

test('a list is returned in every order, at any page length, with missing values last', async () => {
  const filters: RequestListFilter[] = [whole, { ...whole, keyId: key }, { ...whole, result: 'upstream_error' }];
  for (const by of requestSorts)
    for (const order of ['asc', 'desc'] as const)
      for (const [index, filter] of [...filters, { ...whole, cause: '500' }].entries()) {
        const sort = { by, order };
        const found = await listed({ ...filter, sort }, [500, 37, 11, 9][index]!);
        assert.deepEqual(found, expected(filter, sort), `${by} ${order} ${index}`);
      }
});

test('the requests of some keys, and of no other, are listed and summed up, in every order', async () => {
  const ofKeys = rows.filter((row) => row.key_id === key).length;
  const sort = { by: 'tokens', order: 'desc' } as const;
  for (const [keys, wanted] of [
    [{ ids: [key] }, ofKeys],
    [{ ids: [key, randomUUID()] }, ofKeys],
    [{ ids: [key], not: true }, rows.length - ofKeys],
    [{ ids: [] }, 0],
    [{ ids: [], not: true }, rows.length],
  ] as const) {
    const filter = { ...whole, keys };
    const found = [await listed(filter, 130), await listed({ ...filter, sort }, 130)];
    assert.deepEqual(
      found.map(({ length }) => length),
      [wanted, wanted],
    );
    assert.equal((await queries.sums(filter)).requests, wanted, JSON.stringify(keys));
  }
});

test('a cursor of another order, and an invented one, are refused', async () => {
  const sort = { by: 'cost', order: 'desc' } as const;
  const made = Buffer.from(JSON.stringify(["1'", rows[0]!.id])).toString('base64url');
  for (const after of [rows[0]!.id, 'nowhere', made])
    await assert.rejects(queries.list({ ...whole, sort }, { limit: 5, after }), {
      kind: 'invalid_request',
      field: 'after',
    });
});

test('only the newest 50,000 are sorted, and the page says so', async () => {
  const schema = sql.identifier(store.schema);
  const later = start + 50 * 3_600_000;
  await store.orm.execute(sql`insert into ${schema}.requests
    select (lpad(to_hex(${later}::bigint + number), 12, '0') || '7000800000000000' || lpad(to_hex(number), 4, '0'))::uuid,
      to_timestamp((${later}::bigint + number) / 1000.0), 'chat', null, ${noId}::uuid, null, null, null, null, false, 200, 'complete', null, null, 1, null,
      number, 1, 1 from generate_series(1, 50010) as number`);
  const sort = { by: 'duration', order: 'asc' } as const;
  const page = await queries.list({ from: start, until: later + 60_000, sort }, { limit: 2 });
  assert.equal(page.sortedOf, 50_000);
  assert.deepEqual(
    page.rows.map(({ totalMs }) => totalMs),
    [11, 12],
  );
  const newest = await queries.list({ from: later + 20_000, until: later + 60_000, sort }, { limit: 1 });
  assert.deepEqual([newest.sortedOf, newest.rows[0]?.totalMs], [undefined, 20_000]);
});
