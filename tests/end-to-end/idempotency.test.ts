/** Idempotency-Key through the whole gateway: one run, one charge and the same answer for all who carry it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Script } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects, type Question } from './dialects.ts';
import { type Customer, modelAt, type Reply, speaks, startTestbed, type Testbed, until } from './testbed.ts';

/** What one refusal says rests a key: each case has a provider of its own. */
const busy = ['busy-429', 'busy-503'];

let testbed: Testbed;
before(async () => {
  const key = 'vendor-key-of-the-sandbox';
  testbed = await startTestbed({
    providers: ({ sandbox, replay }) => ({
      'messages-only': { keys: key, speaks: { messages: sandbox } },
      ...Object.fromEntries(busy.map((name) => [name, { keys: 'key', speaks: speaks(replay) }])),
    }),
    models: {
      translated: modelAt('messages-only'),
      ...Object.fromEntries(busy.map((name) => [name, modelAt(name)])),
    },
    offers: { poor: { price: 0 } },
    more: { idempotency: { max_bytes: '64KB', finish: '10s' } },
  });
});
after(() => testbed.stop());

function send(customer: Customer, name: DialectName, question: Question, key: string, init: RequestInit = {}) {
  return testbed.call(customer, name, question, { ...init, headers: { 'idempotency-key': key } });
}

/** Asks until the answer is not that its twin still runs. */
async function sendAgain(customer: Customer, name: DialectName, question: Question, key: string): Promise<Reply> {
  let reply = await send(customer, name, question, key);
  await until('its twin has ended', async () => {
    if (codeOf(reply) !== 'idempotency_in_progress') return true;
    reply = await send(customer, name, question, key);
    return false;
  });
  return reply;
}

function codeOf({ status, text }: Reply): unknown {
  if (status !== 409) return status;
  return /idempotency_[a-z_]+/.exec(text)?.[0] ?? wordsOf(text);
}

/** Messages and generate-content have no place for a code: their words tell. */
function wordsOf(text: string): string {
  if (/still running/.test(text)) return 'idempotency_in_progress';
  if (/another request/.test(text)) return 'idempotency_key_reused';
  return /not kept/.test(text) ? 'idempotency_answer_lost' : text;
}

const wholeAnswer = JSON.stringify({
  id: 'c1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
});

for (const name of dialectNames) {
  for (const stream of [false, true]) {
    for (const model of ['sandbox', 'translated']) {
      test(`the same key and body get the same answer, byte for byte, and one charge (${name}, ${stream ? 'stream' : 'whole'}, ${model})`, async () => {
        const customer = await testbed.customer();
        const before = await testbed.balance(customer);
        const question = { model, prompt: '[[sandbox: tokens=50 chunks=10]]', stream };
        const key = randomUUID();
        const { requests } = testbed.sandbox.bill();
        const first = await send(customer, name, question, key);
        assert.equal(first.status, 200, first.text);
        assert.equal(first.headers.get('idempotent-replayed'), null);
        const records = await testbed.records(customer);
        for (let round = 0; round < 3; round++) {
          const again = await sendAgain(customer, name, question, key);
          assert.deepEqual([again.status, again.text], [200, first.text]);
          for (const header of ['content-type', 'cache-control', 'x-gateway-dropped'])
            assert.equal(again.headers.get(header), first.headers.get(header), header);
          assert.equal(again.headers.get('idempotent-replayed'), 'true');
          assert.equal(again.headers.get('x-original-request-id'), records.charges[0]!.id);
          assert.notEqual(again.id, first.id);
        }
        assert.equal(testbed.sandbox.bill().requests - requests, 1);
        assert.deepEqual((await testbed.records(customer)).ends, ['charged answered']);
        assert.equal(before - (await testbed.balance(customer)), records.charges[0]!.cost);
      });
    }
  }

  test(`another body under the same key is a 409 in the form of the protocol, which is not tried again (${name})`, async () => {
    const customer = await testbed.customer();
    const key = randomUUID();
    assert.equal((await send(customer, name, { model: 'sandbox', prompt: 'One' }, key)).status, 200);
    const refused = await send(customer, name, { model: 'sandbox', prompt: 'Another' }, key);
    assert.deepEqual([codeOf(refused), refused.headers.get('x-should-retry')], ['idempotency_key_reused', 'false']);
    assert.ok(dialects[name].errorType(JSON.parse(refused.text)), refused.text);
    const stranger = await testbed.customer();
    assert.equal((await send(stranger, name, { model: 'sandbox', prompt: 'Another' }, key)).status, 200);
    assert.deepEqual((await testbed.records(customer)).ends, ['charged answered']);
  });

  test(`double charge on retry: a call whose client left is finished, and its repetition gets it whole, for one charge (${name})`, async () => {
    for (const stream of [true, false]) {
      const customer = await testbed.customer();
      const question = {
        model: 'sandbox',
        prompt: '[[sandbox: tokens=60 chunks=30 chunk_delay=10ms delay=50ms]]',
        stream,
      };
      const key = randomUUID();
      const { open, requests } = testbed.sandbox.bill();
      const leaving = new AbortController();
      const pending = send(customer, name, question, key, { signal: leaving.signal });
      pending.catch(() => {});
      await until(
        'the vendor works',
        () => testbed.sandbox.bill().open > open || testbed.sandbox.bill().requests > requests,
      );
      leaving.abort();
      const reply = await sendAgain(customer, name, question, key);
      assert.deepEqual([reply.status, reply.broken], [200, false], reply.text);
      if (stream) assert.match(reply.text, dialects[name].terminal);
      const records = await testbed.records(customer);
      assert.deepEqual(
        [records.ends, records.charges[0]!.estimated, records.charges[0]!.classes.output],
        [['charged client_left'], false, 60],
      );
      assert.equal(testbed.sandbox.bill().requests - requests, 1);
    }
  });
}

test('100 parallel repetitions: one upstream request, one charge, and in the end one answer for all', async () => {
  for (const stream of [false, true]) {
    const customer = await testbed.customer();
    const question = { model: 'sandbox', prompt: '[[sandbox: tokens=30 delay=150ms]]', stream };
    const key = randomUUID();
    const { requests } = testbed.sandbox.bill();
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(customer, 'chat', question, key)));
    const served = answers.filter(({ status }) => status === 200);
    const waiting = answers.filter((reply) => codeOf(reply) === 'idempotency_in_progress');
    assert.deepEqual([served.length >= 1, served.length + waiting.length], [true, 100]);
    for (const { headers } of waiting) {
      assert.ok(Number(headers.get('retry-after')) >= 1);
      assert.equal(headers.get('x-should-retry'), 'true');
    }
    const later = await Promise.all(Array.from({ length: 100 }, () => sendAgain(customer, 'chat', question, key)));
    assert.deepEqual(new Set(later.map(({ text }) => text)), new Set(served.map(({ text }) => text)));
    assert.deepEqual((await testbed.records(customer)).ends, ['charged answered']);
    assert.equal(testbed.sandbox.bill().requests - requests, 1);
  }
});

async function charges({ accountId }: Customer): Promise<number> {
  const rows = await testbed.rows<{ account_id: string; kind: string }>('movements');
  return rows.filter(({ account_id: id, kind }) => id === accountId && kind === 'CHARGE').length;
}

const unsent: Record<string, { model: string; script: Script; status: number }> = {
  'a refusal of the request': {
    model: 'replay',
    script: { status: 400, body: '{"error":{"message":"no"}}' },
    status: 400,
  },
  'a busy vendor': { model: 'busy-503', script: { status: 503 }, status: 503 },
  'a vendor that takes no more for a second': {
    model: 'busy-429',
    script: { status: 429, headers: { 'retry-after': '1' } },
    status: 429,
  },
};

for (const [what, { model, script, status }] of Object.entries(unsent)) {
  test(`${what} costs nothing and leaves the key free: the repetition runs`, async () => {
    const customer = await testbed.customer();
    const key = randomUUID();
    testbed.replay.play(script);
    assert.equal((await send(customer, 'chat', { model, prompt: 'Hello' }, key)).status, status);
    testbed.replay.play({ body: wholeAnswer });
    let reply = await sendAgain(customer, 'chat', { model, prompt: 'Hello' }, key);
    await until('the key of the vendor is awake', async () => {
      if (reply.status === 200) return true;
      reply = await sendAgain(customer, 'chat', { model, prompt: 'Hello' }, key);
      return false;
    });
    assert.equal(reply.headers.get('idempotent-replayed'), null);
    await until('it was charged', async () => (await charges(customer)) === 1);
  });
}

test('a 402 leaves the key free too', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n });
  const key = randomUUID();
  const question = { model: 'sandbox', prompt: 'Hello' };
  assert.equal((await send(customer, 'chat', question, key)).status, 402);
  await testbed.credit(customer, 10_000_000_000n);
  assert.equal((await sendAgain(customer, 'chat', question, key)).status, 200);
});

test('a call that may have run without an answer is not run again under its key: it gets the same 502, and the vendor no request', async () => {
  for (const script of [{ status: 500 }, { dieAtOnce: true }, { body: wholeAnswer, dieAfter: 20 }]) {
    const customer = await testbed.customer();
    const key = randomUUID();
    testbed.replay.play(script);
    const before = testbed.replay.requests.length;
    const question = { model: 'replay', prompt: 'Hello' };
    const first = await send(customer, 'chat', question, key);
    const requested = testbed.replay.requests.length - before;
    const again = await sendAgain(customer, 'chat', question, key);
    assert.deepEqual([first.status, again.status, again.text], [502, 502, first.text]);
    assert.deepEqual(
      [again.headers.get('x-should-retry'), again.headers.get('idempotent-replayed')],
      ['false', 'true'],
    );
    assert.equal(testbed.replay.requests.length - before, requested);
    assert.deepEqual((await testbed.records(customer)).ends, ['free unknown']);
  }
});

test('a broken stream is repeated as it was sent', async () => {
  for (const name of dialectNames) {
    const customer = await testbed.customer();
    const key = randomUUID();
    const question = { model: 'sandbox', prompt: '[[sandbox: chunks=8 chunk_delay=5ms cut_after=4]]', stream: true };
    const first = await send(customer, name, question, key);
    assert.match(first.text, dialects[name].streamError);
    const again = await sendAgain(customer, name, question, key);
    assert.deepEqual([again.status, again.text], [200, first.text]);
    assert.deepEqual((await testbed.records(customer)).ends, ['charged cut']);
  }
});

test('a call whose answer is too large to be kept is not run again', async () => {
  const customer = await testbed.customer({ nanoUsd: 10n ** 12n });
  for (const stream of [false, true]) {
    const key = randomUUID();
    const question = { model: 'sandbox', prompt: '[[sandbox: tokens=30000]]', stream };
    const first = await send(customer, 'chat', question, key);
    assert.ok(first.status === 200 && first.text.length > 64 * 1024);
    const again = await sendAgain(customer, 'chat', question, key);
    assert.deepEqual([codeOf(again), again.headers.get('x-should-retry')], ['idempotency_answer_lost', 'false']);
  }
  assert.deepEqual((await testbed.records(customer, 2)).ends, ['charged answered', 'charged answered']);
});

test('an invalid key is a 400, and calls without a charge need no key', async () => {
  const customer = await testbed.customer();
  const question = { model: 'sandbox', prompt: 'Hello' };
  for (const key of ['', ' ', 'k'.repeat(256)]) {
    const reply = await send(customer, 'chat', question, key);
    assert.equal(reply.status, 400, key);
    assert.match(reply.text, /idempotency-key/);
  }
  const count = async () => {
    const answer = await fetch(`${testbed.origin}/v1/messages/count_tokens`, {
      method: 'POST',
      headers: {
        ...dialects.messages.key(customer.key),
        'content-type': 'application/json',
        'idempotency-key': 'same',
      },
      body: JSON.stringify({ model: 'sandbox', messages: [{ role: 'user', content: randomUUID() }] }),
    });
    return answer.status;
  };
  assert.deepEqual([await count(), await count()], [200, 200]);
});

test('the ledger passes its audit and nothing is left running', async () => {
  await until('all answers are kept', async () => {
    const rows = await testbed.rows<{ state: string }>('idempotent_calls');
    return rows.every(({ state }) => state !== 'running');
  });
  await testbed.audit();
  assert.equal(testbed.gateway.gateway.inFlight, 0);
});
