/** Versions of prices in the console: past, current and future ones, and the next change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cost, formatUsd, one, parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { sheetOf } from '../../../plugins/common/domain/pages/price-sheet.ts';
import { type PriceBook, PriceVersion, priceFor, versionAt } from '../../../plugins/common/domain/prices.ts';
import { nextChange, versionsOf } from '../../../plugins/console/api/price-sheet.ts';
import { priceQueries } from '../../../plugins/console/services.ts';
import { fc } from '../../helpers/properties.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

function version(name: string, from?: number, until?: number): PriceVersion {
  const times = { ...(from === undefined ? {} : { from }), ...(until === undefined ? {} : { until }) };
  return new PriceVersion({ name, base: { input: parseUsd('0.000002') }, ...times });
}
const statesOf = (book: PriceBook, at: number) =>
  Object.fromEntries(versionsOf(book, at, one).map(({ sheet, state }) => [sheet.version, state]));

test('a version is past, in force or future; one that an offer covers for a while is in force again', () => {
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

const sizes = (otherwise: string | undefined, ...amounts: string[]) => ({
  entries: amounts.map((amount, index) => ({ words: [`size${index}`], amount: parseUsd(amount) })),
  otherwise: otherwise === undefined ? undefined : parseUsd(otherwise),
});

test('images and seconds of video have the price charged without a size, its unit and its range', () => {
  const ratio = parseRatio('1.2');
  const linesOf = (options: Partial<ConstructorParameters<typeof PriceVersion>[0]>) =>
    sheetOf([new PriceVersion({ name: 'list', base: {}, ...options })], 0, ratio)!.lines.map((line) => {
      const range = line.range === null ? '' : ` (${line.range.least} to ${line.range.most})`;
      return `${line.class}: ${line.yours} per ${line.per}${range}`;
    });
  const search = { base: { web_search: parseUsd('0.014') }, image: sizes('0.134', '0.24') };
  assert.deepEqual(linesOf(search), ['image: 0.1608 per image (0.1608 to 0.288)', 'web_search: 0.0168 per call']);
  const video = { base: { request: parseUsd('0.002') }, second: sizes('0.05', '0.05', '0.07') };
  assert.deepEqual(linesOf(video), ['second: 0.06 per second (0.06 to 0.084)', 'request: 0.0024 per request']);
  assert.deepEqual(linesOf({ base: { image: parseUsd('0.07') } }), ['image: 0.084 per image']);
  assert.deepEqual(linesOf({ base: { input: parseUsd('2') } }), ['input: 2.40 per million']);
});

test('with any table of sizes, the listed price is the charge for one piece without a size', () => {
  const amount = fc.integer({ min: 0, max: 2_000_000_000 }).map((nano) => formatUsd(BigInt(nano)));
  const tables = fc.record({
    otherwise: fc.option(amount, { nil: undefined }),
    amounts: fc.array(amount, { minLength: 1, maxLength: 8 }),
  });
  fc.assert(
    fc.property(
      tables,
      fc.constantFrom('image', 'second'),
      fc.constantFrom('1', '1.2', '0.35'),
      (table, kind, text) => {
        const ratio = parseRatio(text);
        const book = [new PriceVersion({ name: 'list', base: {}, [kind]: sizes(table.otherwise, ...table.amounts) })];
        const charge = (media: readonly string[]) => {
          const usage = { [kind]: 1 };
          return cost(usage, priceFor(book, 0, usage, { media })!.price, ratio);
        };
        const [line] = sheetOf(book, 0, ratio)!.lines;
        assert.deepEqual([line!.class, line!.per, line!.yours], [kind, kind, formatUsd(charge([]))]);
        const each = [charge([]), ...table.amounts.map((_, index) => charge([`size${index}`]))];
        for (const amount of each) {
          assert.ok(
            amount >= parseUsd(line!.range?.least ?? line!.yours) &&
              amount <= parseUsd(line!.range?.most ?? line!.yours),
          );
        }
      },
    ),
  );
});

test('the next change is the moment at which another version of either book comes into force', () => {
  const book = [version('list'), version('offer', 1_000, 2_000)];
  assert.equal(nextChange([book], 500), 1_000);
  assert.equal(nextChange([book, [version('own'), version('dearer', 700)]], 500), 700);
  assert.equal(nextChange([book], 1_500), 2_000);
  assert.equal(nextChange([book, undefined], 2_000), undefined);
  assert.equal(nextChange([[version('over', 0, 10)]], 5), 10, 'from then on it is not sold');
});

test('at most one version of any price book is in force, and none changes before the announced time', () => {
  const moment = fc.integer({ min: 0, max: 50 });
  const records = fc.uniqueArray(fc.record({ from: moment, lasts: fc.option(fc.integer({ min: 1, max: 20 })) }), {
    maxLength: 6,
    selector: ({ from }) => from,
  });
  fc.assert(
    fc.property(records, moment, (written, at) => {
      const book = written.map(({ from, lasts }) =>
        version(`v${from}`, from, lasts === null ? undefined : from + lasts),
      );
      const inForce = versionAt(book, at);
      const reply = versionsOf(book, at, one);
      assert.deepEqual(
        reply.filter(({ state }) => state === 'now').map(({ sheet }) => sheet.version),
        inForce === undefined ? [] : [inForce.name],
      );
      const change = nextChange([book], at) ?? 100;
      for (let later = at; later < change; later++) assert.equal(versionAt(book, later), inForce);
      if (change < 100) assert.notEqual(versionAt(book, change), inForce);
    }),
  );
});

test('operators and auditors get every version with its lines, and the time of the next change', async () => {
  const send = caller(fakeConsole(), 'auditor');
  const row = (await send('GET /admin/prices')).json.rows[0];
  assert.equal(row.prices.version, '2026-09');
  assert.equal(row.changesAt, '2099-01-01T00:00:00.000Z');
  const { status, json } = await send(`GET /admin/prices/versions?model=${row.id}`);
  assert.equal(status, 200);
  const reply = json.prices.map(({ state, sheet }: { state: string; sheet: { version: string } }) => [
    sheet.version,
    state,
  ]);
  assert.deepEqual(reply, [
    ['2099-01', 'later'],
    ['2026-09', 'now'],
    ['2026-01', 'past'],
  ]);
  const input = (index: number) => json.prices[index].sheet.lines[0].official;
  assert.equal(Number(input(0)), 3 * Number(input(1)));
  assert.deepEqual(json.prices[1].sheet, row.prices, 'the version in force is the one of the list');
  assert.equal(json.cost.length, 1);
});

test("the list and each version include the model's own ratio", async () => {
  const services = fakeConsole();
  const queries = services.find(priceQueries)!;
  const [model] = queries.list();
  const dearer = { ...queries, list: () => [{ ...model!, multiplier: '1.7' }] };
  const find = ((service) => (service === priceQueries ? dearer : services.find(service))) as typeof services.find;
  const send = caller({ ...services, find }, 'operator');
  const { prices } = (await send('GET /admin/prices')).json.rows[0];
  assert.equal(prices.ratio, '1.7');
  for (const { official, yours } of prices.lines)
    assert.equal(parseUsd(yours), (parseUsd(official) * 17n + 5n) / 10n, official);
  const { json } = await send(`GET /admin/prices/versions?model=${model!.id}`);
  assert.deepEqual(json.prices[1].sheet, prices);
  assert.equal(json.cost[0].sheet.ratio, '1', 'the own cost is not multiplied');
});

test('an unknown model is named, and a client sees no own cost', async () => {
  const services = fakeConsole();
  const missing = await caller(services, 'operator')('GET /admin/prices/versions?model=nothing');
  assert.deepEqual([missing.status, missing.json.error.field], [404, 'model']);
  assert.equal((await caller(services, 'client')('GET /admin/prices/versions?model=gpt-5.4')).status, 403);
});
