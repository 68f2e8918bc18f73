/** Request rows: one for each exchange whatever its end, in batches, without secrets, bounded while the database is away. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/errors.ts';
import { attempts, call, caller, database, usageReport } from '../../../core/vocabulary.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { RowQueue } from '../../../plugins/request-log/queue.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

test('each exchange leaves one row and one line, whatever its end', async () => {
  const store = await openDatabase();
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
  answered.set(caller, { accountId: randomUUID(), keyId: randomUUID(), plan: 'free', models: undefined });
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
  await part.stop!();
  await part.stop!();
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
  assert.equal(host.lines.length, 3);
  await store.close();
});

test('rows wait while the database is away, in order, and the oldest go when there are too many', async () => {
  let away = true;
  const written: number[] = [];
  const host = fakeHost();
  const queue = new RowQueue(async (rows) => {
    if (away) throw new Error('away');
    written.push(...(JSON.parse(rows) as number[]));
  }, host.log);
  for (let row = 0; row < 60_000; row++) queue.push(String(row));
  await assert.rejects(queue.flush(), /away/);
  away = false;
  await queue.flush();
  assert.equal(written.length, 50_000);
  assert.equal(written[0], 10_000);
  assert.deepEqual(
    written,
    written.toSorted((left, right) => left - right),
  );
  assert.match(host.lines.at(-1)!.message, /rows were lost/);
});
