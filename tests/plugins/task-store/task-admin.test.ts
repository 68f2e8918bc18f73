/** Administration of tasks: whose tasks are shown and cancelled, in which states, and what that does to the money. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { TaskView } from '../../../plugins/common/domain/admin/tasks.ts';
import { openTaskAdmin } from '../../../plugins/task-store/admin/task-admin.ts';
import { type Manner, type Node, openTestbed, orderOf, settleTurn, type Testbed, workOff } from './setup.ts';

const id = (number: number) => `task_${String(number).padStart(32, '0')}`;
const signal = new AbortController().signal;

/** A gateway whose vendors do as the prompt says. */
async function furnished(deadlineMs = 600_000): Promise<{ testbed: Testbed; node: Node }> {
  const testbed = await openTestbed({ accepted: new Map(), charged: 0, manner: (prompt) => prompt as Manner });
  await testbed.credit('1');
  return { testbed, node: testbed.node({ deadlineMs: { image: deadlineMs, video: deadlineMs } }) };
}

/** Brings to an end what ends; then no one is there any more who could begin with anything. */
async function finish(testbed: Testbed, node: Node): Promise<void> {
  await workOff(testbed, node, 5);
  await node.engine.stop(1_000);
}

const numbers = (tasks: readonly TaskView[]) => tasks.map((task) => Number(task.id.slice(5)));

test('tasks are paged newest first, by account, kind and state, and shown as their client sees them', async () => {
  const { testbed, node } = await furnished();
  for (const [index, prompt] of ['at once', 'refuses content', 'at once', 'stuck'].entries()) {
    await node.order(id(index + 1), orderOf(prompt));
    await settleTurn(node);
  }
  await finish(testbed, node);
  await node.order(id(5), orderOf('at once'));
  const admin = openTaskAdmin(node.tools);
  const found: TaskView[] = [];
  for (let after: string | undefined; ; ) {
    const page = await admin.list({ accountId: 'alice' }, { limit: 2, after }, undefined);
    found.push(...page.rows);
    if (page.next === undefined) break;
    after = page.next;
  }
  assert.deepEqual(numbers(found), [5, 4, 3, 2, 1]);
  const everybody = await admin.list({}, { limit: 500 }, undefined);
  assert.deepEqual(everybody, { rows: found, next: undefined });
  const of = async (...states: TaskView['state'][]) =>
    numbers((await admin.list({ states }, { limit: 9 }, undefined)).rows);
  assert.deepEqual(await of('succeeded'), [3, 1]);
  assert.deepEqual(await of('failed', 'queued'), [5, 2]);
  assert.deepEqual(await of('running'), [4]);
  assert.deepEqual(await of('expired'), []);
  assert.deepEqual((await admin.list({ kind: 'video' }, { limit: 9 }, undefined)).rows, []);
  assert.deepEqual((await admin.list({ accountId: 'bob' }, { limit: 9 }, undefined)).rows, []);
  // A page that begins behind another account's task is empty: nothing is learnt of that.
  const { next } = await admin.list({ accountId: 'alice' }, { limit: 1 }, undefined);
  assert.deepEqual((await admin.list({ accountId: 'bob' }, { limit: 9, after: next }, undefined)).rows, []);
  const states = (accountId: string) => admin.statesOf(found.map(({ requestId }) => ({ requestId, accountId })));
  assert.deepEqual(await states('alice'), new Map(found.map(({ requestId, state }) => [requestId, state])));
  assert.deepEqual(await states('bob'), new Map());
  const made = await admin.find(id(1), 'alice', undefined);
  assert.deepEqual(
    { prompt: made!.prompt, progress: made!.progress, results: made!.results, cancellable: made!.cancellable },
    {
      prompt: 'at once',
      progress: 100,
      results: [
        { url: `http://127.0.0.1/files/file_${id(1)}_0`, mediaType: 'image/png', expiresAt: Date.parse('2100-01-01') },
      ],
      cancellable: false,
    },
  );
  assert.equal((await admin.find(id(2), undefined, undefined))!.error!.code, 'content_policy');
  assert.equal(await admin.find(id(1), 'bob', undefined), undefined);
  assert.equal(await admin.find("' or true", undefined, undefined), undefined);
  await assert.rejects(
    admin.list({}, { limit: 9, after: '7' }, undefined),
    (error: GatewayError) => error.field === 'after',
  );
  await testbed.database.close();
});

test('a waiting task is cancelled by its account or an operator, once, and its money is released', async () => {
  const { testbed, node } = await furnished();
  for (const number of [1, 2]) await node.order(id(number), orderOf('at once'));
  const admin = openTaskAdmin(node.tools);
  assert.equal((await admin.find(id(1), 'alice', undefined))!.cancellable, true);
  await assert.rejects(admin.cancel(id(1), 'bob', signal), (error: GatewayError) => error.kind === 'not_found');
  await admin.cancel(id(1), 'alice', signal);
  await admin.cancel(id(2), undefined, signal);
  await admin.cancel(id(2), undefined, signal);
  assert.deepEqual(await testbed.states(), { [id(1)]: 'cancelled', [id(2)]: 'cancelled' });
  assert.equal(await testbed.balance(), 1_000_000_000n);
  assert.deepEqual(await testbed.violations(), []);
  await testbed.database.close();
});

test('a begun task of a vendor without cancellation, and an ended one, stay unchanged', async () => {
  const { testbed, node } = await furnished();
  await node.order(id(1), orderOf('stuck'));
  await node.order(id(2), orderOf('at once'));
  await finish(testbed, node);
  const admin = openTaskAdmin(node.tools);
  const before = await testbed.states();
  for (const number of [1, 2]) {
    assert.equal((await admin.find(id(number), undefined, undefined))!.cancellable, false);
    await assert.rejects(
      admin.cancel(id(number), undefined, signal),
      (error: GatewayError) => error.status === 409 && error.code === 'task_not_cancellable',
    );
  }
  assert.deepEqual(await testbed.states(), before);
  await testbed.database.close();
});

test('an expired task is reported as expired, and not among the failed', async () => {
  const { testbed, node } = await furnished(50);
  await node.order(id(1), orderOf('stuck'));
  await settleTurn(node);
  await new Promise((resolve) => setTimeout(resolve, 60));
  await workOff(testbed, node);
  const admin = openTaskAdmin(node.tools);
  assert.deepEqual(numbers((await admin.list({ states: ['expired'] }, { limit: 9 }, undefined)).rows), [1]);
  assert.deepEqual((await admin.list({ states: ['failed'] }, { limit: 9 }, undefined)).rows, []);
  assert.equal((await admin.find(id(1), 'alice', undefined))!.state, 'expired');
  await testbed.database.close();
});
