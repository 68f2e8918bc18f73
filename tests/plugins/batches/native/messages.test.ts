/** Batches that a vendor of messages makes itself: it knows no name of ours, so a lost order is found by the ids of its lines. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Trouble } from './stand-in.ts';
import { type Client, lineCost, startTestbed, type Testbed } from './world.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed();
});
after(() => testbed.stop());

const request = (id: string, text = id) => ({
  custom_id: id,
  params: { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: text }] },
});

interface MessageBatch {
  readonly id: string;
  readonly processing_status: string;
  readonly request_counts: Record<string, number>;
}

interface Result {
  readonly type: string;
  readonly message?: { readonly content: readonly { readonly text: string }[] };
  readonly error?: { readonly error: { readonly type: string; readonly message: string } };
}

async function order(client: Client, requests: readonly object[]): Promise<string> {
  return ((await (await client.call('POST', '/v1/messages/batches', { requests })).json()) as MessageBatch).id;
}

async function ended(client: Client, id: string) {
  for (;;) {
    const batch = (await (await client.call('GET', `/v1/messages/batches/${id}`)).json()) as MessageBatch;
    if (batch.processing_status === 'ended') {
      const text = await (await client.call('GET', `/v1/messages/batches/${id}/results`)).text();
      const lines = text.trimEnd().split('\n');
      const results = lines.map((line) => JSON.parse(line) as { custom_id: string; result: Result });
      return { counts: batch.request_counts, results: new Map(results.map((one) => [one.custom_id, one.result])) };
    }
    await pause(50);
  }
}

test('messages are executed in one vendor batch, each paid once by its own usage', async () => {
  const world = await testbed.open();
  const id = await order(world.client, [request('one'), request('two', '[refused]'), request('three')]);
  const { counts, results } = await ended(world.client, id);
  assert.deepEqual(counts, { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 });
  assert.match(results.get('one')!.message!.content[0]!.text, /^answer b[0-9a-f]{24}-1$/);
  assert.deepEqual(results.get('two')!.error!.error.type, 'invalid_request_error');
  assert.equal(world.vendor.steps.filter((step) => step === 'order').length, 1);
  assert.equal(world.vendor.steps.at(-1), 'delete');
  await world.settled(2n * lineCost, 2);
});

test('a cancelled batch, and one that expires at the vendor, keep and pay their finished lines', async () => {
  const world = await testbed.open();
  world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
  const id = await order(world.client, [request('one'), request('two', '[late]')]);
  while (!world.vendor.steps.includes('get')) await pause(20);
  await world.client.call('POST', `/v1/messages/batches/${id}/cancel`, {});
  const cancelled = await ended(world.client, id);
  assert.deepEqual([cancelled.counts['succeeded'], cancelled.counts['canceled']], [1, 1]);
  world.vendor.pollsUntilEnd = 1;
  world.vendor.endsAs = 'expired';
  const expired = await ended(world.client, await order(world.client, [request('one'), request('two', '[late]')]));
  assert.deepEqual([expired.counts['succeeded'], expired.counts['expired']], [1, 1]);
  await world.settled(2n * lineCost, 2);
});

test('an order with a lost answer is found by its lines, also beside another batch of the same size', async (context) => {
  const world = await testbed.open();
  const kinds: (Trouble | undefined)[] = [{ status: 529 }, 'before', { status: 502 }, 'after'];
  let tries = 0;
  world.vendor.trouble = (step) => (step === 'order' ? kinds[tries++] : undefined);
  // An ended batch of another client with the same key, with ids that are not ours.
  const other = world.vendor.create('msgbatch_x', '', [
    { id: 'x-1', body: {} },
    { id: 'x-2', body: {} },
  ]);
  world.vendor.end(other, 'completed');
  const before = world.vendor.made;
  world.vendor.pollsUntilEnd = 3;
  // The vendor returns the ids of the lines, which identify the owner, once the batch has ended.
  const ending = setInterval(() => {
    for (const batch of world.vendor.batches.values())
      if (batch.state === 'running') world.vendor.end(batch, 'completed');
  }, 2_000);
  context.after(() => clearInterval(ending));
  const { counts } = await ended(world.client, await order(world.client, [request('one'), request('two')]));
  assert.equal(counts['succeeded'], 2);
  assert.equal(world.vendor.made - before, 2);
  assert.equal(tries, 4);
  await world.settled(2n * lineCost, 2);
});

test('errors of the vendor at each other call delay a batch, and repeat nothing', async () => {
  const world = await testbed.open();
  const kinds: Trouble[] = [{ status: 500 }, 'before', { status: 429, headers: { 'retry-after': '0' } }, 'after'];
  const seen = new Map<string, number>();
  world.vendor.trouble = (step) => {
    const times = seen.get(step) ?? 0;
    seen.set(step, times + 1);
    return step === 'order' || step === 'delete' ? undefined : kinds[times];
  };
  const { counts } = await ended(world.client, await order(world.client, [request('one'), request('two')]));
  assert.equal(counts['succeeded'], 2);
  for (const step of ['get', 'results']) assert.ok((seen.get(step) ?? 0) > kinds.length, `${step} was repeated`);
  await world.settled(2n * lineCost, 2);
});

test('a line with an impossible reported usage is charged by its estimate', async () => {
  const world = await testbed.open();
  const id = await order(world.client, [request('one'), request('two', '[lies]')]);
  await ended(world.client, id);
  await world.checkLies();
});
