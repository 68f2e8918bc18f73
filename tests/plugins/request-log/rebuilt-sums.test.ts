/** Rollups made again in many slices: interrupted anywhere and continued, they are those of the rows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { checkSums } from '../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../plugins/common/rollups/fold.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { addRows, requestSums } from '../../../plugins/request-log/request-sums.ts';
import { openDatabase } from '../../helpers/database.ts';
import { requestIdAt } from '../../helpers/fakes.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const start = Date.UTC(2026, 9, 20);
const days = 11;

const row = fc.record({
  at: fc.integer({ min: 0, max: days * dayMs - 1 }),
  model: fc.constantFrom('small', 'large', undefined),
  provider: fc.constantFrom('one', 'two', undefined),
  status: fc.constantFrom(200, 429, 503),
  total_ms: fc.integer({ min: 1, max: 100_000 }),
});

const history = fc.record({
  rows: fc.array(row, { minLength: 1, maxLength: 60 }),
  foldsTo: fc.integer({ min: 0, max: days * 24 }),
  richRows: fc.constantFrom(1, 4, 5_000),
  /** Sums that are wrong before. */
  damaged: fc.array(fc.constantFrom('count', 'removed', 'invented'), { maxLength: 3 }),
  /** After so many days it is interrupted. */
  ends: fc.integer({ min: 1, max: days }),
});

const damages = {
  count: 'update KEPT set requests = requests + 1 where ctid = (select ctid from KEPT order by random() limit 1)',
  removed: 'delete from KEPT where ctid = (select ctid from KEPT order by random() limit 1)',
  invented: `insert into KEPT (account_id, group_id, at, requests, part) select account_id, group_id, at + interval '8 days', 7, part from KEPT
    where at < '2026-10-22' order by random() limit 1 on conflict do nothing`,
};

class Interrupted extends Error {}

testHistory('sums rebuilt in slices of hours, interrupted and continued, are those of the rows', async () => {
  const store = await openDatabase({ plugins: ['request-log'] });
  const { orm } = store;
  const table = (name: string) => `"${store.schema}".${name}`;
  await fc.assert(
    fc.asyncProperty(history, async ({ rows, foldsTo, richRows, damaged, ends }) => {
      await orm.execute(
        sql.raw(`truncate ${['requests', 'request_sums', 'request_sums_groups', 'request_sums_state'].map(table).join(', ')};
        insert into ${table('request_sums_state')} default values`),
      );
      const given = rows.map(({ at, ...rest }) => ({
        ...{
          request_id: requestIdAt(start + at),
          received_at: new Date(start + at).toISOString(),
          operation: 'chat',
        },
        ...{ outcome: 'complete', streamed: false, attempts: 1, bytes_in: 0, bytes_out: 0 },
        ...rest,
      }));
      await addRows(store, JSON.stringify(given));
      await foldSums(orm, store.schema, requestSums, start + foldsTo * hourMs, richRows);
      for (const damage of damaged)
        await orm.execute(sql.raw(damages[damage].replaceAll('KEPT', table('request_sums'))));
      // As if there were so many rows.
      const counts = new Map(Array.from({ length: days + 2 }, (_, day) => [start / dayMs + day, 10 ** 5] as const));
      let reached: string | undefined;
      const interrupted = rebuildSums(orm, store.schema, requestSums, {
        days: counts,
        progress({ day, done }) {
          reached = day;
          if (done === ends) throw new Interrupted();
        },
      });
      await assert.rejects(interrupted, Interrupted);
      if (damaged.length === 0) assert.deepEqual(await checkSums(orm, store.schema, requestSums), []);
      await rebuildSums(orm, store.schema, requestSums, { days: counts, from: Date.parse(reached!) });
      assert.deepEqual(await checkSums(orm, store.schema, requestSums), []);
    }),
    { numRuns: runsOf(4, 60), endOnFailure: true },
  );
  await store.close();
});

test('after a rebuild of sums the index by time has all of their pages', async () => {
  await using store = await openDatabase({ plugins: ['request-log'] });
  const { orm, schema } = store;
  const given = Array.from({ length: 2_000 }, (_, number) => ({
    ...{
      request_id: requestIdAt(start + number * (hourMs / 4)),
      received_at: new Date(start + number * (hourMs / 4)).toISOString(),
    },
    ...{ operation: 'chat', outcome: 'complete', streamed: false, attempts: 1, bytes_in: 0, bytes_out: 0 },
    ...{ status: 200, total_ms: 5 },
  }));
  await addRows(store, JSON.stringify(given));
  await rebuildSums(orm, schema, requestSums);
  const [found] = await rowsOf<{ added: number }>(
    orm,
    sql`select brin_summarize_new_values(format('%I.request_sums_fine', ${schema}::text)::regclass) as added`,
  );
  assert.equal(found!.added, 0);
});
