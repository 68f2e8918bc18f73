/** A plan's limits over HTTP: what is refused, in whose words, with which headers, and when it is over. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Customer, type Reply, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
/** The same plans, but counting tokens is limited and answers in messages are not. */
let other: Testbed;
const offers = {
  requests: { price: 0, limits: { rpm: 2 } },
  days: { price: 0, limits: { rpd: 2 } },
  tokens: { price: 0, limits: { tpm: 6_000 } },
  single: { price: 0, limits: { concurrency: 1 } },
};
before(async () => {
  testbed = await startTestbed({ offers });
  other = await startTestbed({
    offers,
    more: { 'rate-limit': { endpoints: ['chat', 'POST /v1/messages/count_tokens'] } },
  });
});
after(async () => {
  await testbed.stop();
  await other.stop();
});

const hello = { model: 'sandbox', prompt: 'Hello' };
const types: Record<DialectName, string> = {
  chat: 'requests',
  responses: 'requests',
  messages: 'rate_limit_error',
  gemini: 'RESOURCE_EXHAUSTED',
};

/** The names under which a dialect tells where its caller stands; generate-content has none. */
function standing(dialect: DialectName, { headers }: Reply, resource: 'requests' | 'tokens') {
  const name = (what: string) =>
    dialect === 'messages' ? `anthropic-ratelimit-${resource}-${what}` : `x-ratelimit-${what}-${resource}`;
  const [limit, remaining] = [headers.get(name('limit')), headers.get(name('remaining'))];
  if (dialect === 'gemini') {
    assert.deepEqual(
      [...headers.keys()].filter((header) => header.includes('ratelimit')),
      [],
    );
    return undefined;
  }
  const pattern = dialect === 'messages' ? /^\d{4}-\d\d-\d\dT[\d:]+Z$/ : /^(?:\d+h)?(?:\d+m)?[\d.]+m?s$/;
  assert.match(headers.get(name('reset'))!, pattern);
  return { limit: Number(limit), remaining: Number(remaining) };
}

/** A refusal in the dialect's words, whose three ways to say how long to wait agree. */
function assertLimited(dialect: DialectName, answer: Reply, type = types[dialect]): number {
  assert.equal(answer.status, 429, answer.text);
  const body = JSON.parse(answer.text);
  assert.equal(dialects[dialect].errorType(body), type);
  assert.notEqual(answer.headers.get('x-should-retry'), 'false');
  const wait = Number(answer.headers.get('retry-after'));
  assert.ok(Number.isInteger(wait) && wait >= 1, `retry-after ${answer.headers.get('retry-after')}`);
  if (dialect === 'gemini') {
    const info = body.error.details.find((detail: { '@type': string }) =>
      detail['@type'].endsWith('google.rpc.RetryInfo'),
    );
    assert.equal(info.retryDelay, `${wait}s`);
  } else if (dialect !== 'messages') assert.equal(body.error.code, 'rate_limit_exceeded');
  return wait;
}

for (const dialect of dialectNames) {
  test(`requests a minute: the third of two is refused, with headers that count down (${dialect})`, async () => {
    for (const stream of [false, true]) {
      const customer = await testbed.customer({ plan: 'requests' });
      for (const left of [1, 0]) {
        const answer = await testbed.call(customer, dialect, { ...hello, stream });
        assert.equal(answer.status, 200);
        const stands = standing(dialect, answer, 'requests');
        if (stands !== undefined) assert.deepEqual(stands, { limit: 2, remaining: left });
      }
      const refused = await testbed.call(customer, dialect, { ...hello, stream });
      const wait = assertLimited(dialect, refused);
      assert.ok(wait > 20 && wait <= 30, `${wait} s`);
      const stands = standing(dialect, refused, 'requests');
      if (stands !== undefined) assert.equal(stands.remaining, 0);
      assert.equal((await testbed.records(customer, 2)).ends.length, 2, 'a refused call holds nothing');
    }
  });

  test(`requests a day are limited too (${dialect})`, async () => {
    const customer = await testbed.customer({ plan: 'days' });
    for (let call = 0; call < 2; call++) await testbed.call(customer, dialect, hello);
    assert.ok(assertLimited(dialect, await testbed.call(customer, dialect, hello)) > 3_600);
  });

  test(`tokens a minute: a running answer reserves, a finished one counts its used tokens (${dialect})`, async () => {
    const customer = await testbed.customer({ plan: 'tokens' });
    const open = testbed.sandbox.bill().open;
    const running = testbed.call(customer, dialect, { ...hello, prompt: '[[sandbox: delay=400ms tokens=20]]' });
    await until('the first call runs', () => testbed.sandbox.bill().open > open);
    const type = dialect === 'chat' || dialect === 'responses' ? 'tokens' : types[dialect];
    assertLimited(dialect, await testbed.call(customer, dialect, hello), type);
    const first = await running;
    assert.equal(first.status, 200);
    const stands = standing(dialect, first, 'tokens');
    if (stands !== undefined) assert.ok(stands.limit === 6_000 && stands.remaining < 2_000);
    await testbed.records(customer, 1);
    const heavy = await testbed.call(customer, dialect, { ...hello, prompt: '[[sandbox: tokens=3900]]', stream: true });
    assert.equal(heavy.status, 200, heavy.text);
    await testbed.records(customer, 2);
    assertLimited(dialect, await testbed.call(customer, dialect, hello), type);
  });

  test(`one call at a time: the second is refused until the first has ended or disconnected (${dialect})`, async () => {
    const customer = await testbed.customer({ plan: 'single' });
    const ends = [
      { stream: false, leaves: false, prompt: '[[sandbox: delay=200ms]]' },
      { stream: true, leaves: false, prompt: '[[sandbox: chunks=10 chunk_delay=20ms]]' },
      { stream: false, leaves: true, prompt: '[[sandbox: delay=9s]]' },
      { stream: true, leaves: true, prompt: '[[sandbox: tokens=2000 chunk_delay=20ms]]' },
    ];
    for (const { stream, leaves, prompt } of ends) {
      const open = testbed.sandbox.bill().open;
      const leaving = new AbortController();
      const { signal } = leaving;
      const running = testbed.call(customer, dialect, { ...hello, prompt, stream }, { signal }).catch(() => undefined);
      await until('the first call runs', () => testbed.sandbox.bill().open > open);
      assert.equal(assertLimited(dialect, await testbed.call(customer, dialect, hello)), 1);
      if (leaves) leaving.abort();
      await running;
      await until('the slot is free', async () => (await testbed.call(customer, dialect, hello)).status === 200);
      await until('its slot is free too', () => testbed.gateway.gateway.inFlight === 0);
    }
  });
}

test('all keys and protocols of an account share its limits', async () => {
  const customer = await testbed.customer({ plan: 'requests' });
  assert.equal((await testbed.call(customer, 'chat', hello)).status, 200);
  assert.equal((await testbed.call(customer, 'messages', hello)).status, 200);
  assertLimited('gemini', await testbed.call(customer, 'gemini', hello));
});

test('the model list needs no key and is not limited', async () => {
  const customer = await testbed.customer({ plan: 'requests' });
  for (let call = 0; call < 3; call++) await testbed.call(customer, 'chat', hello);
  const credentials: Record<string, string>[] = [
    {},
    { authorization: `Bearer ${customer.key}` },
    { authorization: 'Bearer nonsense' },
    { 'x-api-key': 'nonsense', 'anthropic-version': '2023-06-01' },
    { 'x-goog-api-key': 'nonsense' },
  ];
  for (const headers of credentials) {
    for (const path of ['/v1/models', '/v1beta/models', '/v1/models/sandbox', '/v1beta/models/sandbox']) {
      for (let call = 0; call < 5; call++) {
        const answer = await fetch(testbed.origin + path, { headers });
        assert.equal(answer.status, 200, path);
        assert.match(await answer.text(), /sandbox/);
        assert.equal(answer.headers.get('x-ratelimit-limit-requests'), null);
      }
    }
  }
});

async function count(where: Testbed, customer: Customer): Promise<number> {
  const body = JSON.stringify({ model: 'sandbox', messages: [{ role: 'user', content: 'Hello' }] });
  const headers = { ...dialects.messages.key(customer.key), 'content-type': 'application/json' };
  return (await fetch(`${where.origin}/v1/messages/count_tokens`, { method: 'POST', headers, body })).status;
}

test('counting tokens is limited only where the list of endpoints says so', async () => {
  const customer = await testbed.customer({ plan: 'requests' });
  for (let call = 0; call < 5; call++) assert.equal(await count(testbed, customer), 200);
  assert.equal((await testbed.call(customer, 'messages', hello)).status, 200);
  const elsewhere = await other.customer({ plan: 'requests' });
  assert.deepEqual([await count(other, elsewhere), await count(other, elsewhere)], [200, 200]);
  assert.equal(await count(other, elsewhere), 429);
  assert.equal((await other.call(elsewhere, 'messages', hello)).status, 200);
  assertLimited('chat', await other.call(elsewhere, 'chat', hello));
});

test('the ledger passes its audit at the end', async () => {
  await testbed.audit();
  await other.audit();
});
