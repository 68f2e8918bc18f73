/** Idempotency-Key through the whole gateway: one run, one charge and the same answer for all who carry it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Script } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects, type Question } from './dialects.ts';
import { type Customer, type House, modelAt, speaks, startHouse, type Told, until } from './house.ts';

/** What one refusal says rests a key: each case has a provider of its own. */
const busy = ['busy-429', 'busy-503'];

let house: House;
before(async () => {
  const key = 'vendor-key-of-the-sandbox';
  house = await startHouse({
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
after(() => house.stop());

function ask(customer: Customer, name: DialectName, question: Question, key: string, init: RequestInit = {}) {
  return house.call(customer, name, question, { ...init, headers: { 'idempotency-key': key } });
}

/** Asks until the answer is not that its twin still runs. */
async function askAgain(customer: Customer, name: DialectName, question: Question, key: string): Promise<Told> {
  let told = await ask(customer, name, question, key);
  await until('its twin has ended', async () => {
    if (codeOf(told) !== 'idempotency_in_progress') return true;
    told = await ask(customer, name, question, key);
    return false;
  });
  return told;
}

function codeOf({ status, text }: Told): unknown {
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
      test(`the same key and body: the same answer, byte for byte, and one charge (${name}, ${stream ? 'stream' : 'whole'}, ${model})`, async () => {
        const customer = await house.customer();
        const before = await house.balance(customer);
        const question = { model, prompt: '[[sandbox: tokens=50 chunks=10]]', stream };
        const key = randomUUID();
        const { requests } = house.sandbox.bill();
        const first = await ask(customer, name, question, key);
        assert.equal(first.status, 200, first.text);
        assert.equal(first.headers.get('idempotent-replayed'), null);
        const books = await house.books(customer);
        for (let round = 0; round < 3; round++) {
          const again = await askAgain(customer, name, question, key);
          assert.deepEqual([again.status, again.text], [200, first.text]);
          for (const header of ['content-type', 'cache-control', 'x-gateway-dropped'])
            assert.equal(again.headers.get(header), first.headers.get(header), header);
          assert.equal(again.headers.get('idempotent-replayed'), 'true');
          assert.equal(again.headers.get('x-original-request-id'), books.charges[0]!.id);
          assert.notEqual(again.id, first.id);
        }
        assert.equal(house.sandbox.bill().requests - requests, 1);
        assert.deepEqual((await house.books(customer)).ends, ['charged answered']);
        assert.equal(before - (await house.balance(customer)), books.charges[0]!.cost);
      });
    }
  }

  test(`another body under the same key is a 409 in the words of the protocol, which is not tried again (${name})`, async () => {
    const customer = await house.customer();
    const key = randomUUID();
    assert.equal((await ask(customer, name, { model: 'sandbox', prompt: 'One' }, key)).status, 200);
    const refused = await ask(customer, name, { model: 'sandbox', prompt: 'Another' }, key);
    assert.deepEqual([codeOf(refused), refused.headers.get('x-should-retry')], ['idempotency_key_reused', 'false']);
    assert.ok(dialects[name].errorType(JSON.parse(refused.text)), refused.text);
    const stranger = await house.customer();
    assert.equal((await ask(stranger, name, { model: 'sandbox', prompt: 'Another' }, key)).status, 200);
    assert.deepEqual((await house.books(customer)).ends, ['charged answered']);
  });

  test(`double charge on retry: a call whose client left is finished, and its repetition gets it whole, for one charge (${name})`, async () => {
    for (const stream of [true, false]) {
      const customer = await house.customer();
      const question = {
        model: 'sandbox',
        prompt: '[[sandbox: tokens=60 chunks=30 chunk_delay=10ms delay=50ms]]',
        stream,
      };
      const key = randomUUID();
      const { open, requests } = house.sandbox.bill();
      const leaving = new AbortController();
      const asked = ask(customer, name, question, key, { signal: leaving.signal });
      asked.catch(() => {});
      await until(
        'the vendor works',
        () => house.sandbox.bill().open > open || house.sandbox.bill().requests > requests,
      );
      leaving.abort();
      const told = await askAgain(customer, name, question, key);
      assert.deepEqual([told.status, told.broken], [200, false], told.text);
      if (stream) assert.match(told.text, dialects[name].terminal);
      const books = await house.books(customer);
      assert.deepEqual(
        [books.ends, books.charges[0]!.estimated, books.charges[0]!.classes.output],
        [['charged client_left'], false, 60],
      );
      assert.equal(house.sandbox.bill().requests - requests, 1);
    }
  });
}

test('100 parallel twins: one upstream request, one charge, and in the end one answer for all', async () => {
  for (const stream of [false, true]) {
    const customer = await house.customer();
    const question = { model: 'sandbox', prompt: '[[sandbox: tokens=30 delay=150ms]]', stream };
    const key = randomUUID();
    const { requests } = house.sandbox.bill();
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(customer, 'chat', question, key)));
    const served = answers.filter(({ status }) => status === 200);
    const waiting = answers.filter((told) => codeOf(told) === 'idempotency_in_progress');
    assert.deepEqual([served.length >= 1, served.length + waiting.length], [true, 100]);
    for (const { headers } of waiting) {
      assert.ok(Number(headers.get('retry-after')) >= 1);
      assert.equal(headers.get('x-should-retry'), 'true');
    }
    const later = await Promise.all(Array.from({ length: 100 }, () => askAgain(customer, 'chat', question, key)));
    assert.deepEqual(new Set(later.map(({ text }) => text)), new Set(served.map(({ text }) => text)));
    assert.deepEqual((await house.books(customer)).ends, ['charged answered']);
    assert.equal(house.sandbox.bill().requests - requests, 1);
  }
});

async function charges({ accountId }: Customer): Promise<number> {
  const rows = await house.rows<{ account_id: string; kind: string }>('ledger');
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
    const customer = await house.customer();
    const key = randomUUID();
    house.replay.play(script);
    assert.equal((await ask(customer, 'chat', { model, prompt: 'Hello' }, key)).status, status);
    house.replay.play({ body: wholeAnswer });
    let told = await askAgain(customer, 'chat', { model, prompt: 'Hello' }, key);
    await until('the key of the vendor is awake', async () => {
      if (told.status === 200) return true;
      told = await askAgain(customer, 'chat', { model, prompt: 'Hello' }, key);
      return false;
    });
    assert.equal(told.headers.get('idempotent-replayed'), null);
    await until('it was charged', async () => (await charges(customer)) === 1);
  });
}

test('no money leaves the key free too', async () => {
  const customer = await house.customer({ nanoUsd: 0n });
  const key = randomUUID();
  const question = { model: 'sandbox', prompt: 'Hello' };
  assert.equal((await ask(customer, 'chat', question, key)).status, 402);
  await house.credit(customer, 10_000_000_000n);
  assert.equal((await askAgain(customer, 'chat', question, key)).status, 200);
});

test('what may have run in vain is not run again under its key: the same 502, and the vendor is not asked', async () => {
  for (const script of [{ status: 500 }, { dieAtOnce: true }, { body: wholeAnswer, dieAfter: 20 }]) {
    const customer = await house.customer();
    const key = randomUUID();
    house.replay.play(script);
    const before = house.replay.requests.length;
    const question = { model: 'replay', prompt: 'Hello' };
    const first = await ask(customer, 'chat', question, key);
    const asked = house.replay.requests.length - before;
    const again = await askAgain(customer, 'chat', question, key);
    assert.deepEqual([first.status, again.status, again.text], [502, 502, first.text]);
    assert.deepEqual(
      [again.headers.get('x-should-retry'), again.headers.get('idempotent-replayed')],
      ['false', 'true'],
    );
    assert.equal(house.replay.requests.length - before, asked);
    assert.deepEqual((await house.books(customer)).ends, ['free unknown']);
  }
});

test('a stream that broke is told again as it was told', async () => {
  for (const name of dialectNames) {
    const customer = await house.customer();
    const key = randomUUID();
    const question = { model: 'sandbox', prompt: '[[sandbox: chunks=8 chunk_delay=5ms cut_after=4]]', stream: true };
    const first = await ask(customer, name, question, key);
    assert.match(first.text, dialects[name].streamError);
    const again = await askAgain(customer, name, question, key);
    assert.deepEqual([again.status, again.text], [200, first.text]);
    assert.deepEqual((await house.books(customer)).ends, ['charged cut']);
  }
});

test('an answer too large to be kept is not run again', async () => {
  const customer = await house.customer({ nanoUsd: 10n ** 12n });
  for (const stream of [false, true]) {
    const key = randomUUID();
    const question = { model: 'sandbox', prompt: '[[sandbox: tokens=30000]]', stream };
    const first = await ask(customer, 'chat', question, key);
    assert.ok(first.status === 200 && first.text.length > 64 * 1024);
    const again = await askAgain(customer, 'chat', question, key);
    assert.deepEqual([codeOf(again), again.headers.get('x-should-retry')], ['idempotency_answer_lost', 'false']);
  }
  assert.deepEqual((await house.books(customer, 2)).ends, ['charged answered', 'charged answered']);
});

test('a key that is none is a 400; calls that are not charged need none', async () => {
  const customer = await house.customer();
  const question = { model: 'sandbox', prompt: 'Hello' };
  for (const key of ['', ' ', 'k'.repeat(256)]) {
    const told = await ask(customer, 'chat', question, key);
    assert.equal(told.status, 400, key);
    assert.match(told.text, /idempotency-key/);
  }
  const count = async () => {
    const answer = await fetch(`${house.origin}/v1/messages/count_tokens`, {
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

test('the books are in order after all that, and nothing is left running', async () => {
  await until('all answers are kept', async () => {
    const rows = await house.rows<{ state: string }>('idempotent_calls');
    return rows.every(({ state }) => state !== 'running');
  });
  await house.audit();
  assert.equal(house.gateway.gateway.inFlight, 0);
});
