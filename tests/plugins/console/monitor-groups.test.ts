/** The monitor's groups: beside the number of their requests stands what just these groups have cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { money } from '../../../plugins/common/domain/money.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

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
