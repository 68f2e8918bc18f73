/** what clients receive of orders that were taken while the database failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { markUndecided, type Orm } from '../../../plugins/common/domain/database.ts';
import { type Authorization, authorization } from '../../../plugins/common/domain/ledger.ts';
import { model } from '../../../plugins/common/domain/models.ts';
import { zero } from '../../../plugins/common/domain/money.ts';
import type { Tools } from '../../../plugins/task-store/engine/dependencies.ts';
import { Engine } from '../../../plugins/task-store/engine/engine.ts';
import type { TaskRows } from '../../../plugins/task-store/engine/rows.ts';
import { openaiVideos } from '../../../plugins/task-store/orders/shapes/index.ts';
import { takeOrder } from '../../../plugins/task-store/orders/submit.ts';
import { submission } from '../../../plugins/task-store/orders/waiting.ts';
import { fakeExchange, fakeHost } from '../../helpers/fakes.ts';
import { openTestbed, orderOf } from './setup.ts';

/** The rows, of which no one can be found for a while. */
function blind(rows: TaskRows, isBlind: () => boolean): TaskRows {
  return {
    insert: (transaction, task) => rows.insert(transaction, task),
    take: (lease, limit, leaseMs) => rows.take(lease, limit, leaseMs),
    renew: (id, lease, leaseMs) => rows.renew(id, lease, leaseMs),
    find: (id, accountId) => (isBlind() ? Promise.reject(new Error('the database is down')) : rows.find(id, accountId)),
    move: (id, from, to, changes) => rows.move(id, from, to, changes),
    end: (transaction, task, from, state, changes) => rows.end(transaction, task, from, state, changes),
    deleteOld: (olderThanMs) => rows.deleteOld(olderThanMs),
    remove: (id, accountId) => rows.remove(id, accountId),
  };
}

test('an accepted order is answered with its id even where it cannot be read, and a waiting client waits on', async () => {
  const testbed = await openTestbed({ accepted: new Map(), charged: 0, manner: () => 'at once' });
  let isDown = false;
  const node = testbed.node();
  const tools: Tools = { ...node.tools, rows: blind(node.tools.rows, () => isDown) };
  const answered = async (waits: boolean) => {
    const exchange = fakeExchange();
    const money: Authorization = {
      ...{ id: exchange.id, accountId: 'alice', keyId: 'key', amount: zero },
      place: (work) => testbed.database.orm.transaction((own) => work(own as Orm)),
    };
    exchange.set(authorization, money);
    exchange.set(model, tools.catalog.find('painter')!);
    exchange.set(submission, { order: orderOf('p'), waits, form: 'url', callbackUrl: undefined });
    const taking = { tools, engine: new Engine(tools, 0), host: fakeHost(), shape: openaiVideos };
    const { body } = await takeOrder(exchange, {
      ...taking,
      synchronous: false,
      waitMs: 250,
      tasksPath: '/v1/tasks',
      mostStreams: 0,
    });
    return JSON.parse(body as string) as { id: string; [member: string]: unknown };
  };
  const read = await answered(false);
  isDown = true;
  const unread = await answered(false);
  const waited = await answered(true);
  assert.deepEqual(await testbed.states(), { [read.id]: 'queued', [unread.id]: 'queued', [waited.id]: 'queued' });
  const { id: _read, created_at: _before, ...reported } = read;
  const { id: _unread, created_at: _after, ...placedUnread } = unread;
  const { id: _waited, created_at: _late, ...readAtLast } = waited;
  assert.deepEqual([placedUnread, readAtLast], [reported, reported]);
  await testbed.database.close();
});

test('an order with unknown outcome returns its task and asks the client not to order again', {
  timeout: 30_000,
}, async () => {
  const testbed = await openTestbed({ accepted: new Map(), charged: 0, manner: () => 'at once' });
  const node = testbed.node();
  const orderWith = async (isPlaced: boolean, unreadTimes: number) => {
    let reads = 0;
    const tools: Tools = { ...node.tools, rows: blind(node.tools.rows, () => reads++ < unreadTimes) };
    const exchange = fakeExchange();
    exchange.set(authorization, {
      ...{ id: exchange.id, accountId: 'alice', keyId: 'key', amount: zero },
      place: async (work) => {
        if (isPlaced) await testbed.database.orm.transaction((own) => work(own as Orm));
        throw markUndecided(new Error('the connection was lost at the commit'));
      },
    });
    exchange.set(model, tools.catalog.find('painter')!);
    exchange.set(submission, { order: orderOf('p'), waits: false, form: 'url', callbackUrl: undefined });
    const taking = { tools, engine: new Engine(tools, 0), host: fakeHost(), shape: openaiVideos };
    const more = { synchronous: false, waitMs: 250, tasksPath: '/v1/tasks', mostStreams: 0 };
    return takeOrder(exchange, { ...taking, ...more });
  };
  assert.equal((await orderWith(true, 3)).status, 200, 'read at last');
  await assert.rejects(orderWith(false, 2), /lost at the commit/, 'it is certain that it does not stand');
  const unknown = await orderWith(true, 100).then(
    () => undefined,
    (error: GatewayError) => error,
  );
  const { kind, code, shouldRetry, retryAfterMs, headers } = unknown!;
  assert.deepEqual([kind, code, shouldRetry, retryAfterMs], ['overloaded', 'order_unknown', false, undefined]);
  assert.equal((await testbed.states())[headers!['x-gateway-task']!], 'queued');
  await testbed.database.close();
});
