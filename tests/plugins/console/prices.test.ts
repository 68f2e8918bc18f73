/** Prices in time as the console tells them: which versions were, which holds, which will, and when that changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { one, parseUsd } from '../../../core/money.ts';
import { type PriceBook, PriceVersion, versionAt } from '../../../core/prices.ts';
import { nextChange, versionsOf } from '../../../plugins/console/api/price-sheet.ts';
import { priceDesk } from '../../../plugins/console/desks.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-desks.ts';

function version(name: string, from?: number, until?: number): PriceVersion {
  const times = { ...(from === undefined ? {} : { from }), ...(until === undefined ? {} : { until }) };
  return new PriceVersion({ name, base: { input: parseUsd('0.000002') }, ...times });
}
const statesOf = (book: PriceBook, at: number) =>
  Object.fromEntries(versionsOf(book, at, one).map(({ sheet, state }) => [sheet.version, state]));

test('a version was, holds or will hold; one that an offer covers for a while holds again', () => {
  const book = [version('list'), version('offer', 1_000, 2_000), version('next', 5_000)];
  assert.deepEqual(statesOf(book, 500), { list: 'now', offer: 'later', next: 'later' });
  assert.deepEqual(statesOf(book, 1_000), { list: 'later', offer: 'now', next: 'later' });
  assert.deepEqual(statesOf(book, 2_000), { list: 'now', offer: 'past', next: 'later' });
  assert.deepEqual(statesOf(book, 9_000), { list: 'past', offer: 'past', next: 'now' });
  assert.deepEqual(
    versionsOf(book, 500, one).map(({ sheet, validFrom, validUntil }) => [sheet.version, validFrom, validUntil]),
    [
      ['next', '1970-01-01T00:00:05.000Z', null],
      ['offer', '1970-01-01T00:00:01.000Z', '1970-01-01T00:00:02.000Z'],
      ['list', null, null],
    ],
  );
});

test('the next change is the moment at which another version comes into force, of either book', () => {
  const book = [version('list'), version('offer', 1_000, 2_000)];
  assert.equal(nextChange([book], 500), 1_000);
  assert.equal(nextChange([book, [version('own'), version('dearer', 700)]], 500), 700);
  assert.equal(nextChange([book], 1_500), 2_000);
  assert.equal(nextChange([book, undefined], 2_000), undefined);
  assert.equal(nextChange([[version('over', 0, 10)]], 5), 10, 'from then on it is not sold');
});

test('whatever a book holds, one version at most is in force, and no change comes before the next that is told', () => {
  const moment = fc.integer({ min: 0, max: 50 });
  const books = fc.uniqueArray(fc.record({ from: moment, lasts: fc.option(fc.integer({ min: 1, max: 20 })) }), {
    maxLength: 6,
    selector: ({ from }) => from,
  });
  fc.assert(
    fc.property(books, moment, (written, at) => {
      const book = written.map(({ from, lasts }) =>
        version(`v${from}`, from, lasts === null ? undefined : from + lasts),
      );
      const inForce = versionAt(book, at);
      const told = versionsOf(book, at, one);
      assert.deepEqual(
        told.filter(({ state }) => state === 'now').map(({ sheet }) => sheet.version),
        inForce === undefined ? [] : [inForce.name],
      );
      const change = nextChange([book], at) ?? 100;
      for (let later = at; later < change; later++) assert.equal(versionAt(book, later), inForce);
      if (change < 100) assert.notEqual(versionAt(book, change), inForce);
    }),
  );
});

test('operators and auditors are told every version with its lines, and the list says when it changes', async () => {
  const ask = caller(fakeConsole(), 'auditor');
  const row = (await ask('GET /admin/prices')).json.rows[0];
  assert.equal(row.prices.version, '2026-09');
  assert.equal(row.changesAt, '2099-01-01T00:00:00.000Z');
  const { status, json } = await ask(`GET /admin/prices/versions?model=${row.id}`);
  assert.equal(status, 200);
  const told = json.prices.map(({ state, sheet }: { state: string; sheet: { version: string } }) => [
    sheet.version,
    state,
  ]);
  assert.deepEqual(told, [
    ['2099-01', 'later'],
    ['2026-09', 'now'],
    ['2026-01', 'past'],
  ]);
  const input = (index: number) => json.prices[index].sheet.lines[0].official;
  assert.equal(Number(input(0)), 3 * Number(input(1)));
  assert.deepEqual(json.prices[1].sheet, row.prices, 'the version in force is the one of the list');
  assert.equal(json.cost.length, 1);
});

test("what accounts pay is told with the model's own ratio, in the list and of each version", async () => {
  const hall = fakeConsole();
  const desk = hall.find(priceDesk)!;
  const [model] = desk.list();
  const dearer = { ...desk, list: () => [{ ...model!, multiplier: '1.7' }] };
  const find = ((service) => (service === priceDesk ? dearer : hall.find(service))) as typeof hall.find;
  const ask = caller({ ...hall, find }, 'operator');
  const { prices } = (await ask('GET /admin/prices')).json.rows[0];
  assert.equal(prices.ratio, '1.7');
  for (const { official, yours } of prices.lines)
    assert.equal(parseUsd(yours), (parseUsd(official) * 17n + 5n) / 10n, official);
  const { json } = await ask(`GET /admin/prices/versions?model=${model!.id}`);
  assert.deepEqual(json.prices[1].sheet, prices);
  assert.equal(json.cost[0].sheet.ratio, '1', 'the own cost is not multiplied');
});

test('a model that is not there is named, and a client is told no own cost', async () => {
  const hall = fakeConsole();
  const missing = await caller(hall, 'operator')('GET /admin/prices/versions?model=nothing');
  assert.deepEqual([missing.status, missing.json.error.field], [404, 'model']);
  assert.equal((await caller(hall, 'client')('GET /admin/prices/versions?model=gpt-5.4')).status, 403);
});
