/** Request rows: one for each exchange whatever its end, in batches, without secrets, bounded while the database is away. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { attempts, call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { lookMs } from '../../../plugins/common/kit/pace.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import { noId } from '../../../plugins/common/rollups/sums-in-memory.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { beatMs, RowQueue } from '../../../plugins/request-log/queue.ts';
import { addRows, requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fakeExchange, fakeHost, okAnswer, requestIdAt, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

test('each exchange leaves one row and one line, at any end', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(requestLog, host, {});
  const answered = fakeExchange({ id: randomUUID() });
  answered.set(call, {
    protocol: 'chat',
    model: 'm',
    stream: true,
    billable: true,
    inputTokens: 1,
    maxOutputTokens: undefined,
    choices: 1,
  });
  const tags = new Map([
    ['team', 'search'],
    ['env', 'prod'],
  ]);
  answered.set(caller, { accountId: randomUUID(), keyId: randomUUID(), plan: 'free', models: undefined, tags });
  answered.set(usageReport, {
    usage: { input: 3, output: 4 },
    estimated: false,
    terminal: true,
    upstreamId: 'id-1',
    finish: 'stop',
  });
  answered.set(attempts, [
    {
      number: 1,
      provider: 'p',
      model: 'theirs',
      credential: 'p#1',
      protocol: 'chat',
      startedAt: 0,
      result: 'answered',
      status: 200,
      durationMs: 1,
      error: undefined,
    },
  ]);
  const refused = fakeExchange({ id: randomUUID() });
  const left = fakeExchange({ id: randomUUID() });
  for (const exchange of [answered, refused, left]) await part.handle!(exchange, async () => okAnswer);
  await answered.end({ bytesOut: 10, firstByteMs: 1.234 });
  await refused.end({ status: 401, error: new GatewayError('unauthenticated', 'no', { code: 'invalid_api_key' }) });
  await left.end({ kind: 'client_left', status: 499 });
  await part.lifecycle!.stop!();
  await part.lifecycle!.stop!();
  const rows = (await store.orm.execute(
    sql`select * from ${sql.identifier(store.schema)}.requests order by total_ms, status`,
  )) as unknown as Record<string, unknown>[];
  assert.deepEqual(
    rows.map((row) => [
      row['id'],
      row['status'],
      row['outcome'],
      row['error_code'],
      row['model'],
      row['upstream_model'],
      row['usage'],
      row['attempts'],
    ]),
    [
      [answered.id, 200, 'complete', null, 'm', 'theirs', { input: 3, output: 4 }, 1],
      [refused.id, 401, 'complete', 'invalid_api_key', null, null, null, 0],
      [left.id, 499, 'client_left', null, null, null, null, 0],
    ],
  );
  assert.deepEqual(
    host.lines.map(({ fields }) => (fields as { request_id: string }).request_id),
    [answered.id, refused.id, left.id],
  );
  assert.deepEqual(
    host.lines.map(({ fields }) => (fields as { tags?: string }).tags),
    ['env=prod,team=search', undefined, undefined],
  );
});

const text = fc.oneof(
  fc.constantFrom(
    '',
    'NULL',
    '{"a",b}',
    `it's "so" \\ so`,
    '漢字 🎈',
    '\x1f',
    '\x1e',
    'a\x1fb\x1e',
    '0!',
    '\x1f0!\x1e0!',
  ),
  fc.string(),
);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const wildRow = fc.record({
  operation: text,
  account_id: maybe(fc.constant(randomUUID())),
  model: maybe(text),
  error_code: maybe(text),
  upstream_id: maybe(text),
  status: fc.constantFrom(200, 404, 499, 503),
  outcome: fc.constantFrom('complete', 'failed', 'client_left'),
  attempts: fc.nat(3),
  streamed: fc.boolean(),
  first_byte_ms: maybe(fc.constantFrom(0, 0.5, 99_999.75)),
  total_ms: fc.constantFrom(0.0625, 640.25),
  bytes_in: fc.nat(),
  bytes_out: fc.constantFrom(0, 2 ** 40),
  usage: maybe(fc.constantFrom({}, { input: 3 })),
  usage_estimated: maybe(fc.boolean()),
  dropped: maybe(fc.array(text, { minLength: 1, maxLength: 3 })),
  story: maybe(fc.array(fc.tuple(fc.nat(), text))),
});

test('rows with any texts, some of which are there already, are stored as given and summed up once', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const given = fc.sample(fc.array(wildRow, { minLength: 1, maxLength: 40 }), { numRuns: 6, seed: 38 }).map((rows) =>
    rows.map((row, index) => {
      const at = Date.UTC(2026, 9, 20, 7, index);
      // Where a text is cut off for the database, no NUL is left.
      const clean = JSON.parse(JSON.stringify(row).replaceAll('\\u0000', '')) as typeof row;
      return { ...clean, request_id: requestIdAt(at), received_at: new Date(at).toISOString() };
    }),
  );
  for (const [index, rows] of given.entries()) {
    await addRows(store, JSON.stringify(rows));
    const again = [...rows.slice(index), ...(given[index + 1] ?? []).slice(0, 2)];
    await addRows(store, JSON.stringify(again));
  }
  const stored = (await store.orm.execute(
    sql`select id::text as request_id, to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as received_at, operation,
        nullif(account_id::text, ${noId}) as account_id, model, error_code, upstream_id, status, outcome, attempts, streamed, first_byte_ms, total_ms, bytes_in,
        bytes_out::float8 as bytes_out, usage, usage_estimated, dropped, story
      from ${sql.identifier(store.schema)}.requests order by id`,
  )) as unknown as Record<string, unknown>[];
  const present = (row: object) => Object.fromEntries(Object.entries(row).filter(([, value]) => value != null));
  const byId = (one: { request_id?: unknown }, other: { request_id?: unknown }) =>
    String(one.request_id) < String(other.request_id) ? -1 : 1;
  assert.deepEqual(stored.map(present), given.flat().map(present).toSorted(byId));
  assert.deepEqual(await checkSums(store.orm, store.schema, requestSums), []);
});

test('rows wait while the database is away, in order, and the oldest are dropped when there are too many', async () => {
  let away = true;
  const written: number[] = [];
  const host = fakeHost();
  const queue = new RowQueue(async (rows) => {
    if (away) throw new Error('away');
    written.push(...(JSON.parse(rows) as { row: number }[]).map(({ row }) => row));
  }, host);
  const rows = 60_000;
  const text = 'x'.repeat(2_000);
  for (let row = 0; row < rows; row++) queue.push(JSON.stringify({ row, text }));
  await assert.rejects(queue.flush(), /away/);
  away = false;
  await queue.flush();
  assert.ok(written.length * text.length > 60e6 && written.length * text.length <= 2 ** 26, `${written.length} rows`);
  assert.equal(written.at(-1), rows - 1);
  for (const [index, row] of written.entries()) assert.equal(row, rows - written.length + index);
  assert.match(host.lines.at(-1)!.message, /rows were lost/);
  assert.equal((host.lines.at(-1)!.fields as { rows: number }).rows, rows - written.length);
});

test('any rows and timelines, written at any time, are read once, whole and in order', async () => {
  const row = fc.record({
    text: fc.string({ unit: 'binary' }),
    story: fc.option(fc.array(fc.string({ unit: 'binary' }))),
    flush: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row), fc.array(fc.boolean()), async (rows, failures) => {
      const written: unknown[] = [];
      const queue = new RowQueue(async (json) => {
        if (failures.pop() === true) throw new Error('away');
        written.push(...(JSON.parse(json) as unknown[]));
      }, fakeHost());
      for (const { text, story: timeline, flush } of rows) {
        queue.push(JSON.stringify({ text }), timeline === null ? undefined : JSON.stringify(timeline));
        if (flush) void queue.flush().catch(() => {});
      }
      for (let tries = 0; tries <= 100 && written.length < rows.length; tries++) await queue.flush().catch(() => {});
      assert.deepEqual(
        written,
        rows.map(({ text, story: timeline }) => ({ text, ...(timeline === null ? {} : { story: timeline }) })),
      );
    }),
  );
});

test('a row longer than a page is written too', async () => {
  const written: string[] = [];
  const queue = new RowQueue(
    async (json) => void written.push(...(JSON.parse(json) as { text: string }[]).map(({ text }) => text)),
    fakeHost(),
  );
  const texts = ['a', 'é'.repeat(300_000), 'b'];
  for (const text of texts) queue.push(JSON.stringify({ text }));
  await queue.flush();
  assert.deepEqual(written, texts);
});

test('after a quiet time a row is written at once; under load one batch each beat has all rows so far', async () => {
  const host = fakeHost();
  const written: { at: number; rows: number }[] = [];
  const begun = host.clock.now();
  const push = () => queue.push('{"row":1}');
  const queue: RowQueue = new RowQueue(async (rows) => {
    written.push({ at: host.clock.now() - begun, rows: (JSON.parse(rows) as unknown[]).length });
    // What comes while a batch is written waits for the next one.
    push();
  }, host);
  assert.equal(queue.advance(), undefined);
  for (let at = 0; at < 3 * beatMs; at += 10, host.advance(10)) {
    push();
    if (at % lookMs === 0) await queue.advance();
  }
  assert.deepEqual(written, [
    { at: 0, rows: 1 },
    { at: beatMs, rows: 51 },
    { at: 2 * beatMs, rows: 51 },
  ]);
});

test('a full page does not wait for the beat, unless the database is away', async () => {
  const host = fakeHost();
  let away = false;
  let pages = 0;
  const queue = new RowQueue(async () => {
    if (away) throw new Error('away');
    pages += 1;
  }, host);
  const pushPage = () => {
    for (let row = 0; row < 4; row += 1) queue.push(JSON.stringify({ text: 'x'.repeat(80_000) }));
  };
  pushPage();
  await queue.advance();
  assert.ok(pages > 0);
  const before = pages;
  away = true;
  pushPage();
  await assert.rejects(async () => queue.advance(), /away/);
  assert.equal(queue.advance(), undefined);
  away = false;
  host.advance(beatMs);
  await queue.advance();
  assert.ok(pages > before);
});

test('a request for all rows writes all of them', async () => {
  for (let turns = 0; turns < 20; turns += 1) {
    let pushed = 1;
    let rows = 0;
    const queue: RowQueue = new RowQueue(async (json) => {
      rows += (JSON.parse(json) as unknown[]).length;
      if (pushed === 2) return;
      pushed = 2;
      queue.push('{"row":2}');
    }, fakeHost());
    queue.push('{"row":1}');
    void queue.advance();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const wanted = pushed;
    if (turns > 10) assert.equal(wanted, 2);
    await queue.flush();
    assert.ok(rows >= wanted, `after ${turns} turns`);
  }
});
