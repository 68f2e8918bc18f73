/** Whatever comes in, however often and in whatever order: the sums that are kept of requests are those of the rows. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type {
  FailureCause,
  RequestFilter,
  RequestQueries,
  RequestResult,
  RequestSums,
} from '../../../plugins/common/domain/admin/requests.ts';
import { requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../plugins/common/rollups/fold.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { boundsOf } from '../../../plugins/console/api/time-zone.ts';
import { percentilesIn } from '../../../plugins/request-log/histogram.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { addRows, requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase, type TestDatabase, testOnServer } from '../../helpers/database.ts';
import { fakeHost, requestIdAt, setUp } from '../../helpers/fakes.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { isAmong } from '../console/fakes/lists.ts';

const hourMs = 3_600_000;
const start = Date.UTC(2026, 9, 20);
const days = 9;
const accounts = [randomUUID(), randomUUID(), undefined];
const keys = [randomUUID(), randomUUID(), undefined];
const models = ['small', 'large', undefined];
const providers = ['one', 'two', undefined];
const operations = ['chat', 'messages', 'models'];
const zones = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Asia/Kathmandu', 'America/St_Johns', 'Pacific/Chatham'];

const row = fc.record({
  received_at: fc.integer({ min: 0, max: days * 24 * hourMs - 1 }).map((at) => new Date(start + at).toISOString()),
  operation: fc.constantFrom(...operations),
  account_id: fc.constantFrom(...accounts),
  key_id: fc.constantFrom(...keys),
  model: fc.constantFrom(...models),
  provider: fc.constantFrom(...providers),
  status: fc.constantFrom(200, 200, 200, 404, 429, 500, 503),
  outcome: fc.constantFrom('complete', 'complete', 'failed', 'client_left'),
  error_kind: fc.constantFrom('rate_limited', 'upstream_failed', undefined),
  error_code: fc.constantFrom('rpm', undefined, undefined),
  first_byte_ms: fc.option(
    fc.double({ min: -2, max: 5, noNaN: true }).map((power) => Math.fround(10 ** power)),
    {
      nil: undefined,
    },
  ),
  total_ms: fc.double({ min: -2, max: 6.8, noNaN: true }).map((power) => Math.fround(10 ** power)),
});
type Row = (typeof row extends fc.Arbitrary<infer T> ? T : never) & { readonly request_id: string };

const batch = fc.record({
  rows: fc.array(row, { maxLength: 25 }),
  times: fc.constantFrom(1, 1, 2),
  /** Also rows of an earlier batch, as after an unanswered write. */
  again: fc.boolean(),
  richRows: fc.constantFrom(1, 8, 5_000),
  foldsTo: fc.option(fc.integer({ min: 0, max: days * 24 }), { nil: undefined }),
});
const question = fc.record({
  from: fc.integer({ min: 0, max: days * 24 * hourMs }),
  lasts: fc.integer({ min: 1, max: days * 24 * hourMs }),
  zone: fc.constantFrom(...zones),
  minutes: fc.constantFrom(5, 15, 30, 60, 180, 720, 1_440, 10_080),
  /** From the start of a day on. */
  aligned: fc.boolean(),
  account: fc.option(fc.constantFrom(...accounts), { nil: undefined }),
  key: fc.option(fc.constantFrom(...keys), { nil: undefined }),
  /** Those of a project, or of none. */
  keys: fc.option(
    fc.record({ ids: fc.subarray(keys.flatMap((id) => id ?? [])), not: fc.constantFrom(undefined, true as const) }),
    { nil: undefined },
  ),
  model: fc.option(fc.constantFrom(...models), { nil: undefined }),
  provider: fc.option(fc.constantFrom(...providers), { nil: undefined }),
  operation: fc.option(fc.constantFrom(...operations), { nil: undefined }),
  result: fc.option(fc.constantFrom('ok', 'client_error', 'upstream_error', 'left'), { nil: undefined }),
  cause: fc.option(fc.constantFrom('rpm', 'upstream_failed', '503'), { nil: undefined, freq: 2 }),
  without: fc.constantFrom([], ['models'], ['models', 'chat']),
  withoutCauses: fc.constantFrom([], ['rpm'], ['upstream_failed', '503']),
});

const filled = { streamed: false, attempts: 1, bytes_in: 0, bytes_out: 0 };

function resultOf({ status, outcome }: Row): RequestResult {
  if (outcome === 'client_left') return 'left';
  if (outcome === 'failed' || status >= 500) return 'upstream_error';
  return status >= 400 ? 'client_error' : 'ok';
}

function causeOf(each: Row): string | undefined {
  const isFailure = ['client_error', 'upstream_error'].includes(resultOf(each));
  return isFailure ? (each.error_code ?? each.error_kind ?? String(each.status)) : undefined;
}

function means(filter: RequestFilter, each: Row): boolean {
  const at = Date.parse(each.received_at);
  const wanted: [unknown, unknown][] = [
    [filter.accountId, each.account_id],
    [filter.keyId, each.key_id],
    [filter.model, each.model],
    [filter.provider, each.provider],
    [filter.operation, each.operation],
    [filter.result, resultOf(each)],
    [filter.cause, causeOf(each)],
  ];
  return (
    at >= filter.from &&
    at < filter.until &&
    wanted.every(([requested, is]) => requested === undefined || requested === is) &&
    (filter.keys === undefined || isAmong(each.key_id, filter.keys)) &&
    filter.withoutOperations?.includes(each.operation) !== true &&
    filter.withoutCauses?.includes(causeOf(each) ?? '') !== true
  );
}

function checkAgainst(found: RequestSums, rows: readonly Row[], what: string): void {
  assert.equal(found.requests, rows.length, what);
  for (const result of ['ok', 'client_error', 'upstream_error', 'left'] as const)
    assert.equal(found.results[result], rows.filter((each) => resultOf(each) === result).length, `${what}: ${result}`);
  for (const share of [50, 95, 99] as const) {
    for (const [reported, values] of [
      [found.firstByte, rows.flatMap((each) => each.first_byte_ms ?? [])],
      [found.total, rows.map((each) => each.total_ms)],
    ] as const) {
      const is = reported[`p${share}`];
      if (values.length === 0) {
        assert.equal(is, undefined);
        continue;
      }
      const sorted = values.toSorted((one, other) => one - other);
      const place = (share / 100) * (sorted.length - 1);
      const [below, above] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
      const exact = below + (above - below) * (place - Math.floor(place));
      assert.ok(Math.abs(is! - exact) <= 0.11 + exact * 0.025, `${what}: p${share} ${is} is not ${exact}`);
    }
  }
}

function checkCauses(found: readonly FailureCause[], rows: readonly Row[], what: string): void {
  const counts = new Map<string, number>();
  for (const each of rows) {
    const cause = causeOf(each);
    const name = `${resultOf(each)} ${cause}`;
    if (cause !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const reported = found.map(({ result, cause, requests }) => [`${result} ${cause}`, requests] as const);
  assert.deepEqual(reported.toSorted(), [...counts].toSorted(), what);
  assert.deepEqual(
    found.map(({ requests }) => requests),
    [...counts.values()].sort((one, other) => other - one),
    what,
  );
}

interface Setup {
  readonly store: TestDatabase;
  readonly queries: RequestQueries;
}

async function openSetup(): Promise<Setup> {
  const store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  await setUp(requestLog, host, {});
  return { store, queries: host.get(requestQueries) };
}

const write = ({ store }: Setup, rows: readonly Row[]) =>
  addRows(store, JSON.stringify(rows.map((each) => ({ ...filled, ...each }))));

async function send(
  { queries }: Setup,
  rows: readonly Row[],
  requested: typeof question extends fc.Arbitrary<infer T> ? T : never,
) {
  const from = start + (requested.aligned ? Math.floor(requested.from / (24 * hourMs)) * 24 * hourMs : requested.from);
  const { account: accountId, key: keyId, keys, model, provider, operation, result, cause } = requested;
  const filter: RequestFilter = {
    from,
    until: from + requested.lasts,
    accountId,
    keyId,
    keys,
    model,
    provider,
    operation,
    result,
    cause,
    withoutOperations: requested.without,
    withoutCauses: requested.withoutCauses,
  };
  const what = JSON.stringify({ ...filter, zone: requested.zone, minutes: requested.minutes });
  checkAgainst(
    await queries.sums(filter),
    rows.filter((each) => means(filter, each)),
    what,
  );
  checkCauses(
    await queries.causes(filter, 500),
    rows.filter((each) => means(filter, each)),
    what,
  );
  const span = requested.minutes < 15 ? { from, until: Math.min(filter.until, from + 6 * hourMs) } : filter;
  const bounds = boundsOf(span, requested.minutes, requested.zone, 1_500);
  const series = await queries.seriesBetween(filter, bounds);
  for (const [index, bucket] of series.entries()) {
    const slot = { ...filter, from: bounds[index]!, until: bounds[index + 1]! };
    checkAgainst(
      bucket,
      rows.filter((each) => means(slot, each)),
      `${what} ${index}`,
    );
  }
  for (const [by, name] of [
    ['model', 'model'],
    ['provider', 'provider'],
    ['account', 'account_id'],
    ['key', 'key_id'],
    ['operation', 'operation'],
  ] as const) {
    const groups = await queries.groups(filter, by, 500);
    const some = groups.slice(0, 3).map(({ group }) => group);
    const buckets = some.length === 0 ? [] : await queries.seriesOfGroups(filter, bounds, by, some);
    for (const { at, group, ...bucket } of buckets) {
      const slot = { ...filter, from: at, until: bounds[bounds.indexOf(at) + 1]! };
      checkAgainst(
        bucket,
        rows.filter((each) => means(slot, each) && each[name] === group),
        `${what} ${by} ${group} ${at}`,
      );
    }
    const within = { ...filter, from: bounds[0]!, until: bounds.at(-1)! };
    assert.equal(
      buckets.reduce((sum, { requests }) => sum + requests, 0),
      rows.filter((each) => means(within, each) && some.includes(each[name] ?? '')).length,
    );
    const wanted = rows.filter((each) => means(filter, each) && each[name] !== undefined);
    assert.deepEqual(
      groups.map(({ group }) => group).toSorted(),
      [...new Set(wanted.map((each) => each[name]!))].toSorted(),
    );
    for (const group of groups)
      checkAgainst(
        group,
        wanted.filter((each) => each[name] === group.group),
        `${what} ${by} ${group.group}`,
      );
  }
}

testHistory(
  'after batches in any order, retried, late and folded in between, sums, series and groups are those of the rows',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { minLength: 1, maxLength: 8 }),
        fc.array(question, { minLength: 4, maxLength: 8 }),
        async (batches, questions) => {
          const queries = await openSetup();
          const { orm, schema } = queries.store;
          const rows: Row[] = [];
          for (const { rows: given, times, again, foldsTo, richRows } of batches) {
            const fresh = given.map(
              (each): Row => ({ ...each, request_id: requestIdAt(Date.parse(each.received_at)) }),
            );
            const sent = again ? [...fresh, ...rows.slice(-5)] : fresh;
            for (let time = 0; time < times; time++) await write(queries, sent);
            rows.push(...fresh);
            if (foldsTo !== undefined) await foldSums(orm, schema, requestSums, start + foldsTo * hourMs, richRows);
          }
          assert.deepEqual(await checkSums(orm, schema, requestSums), []);
          for (const requested of questions) await send(queries, rows, requested);
          await queries.store.close();
        },
      ),
      { numRuns: runsOf(2, 60), endOnFailure: true },
    );
  },
);

testHistory('a sum that was changed by hand is found in each part, and rebuilt', async () => {
  const queries = await openSetup();
  const { orm, schema } = queries.store;
  const kept = sql`${sql.identifier(schema)}.request_sums`;
  // Two folded days and one that is not: each check takes time for each day.
  const some = fc
    .sample(row, { numRuns: 180, seed: 3 })
    .filter(({ received_at }) => /^2026-10-2[047]/.test(received_at));
  assert.ok(some.length > 40);
  await write(
    queries,
    some.map((each): Row => ({ ...each, request_id: requestIdAt(Date.parse(each.received_at)) })),
  );
  await foldSums(orm, schema, requestSums, start + 5 * 24 * hourMs, 1);
  assert.deepEqual(await checkSums(orm, schema, requestSums), []);
  for (let part = 0; part <= 14; part++) {
    const damages = [
      sql`update ${kept} set requests = requests + 1 where ctid = (select min(ctid) from ${kept} where part = ${part}::int)`,
      sql`update ${kept} set total = total * 2 where ctid = (select min(ctid) from ${kept} where part = ${part}::int)`,
      sql`delete from ${kept} where ctid = (select min(ctid) from ${kept} where part = ${part}::int)`,
    ];
    // In turn, or all of them.
    for (const damage of runsOf(1, 9) > 1 ? damages : [damages[part % damages.length]!]) {
      await orm.execute(damage);
      const found = await checkSums(orm, schema, requestSums);
      assert.ok(found.length > 0, `part ${part}`);
      if (part > 0)
        assert.ok(
          // Sums of eight days are checked against those of days.
          found.every(({ subject }) => new RegExp(`^part (${part === 8 ? '8|9|10' : part}) 2026-10-`).test(subject)),
          found[0]!.subject,
        );
      // All of the days are chosen; sums of eight days are left out.
      const sampled = (await checkSums(orm, schema, requestSums, 366)).length;
      assert.equal(sampled, found.filter(({ subject }) => !/^part (9|10) /.test(subject)).length);
      await rebuildSums(orm, schema, requestSums);
      assert.deepEqual(await checkSums(orm, schema, requestSums), []);
    }
  }
  await queries.store.close();
});

testOnServer(
  'concurrent batches of two processes, with hours folded meanwhile, lose nothing and do not deadlock',
  async () => {
    const queries = await openSetup();
    const { orm, schema } = queries.store;
    const rows = fc
      .sample(row, { numRuns: 2_000, seed: 12 })
      .map((each): Row => ({ ...each, request_id: requestIdAt(Date.parse(each.received_at)) }));
    const writeAll = async (part: readonly Row[]) => {
      for (let from = 0; from < part.length; from += 40) await write(queries, part.slice(from, from + 40));
    };
    let isDone = false;
    const fold = async () => {
      for (let hour = 1; !isDone; hour++) await foldSums(orm, schema, requestSums, start + hour * 5 * hourMs, 20);
    };
    const folding = fold();
    await Promise.all([writeAll(rows.slice(0, 1_000)), writeAll(rows.slice(1_000))]);
    isDone = true;
    await folding;
    assert.deepEqual(await checkSums(orm, schema, requestSums), []);
    checkAgainst(await queries.queries.sums({ from: start, until: start + days * 24 * hourMs }), rows, 'all');
    await queries.store.close();
  },
);

test('when rows are deleted their sums stay, pass the audit, and survive a rebuild', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(requestLog, host, { retention: '2d' });
  part.lifecycle!.start!();
  const queries = host.get(requestQueries);
  const rows = fc
    .sample(row, { numRuns: 80, seed: 5 })
    .map((each): Row => ({ ...each, request_id: requestIdAt(Date.parse(each.received_at)) }));
  await write({ store, queries }, rows);
  host.advance(start + 6 * 24 * hourMs + 7 * 60_000 - host.clock.now());
  const run = (name: string) => host.intervals.find((each) => each.name === name)!.work();
  await run('fold sums of requests');
  const whole = { from: start, until: start + days * 24 * hourMs };
  const before = await queries.sums(whole);
  await run('prune request rows');
  const [left] = (await store.orm.execute(
    sql`select count(*)::int as rows from ${sql.identifier(store.schema)}.requests`,
  )) as unknown as { rows: number }[];
  assert.ok(left!.rows > 0 && left!.rows < 60);
  assert.deepEqual(await queries.sums(whole), before);
  assert.deepEqual(await checkSums(store.orm, store.schema, requestSums), []);
  await rebuildSums(store.orm, store.schema, requestSums);
  assert.deepEqual(await queries.sums(whole), before);
  await part.lifecycle!.stop!();
});

test('an empty histogram has no percentiles; one with a single duration has it at each, within 2.5 %', async () => {
  assert.deepEqual(percentilesIn(null), { p50: undefined, p95: undefined, p99: undefined });
  const { p50, p95, p99 } = percentilesIn(`1${'0'.repeat(12 * 189)}`);
  assert.deepEqual([p50, p95], [p95, p99]);
  const [least, most] = [0.1 * 1.05 ** 189, 0.1 * 1.05 ** 190];
  assert.ok(p50! > least && p50! < most && most / p50! < 1.025 && p50! / least < 1.025);
});
