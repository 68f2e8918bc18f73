/** Requests that did not come over HTTP: the same chain, limits, charge and rows as over HTTP, for every kind of client. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { DirectAnswer, DirectRequest } from '../../core/contract/direct-request.ts';
import { caller, keyring } from '../../plugins/common/domain/accounts.ts';
import { dialectNames, dialects, type Question } from './dialects.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

const plugin = join(process.cwd(), `tests/end-to-end/.direct-${randomBytes(4).toString('hex')}.ts`);
const source = `
import { z } from 'zod';
export default { name: 'direct', config: z.strictObject({}), setup: (host) => ((globalThis.performs = host.perform), {}) };`;
const perform = (request: DirectRequest): Promise<DirectAnswer> =>
  (globalThis as unknown as { performs: typeof perform }).performs(request);

let testbed: Testbed;
before(async () => {
  await writeFile(plugin, source);
  const listed =
    'storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert';
  testbed = await startTestbed({
    more: { plugins: [plugin, ...listed.split(', ')], 'rate-limit': {} },
    offers: { single: { price: 0, limits: { concurrency: 1 } } },
  });
});
after(async () => {
  await testbed.stop();
  await rm(plugin);
});

const question: Question = { model: 'sandbox', prompt: 'Hello [[sandbox: tokens=20]]', stream: false };

function requestOf(
  customer: Customer,
  name: (typeof dialectNames)[number],
  requested: Question,
  more: Partial<DirectRequest> = {},
) {
  const dialect = dialects[name];
  return {
    method: 'POST',
    path: dialect.path(requested),
    headers: { 'content-type': 'application/json', ...dialect.key(customer.key) },
    body: Buffer.from(JSON.stringify(dialect.body(requested))),
    remoteAddress: '192.0.2.7',
    ...more,
  } as const satisfies DirectRequest;
}

async function textOf({ body }: DirectAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('a direct call in every protocol, whole and streamed, is charged once as over HTTP, and settled at its end', async () => {
  for (const name of dialectNames)
    for (const stream of [false, true]) {
      const customer = await testbed.customer();
      const answer = await perform(requestOf(customer, name, { ...question, stream }));
      assert.equal(answer.status, 200);
      const text = await textOf(answer);
      if (stream) assert.match(text, dialects[name].terminal);
      const { kind, status } = await answer.ended;
      assert.deepEqual([kind, status], ['complete', 200]);
      const { ends, charges } = await testbed.records(customer);
      assert.deepEqual([ends, charges[0]!.classes.output, charges[0]!.estimated], [['charged answered'], 20, false]);
      assert.equal(charges[0]!.id, answer.headers['x-request-id']);
      const over = await testbed.customer();
      await testbed.call(over, name, { ...question, stream });
      assert.equal(charges[0]!.cost, (await testbed.records(over)).charges[0]!.cost);
    }
  await testbed.audit();
});

test('a direct call with a known caller needs no credential, and a revoked key is refused', async () => {
  const customer = await testbed.customer();
  const callers = testbed.gateway.gateway.find(keyring)!;
  const head = {
    headers: { authorization: `Bearer ${customer.key}` },
    query: new URLSearchParams(),
    remoteAddress: 'x',
  };
  const known = await callers.authenticate(head as never);
  const again = await callers.callerOf(known.keyId, 'x');
  assert.deepEqual(again, known);
  const headers = { 'content-type': 'application/json' };
  const prepare: DirectRequest['prepare'] = (exchange) => exchange.set(caller, again);
  const answer = await perform(requestOf(customer, 'chat', question, { headers, prepare }));
  assert.equal(answer.status, 200);
  await textOf(answer);
  await answer.ended;
  assert.equal((await testbed.records(customer)).charges.length, 1);
  const refused = await perform(requestOf(customer, 'chat', question, { headers }));
  assert.equal(refused.status, 401);
  await textOf(refused);
  const revoke = testbed.gateway.gateway.commands.find(({ name }) => name === 'keys revoke')!;
  await revoke.run({ key: known.keyId });
  await until('the revocation is heard', () =>
    callers.callerOf(known.keyId, 'x').then(
      () => false,
      () => true,
    ),
  );
});

test('direct calls: refusals are answers in the protocol; an address without an endpoint rejects', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n });
  const broke = await perform(requestOf(customer, 'messages', question));
  assert.equal(broke.status, 402);
  assert.equal(JSON.parse(await textOf(broke)).type, 'error');
  await broke.ended;
  await assert.rejects(perform(requestOf(customer, 'chat', question, { path: '/nowhere' })), { status: 404 });
});

test('direct calls: aborting is a disconnection, before the head, in the middle and by reading no further', async () => {
  const slow = { ...question, stream: true, prompt: 'Hello [[sandbox: tokens=2000 chunk_delay=10ms]]' };
  const leaving = [
    async (customer: Customer) => {
      const controller = new AbortController();
      controller.abort();
      await assert.rejects(perform(requestOf(customer, 'chat', slow, { signal: controller.signal })), {
        kind: 'client_left',
      });
      return { ended: 1, charged: 0 };
    },
    async (customer: Customer) => {
      const controller = new AbortController();
      const answer = await perform(requestOf(customer, 'chat', slow, { signal: controller.signal }));
      const reading = textOf(answer);
      setTimeout(() => controller.abort(), 60);
      await assert.rejects(reading);
      assert.equal((await answer.ended).kind, 'client_left');
      return { ended: 1, charged: 1 };
    },
    async (customer: Customer) => {
      const answer = await perform(requestOf(customer, 'chat', slow));
      for await (const _chunk of answer.body) break;
      assert.equal((await answer.ended).kind, 'client_left');
      return { ended: 1, charged: 1 };
    },
  ];
  for (const leave of leaving) {
    // The only slot is free again after each.
    const customer = await testbed.customer({ plan: 'single' });
    const { ended, charged } = await leave(customer);
    await until('nothing is in flight', () => testbed.gateway.gateway.inFlight === 0);
    const answer = await perform(requestOf(customer, 'chat', question));
    await textOf(answer);
    await answer.ended;
    assert.equal((await testbed.records(customer, ended + 1)).charges.length, charged + 1);
  }
  await testbed.audit();
});

test('direct calls: an unread answer makes the vendor wait, and a large request arrives whole', async () => {
  const customer = await testbed.customer();
  const long = {
    ...question,
    stream: true,
    prompt: `${'x'.repeat(300_000)} [[sandbox: tokens=20000]]`,
    more: { max_tokens: 20_000 },
  };
  const answer = await perform(requestOf(customer, 'messages', long));
  assert.equal(answer.status, 200);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(testbed.gateway.gateway.inFlight, 1);
  const text = await textOf(answer);
  assert.match(text, /message_stop/);
  const { bytesOut } = await answer.ended;
  assert.equal(bytesOut, Buffer.byteLength(text));
  assert.equal((await testbed.records(customer)).charges[0]!.classes.output, 20_000);
});
