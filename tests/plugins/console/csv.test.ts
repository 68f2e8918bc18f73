/** Files for spreadsheets: words, plain numbers, the reader's days; and the spans that are chosen by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvAnswer } from '../../../plugins/console/api/csv/answer.ts';
import { dayAndTime, usageCells, wordOf } from '../../../plugins/console/api/csv/cells.ts';
import { bucketDay } from '../../../plugins/console/web/src/pages/operator/monitor/bucket-label.ts';
import { toCsv } from '../../../plugins/console/web/src/pages/operator/sums/rows-csv.ts';
import { before, type calendarNames, endOf, startOf } from '../../../plugins/console/web/src/parts/named-span.ts';
import { fc } from '../../helpers/properties.ts';

test('a measured time has three places at most, and an amount all of its own', async () => {
  const rows = [{ ms: 54.540000915527344, amount: '-0.000012345', count: 12_345_678, none: null }];
  const answer = csvAnswer('file', ['ms', 'amount', 'count', 'none'], async () => ({ rows, next: null }));
  assert.equal(await answer.text(), 'ms,amount,count,none\r\n54.54,-0.000012345,12345678,\r\n');
  assert.match(toCsv(['ms'], [[54.540000915527344]]), /54\.54\r\n$/);
});

test('a file has all rows, however many, and one that fails in between is broken off', async () => {
  const pageOf = async ({ after }: { after?: string | undefined }) => {
    const at = Number(after ?? 0);
    if (at === 300) throw new Error('the database is away');
    return { rows: Array.from({ length: 500 }, (_, row) => ({ row })), next: at === 250 ? null : String(at + 1) };
  };
  const text = await csvAnswer('file', ['row'], pageOf).text();
  assert.equal(text.split('\r\n').length, 251 * 500 + 2);
  await assert.rejects(csvAnswer('file', ['row'], ({ after = '251' }) => pageOf({ after })).text(), /away/);
});

test('a moment is written as day and time of the reader', () => {
  const at = '2026-11-27T23:00:00.000Z';
  assert.deepEqual(dayAndTime(at, 'Europe/Berlin'), { day: '2026-11-28', time: '00:00:00' });
  assert.deepEqual(dayAndTime(at), { day: '2026-11-27', time: '23:00:00' });
  const day = { tz: 'Europe/Berlin', bucketMs: 86_400_000 };
  assert.equal(bucketDay(new Date(at), day), '2026-11-28');
  assert.equal(bucketDay(new Date('2026-10-25T22:30:00Z'), { ...day, bucketMs: 3_600_000 }), '2026-10-25 23:30');
});

test('consumption is tokens in and out, and all else in words', () => {
  const usage = { input: 5, cache_read: 7, output: 2, reasoning: 1, image: 2, web_search: 1, request: 1 };
  assert.deepEqual(usageCells(usage), { inputTokens: 12, outputTokens: 3, otherUsage: '2 image; 1 web search' });
  assert.deepEqual(usageCells(null), { inputTokens: null, outputTokens: null, otherUsage: null });
  assert.deepEqual(['client_left', 'CHARGE', 'constructor', 'a reason of a person', null].map(wordOf), [
    'client disconnected',
    'call',
    'constructor',
    'a reason of a person',
    null,
  ]);
});

test('a span by name is whole days of the calendar, and the one before it ends where it begins', () => {
  const now = new Date(2026, 2, 31, 10, 30);
  const spanOf = (name: (typeof calendarNames)[number]) => [startOf(name, now), endOf(name, now)];
  assert.deepEqual(spanOf('yesterday'), [new Date(2026, 2, 30), new Date(2026, 2, 31)]);
  assert.deepEqual(spanOf('month'), [new Date(2026, 2, 1), undefined]);
  assert.deepEqual(spanOf('lastMonth'), [new Date(2026, 1, 1), new Date(2026, 2, 1)]);
  // February has no 31st.
  assert.deepEqual(before('month', now), new Date(2026, 1, 28, 10, 30));
  fc.assert(
    fc.property(fc.date({ min: new Date(2000, 0, 1), max: new Date(2060, 0, 1), noInvalidDate: true }), (moment) => {
      for (const name of ['yesterday', 'lastMonth'] as const) {
        const [start, end] = [startOf(name, moment), endOf(name, moment)!];
        assert.deepEqual(before(name, end), start);
        assert.ok(end <= moment && start < end);
        assert.deepEqual(
          [start.getHours(), end.getHours()].every((hour) => hour < 4),
          true,
        );
      }
      assert.deepEqual(before('month', startOf('month', moment)), startOf('lastMonth', moment));
    }),
  );
});
