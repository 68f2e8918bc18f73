/** Days and hours of time zones: short and long days, zones with half hours, and spans that begin anywhere. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  boundsOf,
  bucketMinutesOf,
  daysEarlier,
  spanOfDays,
  startOfDay,
  zoneInput,
} from '../../../plugins/console/api/time-zone.ts';
import { fc } from '../../helpers/properties.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

const hourMs = 3_600_000;
const day = 1_440;
const at = (text: string) => Date.parse(text);
const hoursOf = (bounds: readonly number[]) => bounds.slice(1).map((end, index) => (end - bounds[index]!) / hourMs);
const texts = (bounds: readonly number[]) => bounds.map((moment) => new Date(moment).toISOString().slice(0, 16));

test('a day is a day of its zone: 23 hours when summer begins, 25 when it ends', () => {
  const spring = { from: at('2026-03-27T23:00Z'), until: at('2026-03-30T22:00Z') };
  assert.deepEqual(hoursOf(boundsOf(spring, day, 'Europe/Berlin', 1_500)), [24, 23, 24]);
  const autumn = { from: at('2026-10-23T22:00Z'), until: at('2026-10-26T23:00Z') };
  assert.deepEqual(hoursOf(boundsOf(autumn, day, 'Europe/Berlin', 1_500)), [24, 25, 24]);
  const hours = boundsOf({ from: at('2026-10-24T22:00Z'), until: at('2026-10-25T23:00Z') }, 60, 'Europe/Berlin', 1_500);
  assert.equal(hours.length - 1, 25);
  // Six hours from midnight on; the last bucket ends with the day.
  const quarters = boundsOf(
    { from: at('2026-10-24T22:00Z'), until: at('2026-10-26T05:00Z') },
    360,
    'Europe/Berlin',
    1_500,
  );
  assert.deepEqual(hoursOf(quarters), [6, 6, 6, 6, 1, 6]);
  assert.equal(startOfDay(at('2026-03-29T12:00Z'), 'Europe/Berlin'), at('2026-03-28T23:00Z'));
  assert.equal(startOfDay(at('2018-11-04T12:00Z'), 'America/Sao_Paulo'), at('2018-11-04T03:00Z'), 'it began at 1 a.m.');
});

test('days and hours of zones with half and quarter hours begin on their own clocks', () => {
  const span = { from: at('2026-11-20T20:00Z'), until: at('2026-11-22T10:00Z') };
  const kolkata = boundsOf(span, day, 'Asia/Kolkata', 1_500);
  assert.deepEqual(texts(kolkata), ['2026-11-20T20:00', '2026-11-21T18:30', '2026-11-22T10:00']);
  assert.deepEqual(texts(boundsOf(span, day, 'Asia/Kathmandu', 1_500))[1], '2026-11-21T18:15');
  const hours = boundsOf({ from: at('2026-11-20T20:00Z'), until: at('2026-11-20T22:00Z') }, 60, 'Asia/Kolkata', 1_500);
  assert.deepEqual(texts(hours), ['2026-11-20T20:00', '2026-11-20T20:30', '2026-11-20T21:30', '2026-11-20T22:00']);
  // Lord Howe's summer is half an hour.
  const howe = { from: at('2026-10-03T13:30Z'), until: at('2026-10-05T13:00Z') };
  assert.deepEqual(hoursOf(boundsOf(howe, day, 'Australia/Lord_Howe', 1_500)), [23.5, 24]);
});

test('weeks begin on Mondays, and days that a query names begin with today', () => {
  const weeks = boundsOf({ from: at('2026-11-04T00:00Z'), until: at('2026-11-18T00:00Z') }, 7 * day, 'UTC', 1_500);
  assert.deepEqual(texts(weeks), ['2026-11-04T00:00', '2026-11-09T00:00', '2026-11-16T00:00', '2026-11-18T00:00']);
  const now = at('2026-11-22T13:31Z');
  assert.deepEqual(texts(Object.values(spanOfDays({}, now, 30))), ['2026-10-24T00:00', '2026-11-22T13:31']);
  const tokyo = spanOfDays({ tz: 'Asia/Tokyo' }, at('2026-11-22T16:00Z'), 1);
  assert.equal(tokyo.from, at('2026-11-22T15:00Z'), 'it is the 23rd there');
});

const zones = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'America/Sao_Paulo',
  'Africa/Casablanca',
);

test('buckets of more than six hours are whole quarters of an hour, as in the rollups', () => {
  const spanOf = (hours: number) => ({ from: 0, until: hours * hourMs });
  for (const [hours, wanted, minutes] of [
    [6, 1, 1],
    [6, 7, 7],
    [7, 1, 15],
    [7, 15, 15],
    [24, 20, 30],
    [24, 45, 45],
    [2_000, 100, 105],
  ] as const)
    assert.equal(bucketMinutesOf(spanOf(hours), wanted, 1_500), minutes);
  for (const hours of [6.1, 18, 24, 100, 2_000]) assert.equal(bucketMinutesOf(spanOf(hours), undefined, 1_500) % 15, 0);
});

test('with any span, zone and length, buckets cover it without a gap, in order, and none crosses midnight', () => {
  const moment = fc.integer({ min: at('2010-01-01T00:00Z'), max: at('2030-01-01T00:00Z') });
  const requested = fc.option(fc.integer({ min: 1, max: 10_080 }), { nil: undefined });
  fc.assert(
    fc.property(
      moment,
      fc.integer({ min: 1, max: 92 * 24 * hourMs }),
      zones,
      requested,
      (from, length, zone, wanted) => {
        const span = { from, until: from + length };
        const minutes = bucketMinutesOf(span, wanted, 1_500);
        const bounds = boundsOf(span, minutes, zone, 1_500);
        assert.deepEqual([bounds[0], bounds.at(-1)], [span.from, span.until]);
        assert.ok(bounds.length <= 1_501, `${bounds.length}`);
        for (const [index, end] of bounds.entries()) {
          if (index === 0) continue;
          const begin = bounds[index - 1]!;
          assert.ok(end > begin);
          if (minutes >= day) {
            if (end !== span.until) assert.equal(startOfDay(end, zone), end);
          } else {
            assert.ok(end - begin <= minutes * 60_000);
            assert.equal(startOfDay(begin, zone), startOfDay(end - 1, zone));
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('a zone is an IANA name; another value is refused by its field', async () => {
  for (const name of ['Europe/Berlin', 'UTC', 'Etc/GMT+5', 'Asia/Calcutta'])
    assert.ok(zoneInput.safeParse(name).success, name);
  assert.equal(zoneInput.parse('europe/berlin'), 'Europe/Berlin');
  const send = caller(fakeConsole(), 'operator');
  for (const name of ['Mars/Olympus', '+02:00', '', '__proto__', 'Europe/Berlin%00', 'x'.repeat(100)]) {
    for (const path of ['/home', '/usage/series', '/admin/monitor', '/admin/monitor/series', '/admin/money']) {
      const { status, json } = await send(`GET ${path}?tz=${name}`);
      assert.deepEqual([status, json?.error.field], [400, 'tz'], `${path} ${name}`);
      assert.match(json.error.message, /IANA name, such as Europe\/Berlin/);
    }
  }
});

test('a series names its zone, and each of its rows has requests and money of the same time', async () => {
  const console = fakeConsole();
  const send = caller(console, 'operator');
  const { json } = await send(
    'GET /admin/monitor/series?tz=Asia/Kolkata&bucketMinutes=1440&from=2000-01-01T00:00:00Z&until=2000-01-03T00:00:00Z',
  );
  assert.deepEqual([json.tz, json.bucketMs], ['Asia/Kolkata', 86_400_000]);
  assert.deepEqual(
    json.rows.map((row: { at: string }) => row.at),
    ['2000-01-01T00:00:00.000Z', '2000-01-01T18:30:00.000Z', '2000-01-02T18:30:00.000Z'],
  );
  const home = (await send('GET /home?tz=Asia/Kolkata')).json;
  assert.equal(home.byDay.length, 30);
  const month = (await send('GET /admin/monitor/series?tz=Asia/Kolkata&bucketMinutes=1440')).json;
  const sums = (await send('GET /admin/monitor?tz=Asia/Kolkata')).json;
  const add = (field: string) =>
    month.rows.reduce((sum: number, row: Record<string, unknown>) => sum + Number(row[field]), 0);
  assert.equal(add('requests'), sums.requests);
  assert.ok(Math.abs(add('cost') - Number(sums.cost)) < 1e-6);
});

test('the same span so many days earlier ends at the same time of the clock, in every zone and across changes of the clock', () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe'];
  const clock = (moment: number, zone: string) =>
    new Intl.DateTimeFormat('en', { timeZone: zone, timeStyle: 'medium', hourCycle: 'h23' }).format(moment);
  fc.assert(
    fc.property(
      fc.integer({ min: at('2020-01-01T00:00Z'), max: at('2030-01-01T00:00Z') }),
      fc.constantFrom(...zones),
      fc.constantFrom(1, 30),
      (now, tz, days) => {
        const span = spanOfDays({ tz }, now, days);
        const earlier = daysEarlier(span, tz, days);
        assert.equal(earlier.from, startOfDay(span.from, tz, days));
        // An hour that a clock skips is the one after it.
        const shifted = (span.until - earlier.until) / hourMs - 24 * days;
        assert.ok(Math.abs(shifted) <= 2, `${shifted} hours`);
        if (clock(earlier.until, tz) !== clock(span.until, tz)) assert.ok(Math.abs(shifted) > 0 || tz !== 'UTC');
        assert.ok(earlier.from < earlier.until && earlier.until <= span.from + (days > 1 ? 0 : 2 * hourMs) + 1);
      },
    ),
  );
  const morning = spanOfDays({ tz: 'Europe/Berlin' }, at('2026-11-21T08:30Z'), 1);
  assert.deepEqual(texts([daysEarlier(morning, 'Europe/Berlin', 1).until]), ['2026-11-20T08:30']);
});
