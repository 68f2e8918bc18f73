/** The request log as people read it: lists, sums, series and groups, against the same done by hand. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import {
  type Percentiles,
  type RequestFilter,
  type RequestQueries,
  type RequestResult,
  requestQueries,
} from '../../../plugins/common/domain/admin/requests.ts';
import { attempts, call, dropped } from '../../../plugins/common/domain/calls.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { defineEvent, defineOperatorEvent, recordEvent } from '../../../plugins/common/domain/timeline.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { noId } from '../../../plugins/common/rollups/sums-in-memory.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeExchange, fakeHost, okAnswer, requestIdAt, setUp } from '../../helpers/fakes.ts';

const start = Date.UTC(2026, 10, 1);
const hourMs = 3_600_000;
const [acme, other] = [randomUUID(), randomUUID()];
const [laptop, server] = [randomUUID(), randomUUID()];

interface Row {
  readonly id: string;
  readonly received_at: string;
  readonly operation: string;
  readonly account_id: string | null;
  readonly key_id: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  readonly streamed: boolean;
  readonly status: number;
  readonly outcome: 'complete' | 'client_left' | 'failed';
  readonly attempts: number;
  readonly first_byte_ms: number | null;
  readonly total_ms: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** Rows of 48 hours in which everything occurs, several of them in the same millisecond. */
function someRows(): Row[] {
  const random = mulberry(7);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  return Array.from({ length: 600 }, (): Row => {
    const status = pick([200, 200, 200, 302, 400, 404, 429, 500, 502, 503]);
    const outcome = pick(['complete', 'complete', 'complete', 'failed', 'client_left'] as const);
    const known = random() > 0.1;
    const at = start + Math.floor(random() * 48 * 60) * 60_000;
    return {
      id: requestIdAt(at),
      received_at: new Date(at).toISOString(),
      operation: pick(['chat', 'messages']),
      account_id: known ? pick([acme, other]) : null,
      key_id: known ? pick([laptop, server]) : null,
      model: known ? pick(['small', 'large']) : null,
      provider: known ? pick(['one', 'two', 'three']) : null,
      streamed: random() > 0.5,
      status,
      outcome,
      attempts: known ? 1 : 0,
      first_byte_ms: random() > 0.2 ? Math.round(random() * 1_000_000) / 100 : null,
      total_ms: Math.round(random() * 5_000_000) / 100,
      bytes_in: Math.floor(random() * 1_000_000),
      bytes_out: Math.floor(random() * 1_000_000),
    };
  });
}

function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const resultOf = ({ status, outcome }: Row): RequestResult => {
  if (outcome === 'client_left') return 'left';
  if (outcome === 'failed' || status >= 500) return 'upstream_error';
  return status >= 400 ? 'client_error' : 'ok';
};

function matching(filter: RequestFilter): Row[] {
  const { accountId, keyId, model, provider, operation, result } = filter;
  return rows.filter((row) => {
    const at = Date.parse(row.received_at);
    return (
      at >= filter.from &&
      at < filter.until &&
      (accountId === undefined || row.account_id === accountId) &&
      (keyId === undefined || row.key_id === keyId) &&
      (model === undefined || row.model === model) &&
      (provider === undefined || row.provider === provider) &&
      (operation === undefined || row.operation === operation) &&
      filter.withoutOperations?.includes(row.operation) !== true &&
      (result === undefined || resultOf(row) === result)
    );
  });
}

/** By linear interpolation between the neighbours. */
function percentile(values: readonly number[], share: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((left, right) => left - right);
  const place = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return below + (above - below) * (place - Math.floor(place));
}

function checkSums(found: Awaited<ReturnType<RequestQueries['sums']>>, wanted: readonly Row[], what: string): void {
  assert.equal(found.requests, wanted.length, what);
  for (const result of ['ok', 'client_error', 'upstream_error', 'left'] as const)
    assert.equal(found.results[result], wanted.filter((row) => resultOf(row) === result).length, `${what}: ${result}`);
  const near = (reported: Percentiles, values: readonly number[]) => {
    for (const [name, share] of [
      ['p50', 0.5],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const) {
      const [is, expected] = [reported[name], percentile(values, share)];
      if (expected === undefined) assert.equal(is, undefined, what);
      // Half of a cell of the histogram.
      else assert.ok(Math.abs(is! - expected) <= 0.1 + expected * 0.025, `${what}: ${name} ${is} is not ${expected}`);
    }
  };
  near(
    found.firstByte,
    wanted.flatMap((row) => (row.first_byte_ms === null ? [] : [row.first_byte_ms])),
  );
  near(
    found.total,
    wanted.map((row) => row.total_ms),
  );
}

const whole = { from: start, until: start + 48 * hourMs };
const filters: RequestFilter[] = [
  whole,
  { ...whole, accountId: acme },
  { ...whole, accountId: other, keyId: laptop },
  { ...whole, model: 'large', provider: 'two' },
  { ...whole, operation: 'chat', result: 'upstream_error' },
  { ...whole, result: 'left' },
  { ...whole, accountId: acme, result: 'client_error' },
  { ...whole, withoutOperations: ['chat', "it's"] },
  { from: start + 5 * hourMs, until: start + 6 * hourMs },
  { from: start - hourMs, until: start },
  { ...whole, accountId: randomUUID() },
  { ...whole, accountId: 'nonsense' },
];

let store: TestDatabase;
let queries: RequestQueries;
let rows: Row[];

before(async () => {
  store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  await setUp(requestLog, host, {});
  queries = host.get(requestQueries);
  rows = someRows();
  const schema = sql.identifier(store.schema);
  await store.orm.execute(sql`insert into ${schema}.requests
    select * from jsonb_populate_recordset(null::${schema}.requests, ${JSON.stringify(rows.map((row) => ({ ...row, account_id: row.account_id ?? noId })))}::jsonb)`);
  await rebuildSums(store.orm, store.schema, requestSums);
});
after(() => store.close());

test('every matching row is listed once, newest first, at any page length', async () => {
  for (const [index, filter] of filters.entries()) {
    const found: string[] = [];
    let last = Number.POSITIVE_INFINITY;
    for (let after: string | undefined; ; ) {
      const page = await queries.list(filter, { limit: [500, 37, 100][index % 3]!, after });
      for (const { id, receivedAt } of page.rows) {
        assert.ok(receivedAt <= last);
        last = receivedAt;
        found.push(id);
      }
      after = page.next;
      if (after === undefined) break;
    }
    const wanted = matching(filter).map(({ id }) => id);
    assert.deepEqual(found.toSorted(), wanted.toSorted(), JSON.stringify(filter));
  }
});

test('sums are those of the rows', async () => {
  for (const filter of filters) checkSums(await queries.sums(filter), matching(filter), JSON.stringify(filter));
});

test('a series covers its span without a gap, with empty buckets', async () => {
  for (const filter of filters) {
    const bounds = [filter.from];
    // Buckets of different lengths, as days are where summer begins.
    const lengthOf = (index: number) => (30 + (index % 3) * 20) * 60_000;
    for (let at = filter.from + lengthOf(0); at < filter.until; at += lengthOf(bounds.length)) bounds.push(at);
    bounds.push(filter.until);
    const found = await queries.seriesBetween(filter, bounds);
    assert.equal(found.length, bounds.length - 1);
    for (const [index, bucket] of found.entries()) {
      assert.equal(bucket.at, bounds[index]);
      const until = bounds[index + 1]!;
      checkSums(bucket, matching({ ...filter, from: bucket.at, until }), JSON.stringify(filter));
    }
  }
});

test('groups are returned with their sums, the largest first, up to the requested number', async () => {
  const columns = {
    model: 'model',
    provider: 'provider',
    operation: 'operation',
    account: 'account_id',
    key: 'key_id',
  } as const;
  for (const [by, column] of Object.entries(columns) as [keyof typeof columns, (typeof columns)['model']][]) {
    for (const filter of filters.slice(0, 4)) {
      const found = await queries.groups(filter, by, 100);
      const wanted = matching(filter).filter((row) => row[column] !== null);
      assert.deepEqual(
        found.map(({ group }) => group).toSorted(),
        [...new Set(wanted.map((row) => row[column]!))].toSorted(),
      );
      for (const [index, { group, ...sums }] of found.entries()) {
        const ofGroup = wanted.filter((row) => row[column] === group);
        checkSums(sums, ofGroup, `${by} ${group}`);
        assert.ok(index === 0 || sums.requests <= found[index - 1]!.requests);
      }
      assert.deepEqual(await queries.groups(filter, by, 1), found.slice(0, 1));
      const counts = await queries.groupCounts(filter, by, 100);
      const names = counts.map(({ group }) => group);
      const timesOf = await queries.groupTimes(filter, by, names);
      assert.deepEqual(
        counts.map((row) => ({ ...row, ...timesOf(row.group) })),
        found,
      );
    }
  }
});

test('groups by model and provider are the same from one reading of the rows', async () => {
  const wanted = [...filters.slice(0, 4), { ...filters[0]!, withoutOperations: ['messages'] }];
  for (const filter of wanted) {
    const found = await queries.recentGroups(filter, 100);
    for (const by of ['model', 'provider'] as const) {
      const groups = (await queries.groups(filter, by, 100)).map(({ total: _, ...group }) => group);
      const byName = (list: readonly { readonly group: string }[]) =>
        list.toSorted((one, other) => (one.group < other.group ? -1 : 1));
      assert.deepEqual(byName(found[by]), byName(groups));
      assert.deepEqual(
        found[by].map(({ requests }) => requests),
        groups.map(({ requests }) => requests),
      );
    }
  }
  const [filter] = filters;
  const pairs = new Map<string, number>();
  for (const { model, provider } of matching(filter!)) {
    const pair = `${model ?? ''} ${provider ?? ''}`;
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  const largest = Math.max(...pairs.values());
  const { model, provider } = await queries.recentGroups(filter!, 1);
  assert.deepEqual([model[0]!.requests, provider[0]!.requests], [largest, largest]);
  await assert.rejects(queries.recentGroups(filter!, 501), /groups/);
});

test('a row is found by its id, only by its own account', async () => {
  const row = rows.find(({ account_id }) => account_id === acme)!;
  assert.equal((await queries.find(row.id, undefined))!.accountId, acme);
  assert.equal((await queries.find(row.id, acme))!.id, row.id);
  assert.equal(await queries.find(row.id, other), undefined);
  assert.equal(await queries.find(row.id, 'nonsense'), undefined);
  assert.equal(await queries.find(randomUUID(), undefined), undefined);
  assert.equal(await queries.find("'; drop", undefined), undefined);
});

test('a too long list is refused by name', async () => {
  const wrong: [() => Promise<unknown>, string][] = [
    [() => queries.sums({ from: 0, until: 1_101 * 24 * hourMs }), 'from'],
    [() => queries.seriesBetween({}, [0, 1_101 * 24 * hourMs]), 'from'],
    [() => queries.groups({ from: 0, until: 1_101 * 24 * hourMs }, 'model', 10), 'from'],
    [() => queries.seriesBetween({}, [0]), 'bounds'],
    [() => queries.seriesBetween({}, [0, 2, 1]), 'bounds'],
    [() => queries.seriesBetween({}, [0, Number.NaN]), 'bounds'],
    [
      () =>
        queries.seriesBetween(
          {},
          Array.from({ length: 1_502 }, (_, at) => at),
        ),
      'bounds',
    ],
    [() => queries.groups(whole, 'model', 501), 'limit'],
    [() => queries.list(whole, { limit: 0 }), 'limit'],
    [() => queries.list(whole, { limit: 10, after: 'nowhere' }), 'after'],
    [() => queries.list({ from: Number.NaN, until: 0 }, { limit: 10 }), 'from'],
  ];
  for (const [send, field] of wrong) await assert.rejects(send(), { kind: 'invalid_request', field });
});

const heldLine = defineEvent('test.held', (held: string) => `held ${held}`);
const goesLine = defineOperatorEvent('test.goes', (to: string, by: string) => `goes to ${to} by ${by}`);
const saidLine = defineEvent('test.said', (text: string) => text);

test('a row shows its timeline, its dropped parameters and its attempts unchanged', async () => {
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(requestLog, host, {});
  const exchange = fakeExchange({ id: randomUUID() });
  const requestedCall = { protocol: 'chat', model: 'small', billable: true, inputTokens: 1, choices: 1, stream: true };
  exchange.set(call, { ...requestedCall, maxOutputTokens: undefined });
  exchange.set(caller, { accountId: acme, keyId: laptop, plan: 'free', models: undefined });
  await part.handle!(exchange, async () => okAnswer);
  const reported = { held: '' };
  recordEvent(exchange, exchange.receivedAt + 3, heldLine, () => [reported.held]);
  reported.held = '0.01 USD';
  recordEvent(exchange, exchange.receivedAt + 5, goesLine, ['one', 'one#1']);
  recordEvent(exchange, exchange.receivedAt - 60_000, saidLine, ['a clock that stepped\0']);
  recordEvent(exchange, exchange.receivedAt, saidLine, () => undefined);
  recordEvent(exchange, exchange.receivedAt, saidLine, () => {
    throw new Error('oops');
  });
  recordEvent(exchange, exchange.receivedAt, saidLine, [
    'with sk-gw-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLM in it',
  ]);
  for (let line = 0; line < 100; line++) recordEvent(exchange, exchange.receivedAt, saidLine, ['x'.repeat(1_000)]);
  exchange.set(dropped, ['top_k', `x${'y'.repeat(1_000)}`]);
  exchange.set(attempts, []);
  await exchange.end({ kind: 'client_left', status: 499, firstByteMs: 12.5, totalMs: 20, bytesOut: 2 ** 40 });
  await part.lifecycle!.stop!();
  assert.doesNotMatch(JSON.stringify(host.lines), /clock that stepped/, 'lines tell no timeline');
  const view = (await queries.find(exchange.id, acme))!;
  assert.deepEqual(
    [view.model, view.keyId, view.status, view.outcome, view.firstByteMs, view.totalMs, view.bytesOut, view.receivedAt],
    ['small', laptop, 499, 'client_left', 12.5, 20, 2 ** 40, exchange.receivedAt],
  );
  assert.deepEqual(view.story.slice(0, 3), [
    { atMs: 3, by: 'test', text: 'held 0.01 USD', kind: 'test.held', values: ['0.01 USD'] },
    { atMs: 5, by: 'test', text: 'goes to one by one#1', kind: 'test.goes', values: ['one', 'one#1'], operator: true },
    {
      atMs: 0,
      by: 'test',
      text: 'a clock that stepped\ufffd',
      kind: 'test.said',
      values: ['a clock that stepped\ufffd'],
    },
  ]);
  assert.match(view.story[3]!.text, /could not be rendered/);
  assert.doesNotMatch(view.story[4]!.text, /abcdefghijkl/);
  assert.ok(view.story.length <= 40);
  assert.ok(view.story.every(({ text }) => text.length <= 310));
  assert.equal(view.dropped[0], 'top_k');
  assert.ok(view.dropped[1]!.length <= 200);
});

test('without timelines nothing is kept, and recording events costs nothing', async () => {
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(requestLog, host, { timeline: false });
  const exchange = fakeExchange({ id: randomUUID() });
  await part.handle!(exchange, async () => okAnswer);
  recordEvent(exchange, 0, saidLine, () => assert.fail('was asked'));
  await exchange.end();
  await part.lifecycle!.stop!();
  const view = (await queries.find(exchange.id, undefined))!;
  assert.deepEqual([view.story, view.dropped, view.model, view.usage], [[], [], undefined, undefined]);
});

test('a text that no database can store is not found, and is no error', async () => {
  for (const filter of [{ model: '\0' }, { provider: 'a\0' }, { operation: '\0' }]) {
    assert.deepEqual((await queries.list({ ...whole, ...filter }, { limit: 5 })).rows, []);
    assert.equal((await queries.sums({ ...whole, ...filter })).requests, 0);
  }
  for (const after of ["'; drop", 'nul\0', '+033658-09-27T01:46:39.999Z'])
    await assert.rejects(queries.list(whole, { limit: 5, after }), { kind: 'invalid_request', field: 'after' });
  assert.equal((await queries.list(whole, { limit: 5, after: requestIdAt(whole.until) })).rows.length, 5);
});
