/** The hourly removal of old rows: in bounded steps, which batches of calls need not wait for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import { database, type Orm } from '../../../plugins/common/domain/database.ts';
import { firstIdAt } from '../../../plugins/common/kit/arrival.ts';
import { sliceRows } from '../../../plugins/common/kit/key-slices.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { addRows, requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fakeHost, requestIdAt, setUp } from '../../helpers/fakes.ts';

const hourMs = 3_600_000;

test('rows older than the retention are deleted in bounded steps; the others and all sums stay', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const { orm, schema } = store;
  const table = sql`${sql.identifier(schema)}.requests`;
  const host = fakeHost({ schema });
  const counts: number[] = [];
  const countOf = async () => {
    const [row] = (await orm.execute(sql`select count(*)::int as count from ${table}`)) as unknown as [
      { count: number },
    ];
    return row.count;
  };
  const execute = async (statement: SQL) => {
    const found = await orm.execute(statement);
    counts.push(await countOf());
    return found;
  };
  host.provide(database, { ...store, orm: { execute } as unknown as Orm });
  const part = await setUp(requestLog, host, { retention: '12h' });
  await part.lifecycle!.start!();
  const now = host.clock.now();
  const all = 3 * sliceRows;
  const rows = Array.from({ length: all }, (_, index) => {
    const at = now - Math.floor((24 * hourMs * (index + 1)) / all);
    const reported = { operation: 'chat', status: 429, outcome: 'complete', attempts: 0, total_ms: 2 };
    return {
      request_id: requestIdAt(at),
      received_at: new Date(at).toISOString(),
      streamed: false,
      bytes_in: 9,
      bytes_out: 9,
      ...reported,
    };
  });
  await addRows(store, JSON.stringify(rows));
  counts.length = 0;
  counts.push(all);
  await host.intervals.find(({ name }) => name === 'prune request rows')!.work();
  const removed = counts.slice(1).map((count, index) => counts[index]! - count);
  assert.ok(Math.max(...removed) <= sliceRows, `${Math.max(...removed)} rows at once`);
  const kept = rows.filter(({ request_id }) => request_id >= firstIdAt(now - 12 * hourMs));
  assert.equal(counts.at(-1), kept.length);
  const [row] = (await orm.execute(
    sql`select count(*)::int as count from ${table} where id >= ${firstIdAt(now - 12 * hourMs)}::uuid`,
  )) as unknown as [{ count: number }];
  assert.equal(row.count, kept.length);
  const [summed] = (await orm.execute(
    sql`select sum(requests)::int as count from ${sql.identifier(schema)}.request_sums where part = 0`,
  )) as unknown as [{ count: number }];
  assert.equal(summed.count, all);
  assert.deepEqual(await checkSums(orm, schema, requestSums), []);
  await part.lifecycle?.stop?.();
});
