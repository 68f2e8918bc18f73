/**
 * The outcome table of the money rules, one test for each of its rows, through the whole gateway. What a crash costs is shown
 * by tests/plugins/billing/recovery.test.ts and drain.test.ts, reading on after a client has left by leaving.test.ts.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { upstreamHealth } from '../../plugins/common/domain/admin/upstreams.ts';
import { catalog } from '../../plugins/common/domain/models.ts';
import { costBound } from '../../plugins/common/domain/money.ts';
import type { Script } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import {
  type AccountRecords,
  type Customer,
  extensionsOf,
  modelAt,
  speaks,
  startTestbed,
  type Testbed,
  until,
} from './testbed.ts';

const ways = dialectNames.map((name) => `only-${name}`);
/** What one refusal says rests a key: each case has a provider of its own. */
const refusals = [429, 503, 529];

let testbed: Testbed;
before(async () => {
  const closed = await closedPort();
  testbed = await startTestbed({
    offers: { shut: { price: 0, limits: { rpm: 1 } } },
    providers: ({ sandbox, replay }) => ({
      // A name with an empty label is refused before anybody is asked for it.
      nameless: { keys: 'key', speaks: speaks('http://no..name') },
      closed: { keys: 'key', speaks: speaks(`http://127.0.0.1:${closed}`) },
      'no-tls': { keys: 'key', speaks: speaks(replay.replace('http:', 'https:')) },
      keyless: { keys: '', speaks: speaks(sandbox) },
      streaming: { keys: vendorKey, speaks: { chat: `${sandbox}/v1` }, dialect: { chat: { streams: 'only' } } },
      ...Object.fromEntries(refusals.map((status) => [`refuses-${status}`, { keys: 'key', speaks: speaks(replay) }])),
      ...Object.fromEntries(
        dialectNames.map((name) => [`only-${name}`, { keys: vendorKey, speaks: { [name]: speaks(sandbox)[name] } }]),
      ),
    }),
    models: Object.fromEntries(
      [
        'nameless',
        'closed',
        'no-tls',
        'keyless',
        'streaming',
        ...refusals.map((status) => `refuses-${status}`),
        ...ways,
      ].flatMap((name) => [
        [name, modelAt(name)],
        [`${name}-or-sandbox`, modelAt(name, 'sandbox')],
      ]),
    ),
    more: { billing: { hold: { output_tokens: 50 } } },
  });
});
after(() => testbed.stop());

const vendorKey = 'vendor-key-of-the-sandbox';

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function paid(customer: Customer, before: bigint): Promise<bigint> {
  return before - (await testbed.balance(customer));
}

function attemptsOf({ attempts }: AccountRecords): string[] {
  return attempts.map(({ result, status }) => `${result} ${status}`);
}

test('row "never sent (limit, no target, DNS, refused connect, TLS)": void; may go to another target', async () => {
  for (const model of ['nameless', 'closed', 'no-tls']) {
    const customer = await testbed.customer();
    const before = await testbed.balance(customer);
    const reply = await testbed.call(customer, 'chat', { model, prompt: 'Hello' });
    assert.equal(reply.status, 502, `${model}: ${reply.text}`);
    assert.notEqual(reply.headers.get('x-should-retry'), 'false', model);
    const records = await testbed.records(customer);
    assert.deepEqual(
      [records.ends, attemptsOf(records), await paid(customer, before)],
      [['free not_sent'], [], 0n],
      model,
    );
    const other = await testbed.customer();
    assert.equal((await testbed.call(other, 'chat', { model: `${model}-or-sandbox`, prompt: 'Hello' })).status, 200);
    const moved = await testbed.records(other);
    assert.deepEqual([moved.ends, attemptsOf(moved)], [['charged answered'], ['answered 200']], model);
  }
  const customer = await testbed.customer({ plan: 'shut' });
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Hello' })).status, 200);
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Hello' })).status, 429);
  assert.ok(
    (await testbed.call(await testbed.customer(), 'chat', { model: 'keyless', prompt: 'Hello' })).status >= 400,
  );
  assert.deepEqual((await testbed.records(customer)).ends, ['charged answered']);
});

test('row "sent, upstream refused (4xx, 429, 503, 529) without usage": void; 429, 503 and 529 may go to another target', async () => {
  for (const status of [400, 404, 409, 413, 422]) {
    testbed.replay.play({ status, body: '{"error":{"message":"no"}}' });
    const customer = await testbed.customer();
    const reply = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello' });
    assert.equal(reply.status, status);
    const records = await testbed.records(customer);
    assert.deepEqual([records.ends, attemptsOf(records)], [['free refused'], [`refused ${status}`]]);
  }
  for (const status of refusals) {
    testbed.replay.play({ status });
    const customer = await testbed.customer();
    const reply = await testbed.call(customer, 'chat', { model: `refuses-${status}-or-sandbox`, prompt: 'Hello' });
    assert.equal(reply.status, 200, reply.text);
    const records = await testbed.records(customer);
    assert.deepEqual(
      [records.ends, attemptsOf(records)],
      [['charged answered'], [`refused ${status}`, 'answered 200']],
    );
    assert.equal(records.charges[0]!.provider, 'sandbox');
  }
});

test('row "sent, 500/502/504/408 or reset before the head": void for the client, another attempt without effects, x-should-retry: true', async () => {
  const scripts: Script[] = [{ status: 500 }, { status: 502 }, { status: 504 }, { status: 408 }, { dieAtOnce: true }];
  for (const [script, name] of scripts.flatMap((each) => dialectNames.map((dialect) => [each, dialect] as const))) {
    for (const store of [false, true]) {
      // Its circuit would open, and what is passed over is not asked once more.
      testbed.gateway.gateway.find(upstreamHealth)!.reset('replay');
      const knowsStore = name === 'chat' || name === 'responses';
      const isPure = !(store && knowsStore);
      testbed.replay.play(...(isPure ? [script, script] : [script]));
      const seen = testbed.replay.requests.length;
      const customer = await testbed.customer();
      const before = await testbed.balance(customer);
      const more = knowsStore ? { store } : {};
      const reply = await testbed.call(customer, name, { model: 'replay', prompt: 'Hello', more });
      assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [502, 'true'], name);
      const records = await testbed.records(customer);
      assert.deepEqual([records.ends, await paid(customer, before)], [['free unknown'], 0n]);
      const attempt = `unknown ${script.status ?? null}`;
      assert.deepEqual(attemptsOf(records), isPure ? [attempt, attempt] : [attempt], name);
      assert.equal(testbed.replay.requests.length - seen, isPure ? 2 : 1);
    }
  }
});

test('row "complete, usage present": settle', async () => {
  for (const [name, model] of dialectNames.flatMap((dialect) =>
    ['sandbox', ...ways].map((way) => [dialect, way] as const),
  )) {
    const customer = await testbed.customer();
    const before = await testbed.balance(customer);
    const reply = await testbed.call(customer, name, { model, prompt: '[[sandbox: tokens=20]]', stream: true });
    assert.match(reply.text, dialects[name].terminal, `${name} on ${model}`);
    const { ends, charges } = await testbed.records(customer);
    const [row] = charges;
    assert.deepEqual([ends, row!.estimated, row!.terminal], [['charged answered'], false, true], `${name} on ${model}`);
    assert.equal(await paid(customer, before), row!.cost);
    assert.equal(row!.cost, BigInt((row!.classes.input ?? 0) * 1_000 + 20 * 2_000));
  }
});

test('row "complete, usage absent": settle the estimate, marked', async () => {
  for (const [name, model] of dialectNames.flatMap((dialect) =>
    ['sandbox', ...ways].map((way) => [dialect, way] as const),
  )) {
    const customer = await testbed.customer();
    const question = { model, prompt: '[[sandbox: no_usage tokens=20]]', stream: true };
    assert.match((await testbed.call(customer, name, question)).text, dialects[name].terminal, `${name} on ${model}`);
    const { ends, charges } = await testbed.records(customer);
    assert.deepEqual([ends, charges[0]!.estimated], [['charged answered'], true], `${name} on ${model}`);
    assert.ok(charges[0]!.classes.output! >= 20 && charges[0]!.classes.input! > 0, 'the estimate is upper-biased');
  }
});

test('row "stream cut by the upstream after output": the received part is settled; the protocol\'s error event; no false end', async () => {
  for (const [name, model] of dialectNames.flatMap((dialect) =>
    ['sandbox', ...ways].map((way) => [dialect, way] as const),
  )) {
    const customer = await testbed.customer();
    const question = { model, prompt: '[[sandbox: chunks=8 chunk_delay=5ms cut_after=4]]', stream: true };
    const { text, broken } = await testbed.call(customer, name, question);
    assert.match(text, dialects[name].streamError, `${name} on ${model}`);
    assert.doesNotMatch(text, dialects[name].terminal, `${name} on ${model}`);
    assert.equal(broken, false);
    const { ends, charges } = await testbed.records(customer);
    assert.deepEqual([ends, charges[0]!.terminal], [['charged cut'], false], `${name} on ${model}`);
    assert.ok(charges[0]!.classes.output! > 0);
  }
});

test('row "client leaves, chat": abort the upstream; settle the input and the received part', async () => {
  for (const [name, model] of dialectNames.flatMap((dialect) =>
    ['sandbox', ...ways].map((way) => [dialect, way] as const),
  )) {
    const customer = await testbed.customer();
    const { open } = testbed.sandbox.bill();
    const leaving = new AbortController();
    const question = { model, prompt: '[[sandbox: chunk_delay=10ms tokens=2000]]', stream: true };
    const pending = testbed.call(customer, name, question, { signal: leaving.signal });
    pending.catch(() => {});
    await until('the vendor works', () => testbed.sandbox.bill().open > open);
    await new Promise((resolve) => setTimeout(resolve, 60));
    leaving.abort();
    await until('the vendor is free', () => testbed.sandbox.bill().open === open, 10_000);
    const { ends, charges } = await testbed.records(customer);
    assert.deepEqual(ends, ['charged client_left'], `${name} on ${model}`);
    assert.ok(charges[0]!.classes.input! > 0 && charges[0]!.classes.output! < 1_000, `${name} on ${model}`);
  }
});

describe('row "the hold is used up in mid-stream"', { concurrency: 4 }, () => {
  for (const [name, way] of dialectNames.flatMap((dialect) => dialectNames.map((other) => [dialect, other] as const))) {
    test(`extend it (${name} on ${way})`, async () => {
      const customer = await testbed.customer();
      const prompt = '[[sandbox: tokens=300 chunks=100 chunk_delay=1ms]]';
      const reply = await testbed.call(customer, name, { model: `only-${way}`, prompt, stream: true });
      assert.match(reply.text, dialects[name].terminal);
      const { calls, ends, charges } = await testbed.records(customer);
      assert.ok(extensionsOf(testbed.gateway, calls[0]!) >= 3);
      assert.deepEqual([ends, charges[0]!.classes.output, charges[0]!.estimated], [['charged answered'], 300, false]);
    });

    test(`if it cannot be extended, stop with the protocol's error event and settle (${name} on ${way})`, async () => {
      const { customer, credit } = await poorCustomer(name, `only-${way}`);
      const question = { model: `only-${way}`, prompt: longAnswer, stream: true };
      const reply = await testbed.call(customer, name, question);
      assert.deepEqual([reply.status, reply.broken], [200, false], reply.text);
      assert.match(reply.text, dialects[name].streamError);
      assert.match(reply.text, /balance/);
      assert.doesNotMatch(reply.text, dialects[name].terminal);
      await checkStopped(customer, credit);
    });
  }

  test('a whole answer gathered from a stream whose hold is used up: 402, and the received part is charged', async () => {
    const { customer, credit } = await poorCustomer('chat', 'streaming');
    const reply = await testbed.call(customer, 'chat', { model: 'streaming', prompt: longAnswer });
    assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [402, 'false'], reply.text);
    await checkStopped(customer, credit);
  });
});

const longAnswer = '[[sandbox: tokens=3000 chunks=1500 chunk_delay=1ms]]';

/** Can pay for the prompt's upper bound and 200 tokens of output. */
async function poorCustomer(name: DialectName, model: string): Promise<{ customer: Customer; credit: bigint }> {
  const { price } = testbed.gateway.gateway.find(catalog)!.find(model)!.prices![0]!.priced(0, {});
  const bytes = JSON.stringify(dialects[name].body({ model, prompt: longAnswer, stream: true })).length;
  const credit = costBound(Math.ceil(bytes / 2), 200, price);
  return { customer: await testbed.customer({ nanoUsd: credit }), credit };
}

async function checkStopped(customer: Customer, credit: bigint): Promise<void> {
  const { ends, charges } = await testbed.records(customer);
  assert.deepEqual(ends, ['charged cut']);
  assert.ok(extensionsOf(testbed.gateway, charges[0]!) > 0);
  const left = await testbed.balance(customer);
  assert.equal(left, credit - charges[0]!.cost);
  assert.ok(charges[0]!.classes.output! >= 100, 'what was seen is charged');
  assert.ok(left >= -30_000n, `${left} is further below zero than one chunk costs`);
}

test('the ledger passes its audit and nothing is left in flight', async () => {
  await until('all is quiet', () => testbed.gateway.gateway.inFlight === 0 && testbed.sandbox.bill().open === 0);
  await testbed.audit();
});
