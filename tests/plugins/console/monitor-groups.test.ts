/** The monitor's groups: beside the number of their requests stands what just these groups have cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { money } from '../../../plugins/common/domain/money.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

test('a group that is not among the largest has its cost too, and one without a charge costs 0', async () => {
  const services = fakeConsole();
  const { world } = services;
  const send = caller(services, 'operator');
  const [request] = world.requests;
  const charge = world.charges.find(({ requestId }) => world.requests.some(({ id }) => id === requestId))!;
  const at = services.clock.now() - 60_000;
  world.requests.length = 0;
  world.charges.length = 0;
  const add = (accountId: string, calls: number, cost: bigint | undefined) => {
    for (let count = 0; count < calls; count++) {
      const id = `${accountId}-${count}`;
      world.requests.push({ ...request!, id, accountId, receivedAt: at, operation: 'chat' });
      if (cost !== undefined)
        world.charges.push({ ...charge, requestId: id, accountId, at, cost: money(cost), ownCost: money(0n) });
    }
  };
  for (let account = 0; account < 600; account++) add(`dear-${account}`, 1, 5_000_000_000n);
  add('cheap', 3, 1_000_000n);
  add('free', 2, undefined);
  const groups = async (query: string) => {
    const { json } = await send(`GET /admin/monitor/groups?limit=2&${query}`);
    return json.rows.map(({ group, requests, cost, margin }: Record<string, unknown>) => [
      group,
      requests,
      cost,
      margin,
    ]);
  };
  assert.deepEqual(await groups('by=account'), [
    ['cheap', 3, '0.003', '0.003'],
    ['free', 2, '0.00', '0.00'],
  ]);
  // A charge has no operation, so what such a group has cost is not known.
  assert.deepEqual(await groups('by=operation'), [['chat', 605, null, null]]);
});

test('cached tokens, and what they saved at the list price of today, are those of the own charges', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const { json } = await send('GET /usage/cached');
  const since = services.clock.now() - 30 * 86_400_000;
  const charges = services.world.charges.filter(({ accountId, at }) => accountId === clientAccount && at >= since);
  const sum = (of: (usage: Readonly<Record<string, number>>) => number, model?: string) =>
    charges.filter((row) => model === undefined || row.model === model).reduce((all, { usage }) => all + of(usage), 0);
  assert.ok(json.cached > 0);
  assert.equal(
    json.cached,
    sum(({ cache_read: read = 0 }) => read),
  );
  const models = (await send('GET /models')).json.rows;
  let total = 0;
  for (const { model, cached, saved } of json.rows) {
    assert.equal(
      cached,
      sum(({ cache_read: read = 0 }) => read, model),
    );
    const lines = models.find(({ id }: { id: string }) => id === model).prices.lines as {
      class: string;
      yours: string;
    }[];
    const price = (name: string) => Number(lines.find((line) => line.class === name)?.yours ?? Number.NaN);
    const expected = (cached * (price('input') - (price('cache_read') || price('input')))) / 1e6;
    assert.ok(Math.abs(Number(saved) - expected) < 1e-8, `${model}: ${saved} for ${expected}`);
    total += Number(saved);
  }
  assert.ok(Math.abs(Number(json.saved) - total) < 1e-8);
  assert.equal((await caller(services, 'client')('GET /admin/monitor/cached')).status, 403);
});

test('models and the vendors of one are compared by the calls that were served, and clients see no vendor', async () => {
  const services = fakeConsole();
  const { rows } = (await caller(services, 'client')('GET /models/comparison')).json;
  const since = services.clock.now() - 7 * 86_400_000;
  const ofModel = (model: string) =>
    services.world.requests.filter((row) => row.model === model && row.receivedAt >= since);
  const isOk = ({ status, outcome }: { status: number; outcome: string }) => outcome === 'complete' && status < 400;
  const isFailed = ({ status, outcome }: { status: number; outcome: string }) =>
    outcome !== 'client_left' && (outcome === 'failed' || status >= 500);
  assert.ok(rows.length > 3);
  for (const { model, succeeded, firstByteP50Ms } of rows) {
    const calls = ofModel(model);
    const [ok, failed] = [calls.filter(isOk).length, calls.filter(isFailed).length];
    assert.equal(succeeded, ok + failed === 0 ? null : ok / (ok + failed), model);
    assert.ok(firstByteP50Ms === null || firstByteP50Ms > 0);
  }
  const [{ model }] = rows;
  assert.doesNotMatch(JSON.stringify(rows), /provider/);
  const vendors = (await caller(services, 'auditor')(`GET /admin/monitor/vendors?model=${model}`)).json.rows;
  const providers = new Set(ofModel(model).flatMap(({ provider }) => provider ?? []));
  assert.deepEqual(new Set(vendors.map(({ provider }: { provider: string }) => provider)), providers);
});
