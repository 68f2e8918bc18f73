/** The known set: each figure that the API gives about it is computed again from what was done and the price list, in two time zones. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dayIn, Figures } from './known/figures.ts';
import { type KnownSet, minute, phases, zones } from './known/play.ts';
import { nano, sum, usd } from './known/prices.ts';
import { clientOf } from './start-console.ts';

let figures: Figures;
let known: KnownSet;

before(async () => {
  figures = await Figures.play();
  known = figures.known;
});
after(() => known?.stop());

const boss = async (path: string) => (await known.boss.send(path)).json;
const names = ['cost', 'refunded', 'ownCost', 'ownCostUnknown', 'uncosted', 'writtenOff', 'margin'] as const;
const pick = (json: Record<string, unknown>) => Object.fromEntries(names.map((name) => [name, json[name]]));
const noise = () => known.made.filter(({ isNoise }) => isNoise).length;
const counts = (isWanted?: Parameters<Figures['count']>[1]) => ({
  ok: figures.count('ok', isWanted),
  client_error: figures.count('client_error', isWanted),
  upstream_error: figures.count('upstream_error', isWanted),
  left: figures.count('left', isWanted),
});

test('every kind of call and of movement is in the set', () => {
  const { calls, flows } = figures;
  assert.ok(known.made.length >= 130, String(known.made.length));
  assert.ok(calls.some(({ settled }) => !settled) && calls.some(({ absorbed }) => absorbed > 0n));
  assert.ok(calls.some(({ own, settled }) => settled && own === undefined));
  for (const result of ['ok', 'client_error', 'upstream_error', 'left'] as const)
    assert.ok(figures.count(result) > 0, result);
  for (const what of ['card', 'byHand', 'plan', 'code', 'promotion', 'usedPaid', 'usedGiven'] as const)
    assert.ok(
      flows.some((flow) => flow.what === what && flow.amount > 0n),
      what,
    );
  for (const zone of zones) assert.equal(new Set(calls.map(({ at }) => dayIn(zone, at))).size, 2, zone);
});

test('money as a whole is what calls and rows of the ledger come to', async () => {
  const json = await boss(`/admin/money?${figures.span}`);
  assert.deepEqual(pick(json), figures.moneyOf());
  const { card, byHand, paidBack, givenByPlans, givenByCodes, givenByPromotions, usedPaid, usedGiven, owed } = json;
  assert.deepEqual(
    { card, byHand, paidBack, givenByPlans, givenByCodes, givenByPromotions, usedPaid, usedGiven, owed },
    {
      ...{ card: figures.flow('card'), byHand: figures.flow('byHand'), paidBack: figures.flow('paidBack') },
      ...{ givenByPlans: figures.flow('plan'), givenByCodes: figures.flow('code') },
      ...{ givenByPromotions: figures.flow('promotion'), usedPaid: figures.flow('usedPaid') },
      ...{ usedGiven: figures.flow('usedGiven'), owed: figures.flow('owed') },
    },
  );
  assert.deepEqual([json.sold, json.debited, json.card, json.byHand], ['5.00', '0.25', '10.00', '30.00']);
});

test('days of two time zones are what their calls come to, and add up to the whole', async () => {
  const whole = await boss(`/admin/money?${figures.span}`);
  for (const zone of zones) {
    const { rows } = await boss(`/admin/monitor/series?${figures.span}&tz=${zone}&bucketMinutes=1440`);
    for (const row of rows) {
      const isDay = (at: number) => dayIn(zone, at) === dayIn(zone, Date.parse(row.at));
      assert.deepEqual(
        pick(row),
        figures.moneyOf(() => true, isDay),
        `${zone} ${row.at}`,
      );
      assert.deepEqual(
        row.results,
        counts(({ at }) => isDay(at)),
        `${zone} ${row.at}`,
      );
    }
    for (const name of ['cost', 'refunded', 'ownCost', 'uncosted', 'writtenOff', 'margin'])
      assert.equal(
        usd(sum(rows.map((row: Record<string, string>) => nano(row[name]!)))),
        whole[name],
        `${zone} ${name}`,
      );
  }
});

test('models, upstreams and accounts are what their calls come to; calls that were refused before serving are apart', async () => {
  const monitor = await boss(`/admin/monitor?${figures.span}`);
  assert.deepEqual(
    [monitor.requests, monitor.results, monitor.refused],
    [known.made.length - noise(), counts(), noise()],
  );
  assert.deepEqual(pick(monitor), figures.moneyOf());
  const failed = known.made.filter(({ result }) => result === 'client_error' || result === 'upstream_error');
  const causes = Map.groupBy(failed, ({ result, cause }) => (result === 'client_error' ? cause : 'upstream_failed'));
  const counted = (await boss(`/admin/monitor/causes?${figures.span}`)).rows;
  assert.deepEqual(
    new Map(counted.map(({ cause, requests }: { cause: string; requests: number }) => [cause, requests])),
    new Map([...causes].map(([cause, some]) => [cause, some.length])),
  );
  for (const by of ['model', 'provider', 'account'] as const) {
    const { rows } = await boss(`/admin/monitor/groups?${figures.span}&by=${by}&limit=100`);
    assert.ok(!rows.some(({ group }: { group: string }) => group === 'no-such-model'));
    for (const row of rows)
      assert.deepEqual(
        pick(row),
        figures.moneyOf((call) => call[by] === row.group),
        `${by} ${row.group}`,
      );
  }
  const { rows } = await boss(`/admin/monitor/groups?${figures.span}&by=model&limit=100`);
  for (const { group, results } of rows)
    assert.deepEqual(
      results,
      counts(({ model }) => model === group),
      group,
    );
  const { all, groups } = await boss(`/admin/monitor/activity?${figures.span}&by=model&limit=12`);
  const made = (series: { requests: number }[]) => series.reduce((total, { requests }) => total + requests, 0);
  assert.equal(made(all), known.made.length - noise());
  const named = known.made.filter(({ model, isNoise }) => model !== '' && !isNoise);
  assert.equal(made(groups.flatMap(({ series }: { series: [] }) => series)), named.length);
});

test("a client's pages show the balance of the ledger, what each day came to, and refused calls apart", async () => {
  for (const { browser, accountId, keys } of [known.ada, known.bob]) {
    const wallet = (await browser.send('/wallet')).json;
    const { rows } = (await browser.send('/wallet/ledger?limit=500')).json;
    assert.equal(wallet.balance, rows[0].balanceAfter);
    assert.equal(usd(sum(rows.map((row: { change: string }) => nano(row.change)))), wallet.balance);
    assert.equal(usd(sum(wallet.grants.map((grant: { remaining: string }) => nano(grant.remaining)))), wallet.balance);
    const authorization = `Bearer ${[...keys.values()][0]}`;
    const usage = await fetch(`${known.testbed.origin}/v1/usage`, { headers: { authorization } });
    assert.equal(((await usage.json()) as { balance: string }).balance, wallet.balance);
    const isOwn = ({ account }: { account: string }) => account === accountId;
    const sums = (await browser.send(`/usage/sums?${figures.span}`)).json;
    const refused = known.made.filter((made) => isOwn(made) && made.isNoise).length;
    assert.deepEqual([sums.results, sums.refused], [counts(isOwn), refused]);
    const { cost, refunded } = figures.moneyOf(isOwn);
    const spent = usd(nano(cost) - nano(refunded));
    assert.deepEqual([sums.cost, sums.refunded, sums.spent], [cost, refunded, spent]);
    for (const zone of zones) {
      const { byDay, byModel } = (await browser.send(`/home?tz=${zone}`)).json;
      const query = `${figures.span}&tz=${zone}&by=model&bucketMinutes=1440`;
      const activity = (await browser.send(`/usage/activity?${query}`)).json;
      const buckets = activity.at.map((at: string, index: number) => ({ at, ...activity.all[index] }));
      for (const { at, model, ...shown } of [...byDay, ...byModel, ...buckets]) {
        const { cost, refunded } = figures.moneyOf(
          (call) => isOwn(call) && (model ?? call.model) === call.model,
          (moment) => at === undefined || dayIn(zone, moment) === dayIn(zone, Date.parse(at)),
        );
        const spent = usd(nano(cost) - nano(refunded));
        assert.deepEqual([shown.cost, shown.refunded, shown.spent], [cost, refunded, spent], `${zone} ${at ?? model}`);
      }
    }
  }
});

test('an expired rest is in the ledger at its end, and a new client has the grant of the plan before the first call', async () => {
  const { rows } = (await known.ada.browser.send('/wallet/ledger?kind=EXPIRE')).json;
  // On a server the account's share is leased to this process, and the row waits until it is given back.
  const isLeased = process.env['TEST_DATABASE_URL'] !== undefined;
  assert.deepEqual(
    rows.map(({ at }: { at: string }) => Date.parse(at)),
    isLeased ? [] : [phases[1]! + 5 * minute],
  );
  const dora = await clientOf(known.testbed, 'dora@example.test');
  const made = (await dora.send('/keys', { body: { name: 'first' } })).json.key;
  const usage = await fetch(`${known.testbed.origin}/v1/usage`, { headers: { authorization: `Bearer ${made}` } });
  assert.equal(((await usage.json()) as { balance: string }).balance, '1.00');
  const { balance, spendable } = (await dora.send('/wallet')).json;
  assert.deepEqual([balance, spendable, (await dora.send('/home')).json.pool.balance], ['1.00', '1.00', '1.00']);
  assert.deepEqual((await dora.send('/wallet/ledger')).json.rows.length, 1);
});

test('files of requests, of own usage and of the ledger have every row with the cost that it must have', async () => {
  const linesOf = async (browser: typeof known.boss, path: string) => {
    const [head = '', ...lines] = (await browser.send(path)).text.trimEnd().split('\r\n');
    const names = head.split(',');
    const cellsOf = (line: string) => line.match(/(?<=^|,)(?:"(?:[^"]|"")*"|[^,]*)/g)!;
    return lines.map((line) => Object.fromEntries(cellsOf(line).map((cell, index) => [names[index], cell])));
  };
  const costs = new Map(figures.calls.map(({ id, cost, settled }) => [id, settled ? usd(cost) : '']));
  for (const [browser, path, isOwn] of [
    [known.boss, `/admin/requests.csv?${figures.span}`, () => true],
    [
      known.ada.browser,
      `/usage.csv?${figures.span}`,
      ({ account }: { account: string }) => account === known.ada.accountId,
    ],
  ] as const) {
    const rows = await linesOf(browser, path);
    assert.deepEqual(
      new Map(rows.map((row) => [row['requestId'], row['cost']])),
      new Map(known.made.filter(isOwn).map(({ id }) => [id, costs.get(id) ?? ''])),
      path,
    );
  }
  const ledger = await linesOf(known.boss, '/admin/ledger.csv?kind=CHARGE');
  const charged = figures.calls.filter(({ cost }) => cost > 0n);
  assert.equal(usd(sum(ledger.map(({ change }) => nano(change!)))), usd(-sum(charged.map(({ cost }) => cost))));
});
