/** The cache of meaning in a gateway with billing: near questions, other ones, other accounts, and an embedding by a model. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { ledger } from 'model-gateway/domain';
import {
  chatAnswer,
  chatStream,
  manualClock,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

const clock = manualClock();
let vendor: Vendor;
let gateway: TestGateway;
let ada: Account;
let bob: Account;

interface Account {
  readonly id: string;
  readonly key: string;
}

before(async () => {
  vendor = await startVendor();
  gateway = await startWith({ keep: '1m' });
  ada = await accountIn(gateway, 'ada');
  bob = await accountIn(gateway, 'bob');
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});
beforeEach(() => {
  vendor.requests.length = 0;
});

function startWith(section: object): Promise<TestGateway> {
  const v1 = `${vendor.origin}/v1`;
  const plugins = ['storage', 'auth', 'providers', 'models', 'prompts', './', 'billing', 'route', 'protocol-convert'];
  return startGateway(
    {
      plugins: [...plugins, 'endpoints'],
      'meaning-cache': section,
      providers: { vendor: { keys: 'k', speaks: { chat: v1, 'openai-embeddings': v1 } } },
      models: {
        m: { owned_by: 'vendor', targets: ['vendor'], price: { input: 1000, output: 1000 } },
        e: { kind: 'embedding', owned_by: 'vendor', targets: ['vendor'], price: 'free' },
      },
    },
    { from: import.meta.dirname, clock },
  );
}

async function accountIn(of: TestGateway, name: string): Promise<Account> {
  const { id } = (await of.run('accounts create', { name, credit: '10' })) as { id: string };
  const { key } = (await of.run('keys create', { account: name, name: 'test' })) as { key: string };
  return { id, key };
}

const send = (account: Account, content: string, more: object = {}, of = gateway) => {
  const body = { model: 'm', messages: [{ role: 'user', content }], ...more };
  return of.post('/v1/chat/completions', body, { authorization: `Bearer ${account.key}` });
};

/** The text of the answer, and whether it is from the cache. */
async function requestFor(
  account: Account,
  content: string,
  more: object = {},
  of = gateway,
): Promise<[string, boolean]> {
  const answer = await send(account, content, more, of);
  assert.equal(answer.status, 200);
  return [await answer.text(), answer.headers.get('x-cache') === 'near'];
}

test('a question that is nearly the same gets the first answer, without the vendor and without a charge', async () => {
  vendor.play(chatAnswer('Paris.'));
  const [first, isCached] = await requestFor(ada, 'What is the capital of France?');
  assert.equal(isCached, false);
  const balance = await gateway.find(ledger)!.balance(ada.id);
  assert.deepEqual(await requestFor(ada, 'what is the capital of France'), [first, true]);
  assert.equal(vendor.requests.length, 1);
  assert.equal(await gateway.find(ledger)!.balance(ada.id), balance);
});

test('another question, account, model setting or system text goes to the vendor, and so does every question after a while', async () => {
  vendor.play(chatAnswer('Paris.'));
  const question = 'What is the tallest tower of Paris?';
  const system = {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: question },
    ],
  };
  const others = [
    () => requestFor(ada, question),
    () => requestFor(ada, 'Which river flows through Lyon?'),
    () => requestFor(bob, question),
    () => requestFor(ada, question, { temperature: 0.5 }),
    () => requestFor(ada, question, system),
  ];
  for (const other of others) assert.equal((await other())[1], false);
  assert.equal(vendor.requests.length, others.length);
  clock.advance(60_001);
  assert.equal((await requestFor(ada, question))[1], false);
});

test('a stream is answered by a stream, and an error is never kept', async () => {
  vendor.play(chatStream('Ro', 'me'));
  const [first] = await requestFor(ada, 'What is the capital of Italy?', { stream: true });
  assert.deepEqual(await requestFor(ada, 'what is the capital of Italy?', { stream: true }), [first, true]);
  vendor.play({ status: 400, body: '{"error":{"message":"no"}}' });
  for (let times = 0; times < 2; times++) assert.equal((await send(ada, 'Say no.')).status, 400);
});

test('with a model, its vectors decide, and a call is made without them where they cannot be had', async () => {
  await using own = await startWith({ model: 'e', nearness: 0.99 });
  const eve = await accountIn(own, 'eve');
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  const embedded = (...embedding: number[]) => {
    const data = [{ object: 'embedding', index: 0, embedding }];
    return { body: JSON.stringify({ object: 'list', model: 'e', data, usage }) };
  };
  const none = { status: 400, body: '{"error":{"message":"no"}}' };
  vendor.play(
    ...[embedded(1, 0), chatAnswer('A dog.'), embedded(0.999, 0.01)],
    ...[embedded(0, 1), chatAnswer('A tower.'), none, chatAnswer('Something.')],
  );
  const [dog] = await requestFor(eve, 'Dog', {}, own);
  assert.deepEqual(await requestFor(eve, 'Hound', {}, own), [dog, true]);
  assert.equal((await requestFor(eve, 'Tower', {}, own))[1], false);
  assert.equal((await requestFor(eve, 'Unknown', {}, own))[1], false);
});
