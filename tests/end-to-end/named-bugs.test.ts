/**
 * Bugs that other gateways had, each a test by its name: those that need the whole gateway stand here, for the others the
 * first test tells where they are. Of a payment event there is only its reference: no webhook is listened to.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { DialectName } from './dialects.ts';
import { modelAt, speaks, startTestbed, type Testbed, until, usdInNano } from './testbed.ts';

const elsewhere: Record<string, string> = {
  'overdraft by race': 'tests/end-to-end/money.test.ts',
  'trusted bypass': 'tests/plugins/billing/billing.test.ts',
  'long stream past zero': 'tests/end-to-end/money.test.ts',
  'settle refused after the answer': 'tests/plugins/billing/billing.test.ts',
  'lost usage on disconnect': 'tests/end-to-end/leaving.test.ts',
  'zero usage replaced by an estimate': 'tests/plugins/billing/billing.test.ts',
  'overflow to a credit': 'tests/plugins/billing/billing.test.ts',
  'double charge on retry': 'tests/end-to-end/absorbed.test.ts',
  'leaked hold': 'tests/plugins/billing/recovery.test.ts',
  'redeem race': 'tests/plugins/shop/codes.test.ts',
  'float drift': 'tests/core/money.test.ts',
  'cache overwrites balance': 'tests/plugins/billing/billing.test.ts',
  'cache-key collision': 'tests/plugins/idempotency/calls.test.ts',
  'shutdown loses rows': 'tests/plugins/billing/billing.test.ts',
  'fail-open on a database error': 'tests/plugins/billing/recovery.test.ts',
};

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ replay }) => ({ first: { keys: 'key', speaks: speaks(replay) } }),
    models: {
      pair: modelAt('first', 'sandbox'),
      'sandbox-large': { owned_by: 'test', targets: ['sandbox'] },
    },
    offers: { single: { price: 0, limits: { concurrency: 1 } } },
    // Many calls without a key are asked here, and each must be refused for that and nothing else.
    more: { billing: { hold: { output_tokens: 50 } }, auth: { failures: { per_minute: 10_000 } } },
  });
});
after(() => testbed.stop());

const here =
  `usage missing from a stream counted as 0; partial usage overwritten; cached tokens charged or subtracted twice;
negative remainder; price by name prefix; retry on a dearer target billed at the first; double refund; webhook credited twice;
empty webhook secret accepted; stale key lets a spent key through; slot leaked after disconnect`.split(/;\s/);

test('every named bug has its test in the listed file', () => {
  const own = Object.fromEntries(here.map((name) => [name, 'tests/end-to-end/named-bugs.test.ts']));
  const places = Object.entries({ ...elsewhere, ...own });
  assert.equal(places.length, 26);
  for (const [name, file] of places) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const titles = [...text.matchAll(/\btest\(\s*['"`](.*?)['"`,]/g)].map(([, title]) => title!);
    // Two that differ in a word alone are one test.
    const isThere = titles.some((title) => title.startsWith(`${name}: `)) || text.includes(`['${name}', '`);
    assert.ok(isThere, `${name} has no test in ${file}`);
  }
});

const eventStream = { 'content-type': 'text/event-stream' };
const frames = (...payloads: object[]) =>
  payloads
    .map((payload) => `event: ${(payload as { type?: string }).type}\ndata: ${JSON.stringify(payload)}\n\n`)
    .join('');
const chatFrames = (...payloads: object[]) =>
  `${payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')}data: [DONE]\n\n`;
const chunk = (more: object) => ({ id: 'c1', object: 'chat.completion.chunk', choices: [], ...more });
const text = (content: string, finish: string | null = null) =>
  chunk({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] });

/** What a call costs that the replaying vendor answers so. */
async function costOf(name: DialectName, body: string, stream = true) {
  testbed.replay.play({ ...(stream ? { headers: eventStream } : {}), body });
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, name, { model: 'replay', prompt: 'Hello', stream });
  assert.equal(reply.status, 200, reply.text);
  const { charges, ends } = await testbed.records(customer);
  assert.equal(100n * usdInNano - (await testbed.balance(customer)), charges[0]!.cost);
  return { ends, ...charges[0]! };
}

const messageStart = (usage: object) => ({
  type: 'message_start',
  message: { id: 'm1', type: 'message', role: 'assistant', model: 'x', content: [], stop_reason: null, usage },
});
const messageText = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello there' } },
  { type: 'content_block_stop', index: 0 },
];
const messageEnd = (usage: object) => [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
  { type: 'message_stop' },
];

test('usage missing from a stream counted as 0: the usage is estimated, marked, and charged', async () => {
  const row = await costOf('chat', chatFrames(text('Hello there, how are you?'), text('', 'stop')));
  assert.deepEqual([row.ends, row.estimated], [['charged answered'], true]);
  assert.ok(row.classes.input! > 0 && row.classes.output! > 0 && row.cost > 0n);
});

test('partial usage overwritten: the parts of a report are merged, whichever event brings them', async () => {
  const start = messageStart({ input_tokens: 7, cache_read_input_tokens: 40, output_tokens: 1 });
  const row = await costOf('messages', frames(start, ...messageText, ...messageEnd({ output_tokens: 3 })));
  const { input, cache_read: cached, output } = row.classes;
  assert.deepEqual([input, cached, output, row.estimated], [7, 40, 3, false]);
  assert.equal(row.cost, 7_000n + 4_000n + 6_000n);
});

test('cached tokens charged or subtracted twice: each is one token of the cheaper class, in every protocol', async () => {
  const chat = {
    prompt_tokens: 10,
    completion_tokens: 2,
    total_tokens: 12,
    prompt_tokens_details: { cached_tokens: 4 },
  };
  const whole = {
    chat: {
      id: 'c1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: chat,
    },
    responses: {
      id: 'r1',
      object: 'response',
      status: 'completed',
      output: [
        {
          type: 'message',
          id: 'i1',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
        },
      ],
      usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12, input_tokens_details: { cached_tokens: 4 } },
    },
    messages: {
      id: 'm1',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 2 },
    },
    gemini: {
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, cachedContentTokenCount: 4, candidatesTokenCount: 2, totalTokenCount: 12 },
    },
  };
  for (const [name, body] of Object.entries(whole)) {
    const row = await costOf(name as DialectName, JSON.stringify(body), false);
    assert.equal(row.cost, 6_000n + 400n + 4_000n, `${name}: ${JSON.stringify(row.classes)}`);
  }
});

test('negative remainder: a cache count above the prompt leaves no class below zero', async () => {
  const usage = {
    prompt_tokens: 4,
    completion_tokens: 2,
    total_tokens: 6,
    prompt_tokens_details: { cached_tokens: 10 },
  };
  const row = await costOf('chat', chatFrames(text('Hi'), text('', 'stop'), chunk({ usage })));
  assert.ok(Object.values(row.classes).every((count) => count! >= 0));
  assert.equal(row.cost, 400n + 4_000n);
});

test('retry on a dearer target billed at the first: the charge is for the usage of the target that answered', async () => {
  testbed.replay.play({ status: 503, body: '{"error":{"message":"busy"}}' });
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, 'chat', { model: 'pair', prompt: '[[sandbox: tokens=25]]' });
  assert.equal(reply.status, 200);
  const { charges, attempts } = await testbed.records(customer);
  const [row] = charges;
  assert.deepEqual([row!.provider, row!.classes.output], ['sandbox', 25]);
  assert.deepEqual(
    attempts.map(({ provider, result }) => `${provider} ${result}`),
    ['first refused', 'sandbox answered'],
  );
  assert.equal(row!.cost, BigInt(row!.classes.input! * 1_000 + 25 * 2_000));
});

for (const [bug, kind] of [
  ['double refund', 'refund'],
  ['webhook credited twice', 'payment'],
] as const) {
  test(`${bug}: one event that arrives a hundred times at once credits once, also after a restart of its sender`, async () => {
    const { accountId } = await testbed.customer({ nanoUsd: 0n });
    const book = testbed.gateway.gateway.find(ledger)!;
    const credit = () =>
      book.credit(accountId, money(5_000n), { kind, reason: 'event', reference: `${kind} of ${accountId}` });
    await Promise.all(Array.from({ length: 100 }, credit));
    await credit();
    assert.equal(await book.balance(accountId), 5_000n);
    const grants = await testbed.rows<{ account_id: string }>('grants');
    assert.equal(grants.filter(({ account_id: id }) => id === accountId).length, 1);
  });
}

test('price by name prefix: a model has the price that is set for its own name, or none', async () => {
  const customer = await testbed.customer();
  // `sandbox` has a price; none of these has one because of that.
  for (const model of ['sandbox-large', 'sandbox-2026-01-01', 'sandbo', 'SANDBOX', 'sandbox/', 'pair-mini']) {
    const reply = await testbed.call(customer, 'chat', { model, prompt: 'Hello' });
    assert.equal(reply.status, 404, `${model}: ${reply.text}`);
    const { error } = JSON.parse(reply.text) as { error: { code: string } };
    assert.equal(error.code, model === 'sandbox-large' ? 'model_not_priced' : 'model_not_found', model);
  }
  assert.equal(await testbed.balance(customer), 100n * usdInNano);
});

test('empty webhook secret accepted: no address accepts money, and an empty key authorizes no request that changes anything', async () => {
  const grants = (await testbed.rows('grants')).length;
  const writing = testbed.gateway.gateway.endpoints.filter(({ method }) => method !== 'GET' && method !== 'HEAD');
  assert.ok(writing.length >= 5);
  assert.deepEqual(
    writing.filter(({ path }) => /credit|grant|redeem|payment|webhook|top-?up/i.test(path)),
    [],
  );
  for (const { method, path, keyless } of writing) {
    // Two colons are a colon in the address.
    const address = testbed.origin + path.replaceAll(/::|[:*]\w*(\(.*?\))?/g, (part) => (part === '::' ? ':' : 'x'));
    for (const headers of [{}, { authorization: 'Bearer ' }, { 'x-api-key': '' }, { 'x-goog-api-key': '' }]) {
      const reply = await fetch(address, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body: '{}',
      });
      await reply.text();
      // What asks for no key takes no changes: the console's pages, and addresses of uploads that were not begun.
      const refused = keyless === true ? [400, 405] : [401];
      assert.ok(refused.includes(reply.status), `${method} ${address}: ${reply.status}`);
    }
  }
  assert.equal((await testbed.rows('grants')).length, grants);
});

test('stale key lets a spent key through: money that one call has spent is not there for the next, with any key', async () => {
  const question = { model: 'sandbox', prompt: 'Hello [[sandbox: tokens=40]]', more: { max_tokens: 50 } };
  const probe = await testbed.customer();
  await testbed.call(probe, 'chat', question);
  const held = (await testbed.records(probe)).calls[0]!.held;
  const customer = await testbed.customer({ nanoUsd: held });
  const second = await testbed.gateway.gateway.find(accounts)!.createKey(customer.accountId, { name: 'second' });
  const keys = [customer, { ...customer, key: second.key }];
  // Both are known before the money is gone.
  for (const who of keys) assert.equal((await testbed.call(who, 'chat', { model: 'none', prompt: 'x' })).status, 404);
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  for (const who of keys) assert.equal((await testbed.call(who, 'chat', question)).status, 402);
  assert.deepEqual((await testbed.records(customer)).ends, ['charged answered']);
});

test('slot leaked after disconnect: however a client disconnects, the next call of its account has its slot', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  let left = 0;
  for (const waitMs of [0, 1, 5, 20, 60]) {
    for (const stream of [true, false]) {
      const leaving = new AbortController();
      const prompt = '[[sandbox: delay=20ms chunk_delay=10ms tokens=500]]';
      const pending = testbed.call(customer, 'chat', { model: 'sandbox', prompt, stream }, { signal: leaving.signal });
      pending.catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      leaving.abort();
      left++;
      // A request that was on its way when its client left may come in only now: it, too, gives its place back.
      await until(`the place is free after ${left}`, async () => {
        const reply = await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Next' });
        return reply.status === 200;
      });
      await until('nothing is in flight', () => testbed.gateway.gateway.inFlight === 0);
    }
  }
});

test('the ledger passes its audit at the end', () => testbed.audit());
