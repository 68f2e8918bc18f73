/** The cache in a gateway with billing: four protocols, whole for stream and the other way round, exact bills, keys and projects, near questions. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  chatAnswer,
  chatStream,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../plugins/common/author/testing.ts';
import { cacheReport } from '../../plugins/common/domain/admin/cache.ts';
import { ledgerQueries } from '../../plugins/common/domain/admin/ledger.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { askOften } from '../helpers/ask-often.ts';
import { until } from '../helpers/until.ts';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  const v1 = `${vendor.origin}/v1`;
  const list = [
    'storage',
    'request-log',
    'auth',
    'providers',
    'models',
    'prompts',
    'billing',
    'cache',
    'route',
    'protocol-convert',
    'endpoints',
  ];
  gateway = await startGateway({
    plugins: list,
    cache: {
      scope: 'project',
      of: [
        { models: ['m', 'e'], keep: '1h', price: 0.1 },
        { models: ['near'], keep: '1h', price: 0 },
      ],
      similar: { model: 'vectors', at: 0.95 },
    },
    providers: { vendor: { keys: 'k', speaks: { chat: v1, 'openai-embeddings': v1 } } },
    models: {
      m: { owned_by: 'vendor', targets: ['vendor'], price: { input: 1.23, output: 4.57 } },
      near: { owned_by: 'vendor', targets: ['vendor'], price: { input: 1, output: 1 } },
      e: { kind: 'embedding', owned_by: 'vendor', targets: ['vendor'], price: { input: 3.33 } },
      vectors: { kind: 'embedding', owned_by: 'vendor', targets: ['vendor'], price: 'free' },
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});
beforeEach(() => {
  vendor.requests.length = 0;
});

interface Customer {
  readonly id: string;
  readonly key: string;
}

let names = 0;
async function customer(credit = '100'): Promise<Customer> {
  const name = `c${names++}`;
  const { id } = (await gateway.run('accounts create', { name, credit })) as { id: string };
  return { id, key: await keyOf(name) };
}

async function keyOf(account: string, project?: string): Promise<string> {
  return ((await gateway.run('keys create', { account, name: 'test', project })) as { key: string }).key;
}

/** Requests of chat that have reached the vendor; others are for vectors. */
const made = () => vendor.requests.filter(({ url }) => url.endsWith('/chat/completions')).length;
const balanceOf = ({ id }: Pick<Customer, 'id'>) => gateway.find(ledger)!.balance(id);
const post = (key: string, path: string, body: object, headers = {}) =>
  gateway.post(path, body, { authorization: `Bearer ${key}`, ...headers });

/** A client's requests for the same answer, whole and as a stream. */
const clients: Record<
  string,
  {
    path: (stream: boolean) => string;
    body: (text: string, stream: boolean) => object;
    words: (text: string) => string;
  }
> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (content, stream) => ({
      model: 'm',
      messages: [{ role: 'user', content }],
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    }),
    words: (text) => [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join(''),
  },
  responses: {
    path: () => '/v1/responses',
    body: (input, stream) => ({ model: 'm', input, stream, store: false }),
    words(text) {
      const deltas = [...text.matchAll(/"delta":"([^"]*)"/g)].map(([, word]) => word);
      return deltas.length > 0 ? deltas.join('') : (/"output_text":"([^"]*)"/.exec(text)?.[1] ?? '');
    },
  },
  messages: {
    path: () => '/v1/messages',
    body: (content, stream) => ({ model: 'm', max_tokens: 50, messages: [{ role: 'user', content }], stream }),
    words: (text) => [...text.matchAll(/"text":"([^"]*)"/g)].map(([, word]) => word).join(''),
  },
  gemini: {
    path: (stream) => `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
    words: (text) => [...text.matchAll(/"text":"([^"]*)"/g)].map(([, word]) => word).join(''),
  },
};
for (const [name, { path, body, words }] of Object.entries(clients))
  for (const first of [false, true])
    test(`${name}: ${first ? 'a stream answers a whole request' : 'a whole answer answers a stream'}, with the same words, usage and a tenth of the price`, async () => {
      const who = await customer();
      const send = (stream: boolean) => post(who.key, path(stream), body(`${name} ${first}`, stream));
      vendor.play(first ? chatStream('Gre', 'en.') : chatAnswer('Green.'));
      const miss = await send(first);
      assert.equal(miss.headers.get('x-cache'), 'miss');
      assert.equal(words(await miss.text()), 'Green.');
      const before = await balanceOf(who);
      const hit = await send(!first);
      assert.equal(hit.headers.get('x-cache'), 'hit', await hit.clone().text());
      assert.equal(hit.headers.get('content-type')?.split(';')[0], first ? 'application/json' : 'text/event-stream');
      const text = await hit.text();
      assert.equal(words(text), 'Green.');
      assert.match(text, /\b10\b/, 'the count of the prompt');
      assert.equal(made(), 1);
      const spent = 100_000_000_000n - before;
      const expected = (spent * 2n + 10n) / 20n;
      assert.ok([expected - 1n, expected, expected + 1n].includes(before - (await balanceOf(who))));
    });

test('10,000 equal calls over 128 connections at once: one upstream call, and the bill is exact to a nano-dollar', async () => {
  const who = await customer();
  const gate = Promise.withResolvers<void>();
  const { body } = chatAnswer('Once.');
  vendor.play({ body: body!, after: gate.promise });
  const question = { model: 'm', messages: [{ role: 'user', content: 'once' }] };
  const calls = askOften({ origin: gateway.origin, key: who.key, body: question, connections: 128, calls: 10_000 });
  await until('the vendor is asked', () => vendor.requests.length > 0);
  gate.resolve();
  const { how, sample } = await calls;
  assert.deepEqual(how, { '200 hit': 9_999, '200 miss': 1 });
  assert.equal(made(), 1);
  // 10 tokens in, 1 out: 12,300 and 4,570 nano-USD; a tenth of it is 1,687 exactly.
  assert.equal(100_000_000_000n - (await balanceOf(who)), 16_870n + 9_999n * 1_687n);
  const charge = await chargeOf(sample['200 hit']!);
  assert.equal(charge.servedBy, 'cache');
  assert.deepEqual(charge.attempts, []);
  assert.deepEqual(((await gateway.run('audit')) as { ok: boolean }).ok, true);
  const sums = await gateway.find(cacheReport)!.sums({ from: Date.now(), until: Date.now(), accountId: who.id });
  assert.deepEqual(sums, [
    { model: 'm', operation: 'chat', hits: 9_999, similar: 0, misses: 1, saved: 9_999n * (16_870n - 1_687n) },
  ]);
});

/** Its row is written a moment after the answer. */
function chargeOf(requestId: string) {
  return until('the charge is written', () => gateway.find(ledgerQueries)!.charge(requestId, undefined));
}

test('embeddings are answered again; another account and another project are not, nor is a refusal or a stream that breaks off', async () => {
  const who = await customer();
  const account = `c${names - 1}`;
  const data = [{ object: 'embedding', index: 0, embedding: [1, 0] }];
  const usage = { prompt_tokens: 3, total_tokens: 3 };
  vendor.play({ body: JSON.stringify({ object: 'list', model: 'e', data, usage }) });
  const embed = async (key: string) => {
    const answer = await post(key, '/v1/embeddings', { model: 'e', input: 'text' });
    await answer.text();
    return answer.headers.get('x-cache');
  };
  assert.equal(await embed(who.key), 'miss');
  assert.equal(await embed(who.key), 'hit');
  assert.equal(await embed(await keyOf(account)), 'hit');
  assert.equal(await embed(await keyOf(account, 'search')), 'miss');
  assert.equal(await embed((await customer()).key), 'miss');
  const ask = async (content: string, stream = false) => {
    const answer = await post(who.key, '/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'user', content }],
      stream,
    });
    await answer.text();
    return answer.headers.get('x-cache');
  };
  const refusal = { index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'content_filter' };
  vendor.play({
    body: JSON.stringify({
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [refusal],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  });
  assert.deepEqual([await ask('filtered'), await ask('filtered')], ['miss', 'miss']);
  const whole = chatStream('Cu', 't');
  vendor.play({ ...whole, body: String(whole.body).replace('data: [DONE]\n\n', '').replace('"stop"', 'null') });
  assert.deepEqual([await ask('cut', true), await ask('cut', true)], ['miss', 'miss']);
});

test('nearly the same question is answered by the same answer, of the same account, system text, tools and settings alone', async () => {
  const who = await customer();
  const vectors: Record<string, readonly number[]> = { Dog: [1, 0], Hound: [0.999, 0.01], Tower: [0, 1] };
  const asked: string[] = [];
  const ask = async (question: string, more: { system?: string; temperature?: number } = {}, key = who.key) => {
    const { system = 'Be brief.', ...settings } = more;
    const data = [{ object: 'embedding', index: 0, embedding: vectors[question] }];
    const embedded = {
      body: JSON.stringify({ object: 'list', model: 'vectors', data, usage: { prompt_tokens: 1, total_tokens: 1 } }),
    };
    vendor.play(embedded, chatAnswer(`An answer to ${question}.`));
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: question },
    ];
    const answer = await post(key, '/v1/chat/completions', { model: 'near', messages, ...settings });
    asked.push(await answer.text());
    return answer.headers.get('x-cache');
  };
  assert.equal(await ask('Dog'), 'miss');
  assert.equal(await ask('Hound'), 'similar');
  assert.equal(asked[1], asked[0]);
  assert.equal(await ask('Tower'), 'miss');
  assert.equal(await ask('Hound', { system: 'Be long.' }), 'miss');
  assert.equal(await ask('Hound', { temperature: 1 }), 'miss');
  assert.equal(await ask('Hound', {}, (await customer()).key), 'miss');
});

test('a text with the form of its system text in it does not open another group', async () => {
  const who = await customer();
  const ask = async (system: string, question: string) => {
    const data = [{ object: 'embedding', index: 0, embedding: [1, 0] }];
    vendor.play(
      {
        body: JSON.stringify({ object: 'list', model: 'vectors', data, usage: { prompt_tokens: 1, total_tokens: 1 } }),
      },
      chatAnswer('Yes.'),
    );
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: question },
    ];
    const answer = await post(who.key, '/v1/chat/completions', { model: 'near', messages });
    await answer.text();
    return answer.headers.get('x-cache');
  };
  assert.equal(await ask('x', 'x'), 'miss');
  assert.equal(await ask('y', 'y'), 'miss');
  assert.equal(await ask('x', 'y'), 'similar');
});
