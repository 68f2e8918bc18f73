/** A second attempt beside a silent one: one answer, one charge for its client, and what the other cost is absorbed. */
import assert from 'node:assert/strict';
import { after, before as begin, test } from 'node:test';
import { upstreamHealth } from '../../core/desk.ts';
import { before, costOf, type Pair, startPair, streamed, whole } from './hedging.ts';
import { type Customer, type Told, until } from './house.ts';

const one = { input: 7, output: 3 };
const two = { input: 8, output: 5 };
const silence = 4_000;
const slow = (milliseconds: number) => ({ headDelayMs: milliseconds });

let pair: Pair;
begin(async () => {
  pair = await startPair(60);
});
after(() => pair.stop());

async function ask(model: string, stream = false, more: object = {}, init: RequestInit = {}) {
  const customer = await pair.house.customer();
  const counts = [pair.first.requests.length, pair.second.requests.length];
  const told = await pair.house.call(customer, 'chat', { model, prompt: 'Hello there', stream, more }, init);
  const asked = [pair.first.requests.length - counts[0]!, pair.second.requests.length - counts[1]!];
  return { customer, told, asked };
}

/** One charge, of `cost`, for the attempt at `provider`; the others are the operator's or nobody's. */
async function checkCharge(customer: Customer, provider: string, cost: bigint) {
  const { ends, usage } = await pair.house.books(customer);
  assert.deepEqual([ends, usage.length, usage[0]!.provider, usage[0]!.cost], [['SETTLE answered'], 1, provider, cost]);
  assert.equal(before - (await pair.house.balance(customer)), cost);
  const rows = await pair.borne(customer);
  const clients = rows.filter(({ borne_by: who }) => who === 'client');
  assert.deepEqual(
    clients.map((row) => row.provider),
    [provider],
  );
  return rows;
}

const says = ({ text }: Told, words: string) => assert.match(text, new RegExp(words));

for (const stream of [false, true]) {
  const form = stream ? streamed : whole;
  const name = stream ? 'streamed' : 'whole';

  test(`${name}: the first is slow and the second fast: the second's answer, byte for byte, charged once`, async () => {
    const script = form('second', two);
    pair.first.play(form('first', one, slow(silence)));
    pair.second.play(script);
    const { customer, told, asked } = await ask(
      'pair',
      stream,
      stream ? { stream_options: { include_usage: true } } : {},
    );
    assert.deepEqual([told.status, asked], [200, [1, 1]]);
    assert.equal(told.text, script.body);
    const rows = await checkCharge(customer, 'second', costOf(two));
    const [lost] = rows;
    assert.deepEqual(
      [lost!.provider, lost!.result, lost!.borne_by, lost!.estimated],
      ['first', 'unknown', 'operator', true],
    );
    assert.ok(lost!.absorbed > 0n && lost!.absorbed < costOf({ input: 200, output: 0 }));
    await pair.first.requests.at(-1)!.closed;
  });

  test(`${name}: the first answers after the hedge has begun: the first's answer, and the second is absorbed`, async () => {
    pair.first.play(form('first', one, slow(200)));
    pair.second.play(form('second', two, slow(silence)));
    const { customer, told, asked } = await ask('pair', stream);
    says(told, 'first');
    assert.deepEqual(asked, [1, 1]);
    const rows = await checkCharge(customer, 'first', costOf(one));
    assert.deepEqual(
      rows.map(({ number, provider, borne_by: who }) => [number, provider, who]),
      [
        [1, 'first', 'client'],
        [2, 'second', 'operator'],
      ],
    );
  });

  test(`${name}: an answer in time starts no second attempt`, async () => {
    pair.first.play(form('first', one));
    const { customer, told, asked } = await ask('pair', stream);
    says(told, 'first');
    assert.deepEqual(asked, [1, 0]);
    assert.equal((await checkCharge(customer, 'first', costOf(one))).length, 1);
  });

  test(`${name}: where providers are read on, what the loser cost is known exactly`, async () => {
    pair.first.play(form('first', one, slow(400)));
    pair.second.play(form('second', two));
    const { customer, told } = await ask('drained', stream);
    says(told, 'second');
    const [lost] = await checkCharge(customer, 'steady', costOf(two));
    assert.deepEqual(
      [lost!.provider, lost!.result, lost!.absorbed, lost!.estimated],
      ['patient', 'answered', costOf(one), false],
    );
  });

  for (const status of [500, 503, 429]) {
    test(`${name}: the first fails with ${status} while the second runs: the second's answer`, async () => {
      pair.first.play({ status, headDelayMs: 150, body: '{"error":{"message":"no"}}' });
      pair.second.play(form('second', two, slow(200)));
      const { customer, told, asked } = await ask('pair', stream);
      says(told, 'second');
      assert.deepEqual(asked, [1, 1]);
      const [failed] = await checkCharge(customer, 'second', costOf(two));
      assert.equal(failed!.borne_by, status === 500 ? 'operator' : null);
      if (status === 429) await new Promise((resolve) => setTimeout(resolve, 1_050));
    });
  }

  test(`${name}: the second fails while the first runs: the first's answer`, async () => {
    pair.first.play(form('first', one, slow(250)));
    pair.second.play({ status: 400, body: '{"error":{"message":"not here"}}' });
    const { customer, told } = await ask('pair', stream);
    says(told, 'first');
    const rows = await checkCharge(customer, 'first', costOf(one));
    assert.equal(rows[1]!.borne_by, null);
  });
}

test('the second may speak another protocol: its answer is translated, and nothing of the first shows', async () => {
  pair.first.play(whole('first', one, slow(silence)));
  const usage = { input_tokens: two.input, output_tokens: two.output };
  const content = [{ type: 'text', text: 'translated' }];
  const answer = { id: 'm1', type: 'message', role: 'assistant', model: 'x', content, stop_reason: 'end_turn', usage };
  pair.second.play({ body: JSON.stringify(answer) });
  const { customer, told } = await ask('mixed');
  const { choices } = JSON.parse(told.text) as { choices: { message: { content: string } }[] };
  assert.equal(choices[0]!.message.content, 'translated');
  await checkCharge(customer, 'foreign', costOf(two));
  assert.deepEqual(
    [pair.first.requests.at(-1)!.url, pair.second.requests.at(-1)!.url],
    ['/v1/chat/completions', '/v1/messages'],
  );
});

test('a whole answer whose head has come is waited for', async () => {
  pair.first.play(whole('first', one, { cuts: [20], pauseMs: 150 }));
  const { customer, told, asked } = await ask('pair');
  says(told, 'first');
  assert.deepEqual(asked, [1, 0]);
  await checkCharge(customer, 'first', costOf(one));
});

test("the client's own fault ends both at once", async () => {
  pair.first.play({ status: 400, headDelayMs: 120, body: '{"error":{"message":"no"}}' });
  pair.second.play(whole('second', two, slow(silence)));
  const { customer, told } = await ask('pair');
  assert.equal(told.status, 400);
  assert.deepEqual((await pair.house.books(customer)).ends, ['VOID unknown']);
  assert.equal(await pair.house.balance(customer), before);
  await pair.second.requests.at(-1)!.closed;
});

test('both fail: nothing is charged, both are absorbed, and the client is told not to repeat it', async () => {
  pair.first.play({ status: 500, headDelayMs: 120 });
  pair.second.play({ dieAtOnce: true });
  const { customer, told } = await ask('pair');
  assert.deepEqual([told.status, told.headers.get('x-should-retry')], [502, 'false']);
  assert.deepEqual((await pair.house.books(customer)).ends, ['VOID unknown']);
  const rows = await pair.borne(customer);
  assert.deepEqual(
    rows.map(({ borne_by: who }) => who),
    ['operator', 'operator'],
  );
  assert.equal(await pair.house.balance(customer), before);
});

test('both are refused: the next target is tried as without a hedge', async () => {
  pair.first.play({ status: 503, headDelayMs: 150 });
  pair.second.play({ status: 503, headDelayMs: 150 });
  const { customer, told, asked } = await ask('three');
  assert.deepEqual([told.status, asked], [200, [1, 1]]);
  const { ends, usage } = await pair.house.books(customer);
  assert.deepEqual([ends, usage[0]!.provider], [['SETTLE answered'], 'sandbox']);
  assert.deepEqual(
    (await pair.borne(customer)).map(({ provider, result, borne_by: who }) => [provider, result, who]),
    [
      ['first', 'refused', null],
      ['second', 'refused', null],
      ['sandbox', 'answered', 'client'],
    ],
  );
});

test('the same target is asked by another key, never twice by one', async () => {
  pair.first.play(whole('late', one, slow(silence)), whole('soon', two));
  const { customer, told } = await ask('keys');
  says(told, 'soon');
  const rows = await checkCharge(customer, 'twofold', costOf(two));
  assert.equal(rows.length, 2);
  const { attempts } = await pair.house.books(customer);
  assert.equal(new Set(attempts.map(({ credential }) => credential)).size, 2);
  pair.first.play(whole('late', one, slow(200)));
  assert.deepEqual((await ask('lonely')).asked, [1, 0]);
});

for (const stream of [false, true]) {
  test(`a client that leaves a ${stream ? 'streamed' : 'whole'} race ends both and pays for its prompt by the first`, async () => {
    pair.first.play(whole('first', one, slow(silence)));
    pair.second.play(whole('second', two, slow(silence)));
    const customer = await pair.house.customer();
    const leaving = new AbortController();
    const begun = pair.second.requests.length;
    const question = { model: 'pair', prompt: 'Hello there', stream };
    const call = pair.house.call(customer, 'chat', question, { signal: leaving.signal }).catch(() => undefined);
    await until('the hedge has begun', () => pair.second.requests.length > begun);
    leaving.abort();
    await call;
    await Promise.all([pair.first.requests.at(-1)!.closed, pair.second.requests.at(-1)!.closed]);
    const { ends, usage, ledger } = await pair.house.books(customer);
    assert.deepEqual([ends, usage[0]!.provider], [['SETTLE client_left'], 'first']);
    const held = -ledger.find(({ kind }) => kind === 'HOLD')!.amount;
    assert.ok(usage[0]!.cost > 0n && usage[0]!.cost <= held);
    const rows = await pair.borne(customer);
    assert.deepEqual(
      rows.map(({ provider, borne_by: who }) => [provider, who]),
      [
        ['first', 'client'],
        ['second', 'operator'],
      ],
    );
  });
}

test('a client that leaves a race of providers that are read on is charged for the one that answers first', async () => {
  pair.first.play(whole('first', one, slow(500)));
  pair.second.play(whole('second', two, slow(200)));
  const customer = await pair.house.customer();
  const leaving = new AbortController();
  const begun = pair.second.requests.length;
  const call = pair.house
    .call(customer, 'chat', { model: 'drained', prompt: 'Hello' }, { signal: leaving.signal })
    .catch(() => undefined);
  await until('the hedge has begun', () => pair.second.requests.length > begun);
  leaving.abort();
  await call;
  const { ends, usage } = await pair.house.books(customer);
  assert.deepEqual([ends, usage[0]!.provider, usage[0]!.cost], [['SETTLE client_left'], 'steady', costOf(two)]);
  const [lost] = await pair.borne(customer);
  assert.deepEqual([lost!.borne_by, lost!.absorbed], ['operator', costOf(one)]);
});

test('a client that leaves the winner in mid-stream does not end the reading of the loser', async () => {
  const words = streamed('second', two);
  pair.first.play(streamed('first', one, slow(400)));
  pair.second.play({ ...words, dieAfter: words.cuts![0]!, hang: true, pauseMs: silence });
  const customer = await pair.house.customer();
  const leaving = new AbortController();
  const question = { model: 'uneven', prompt: 'Hello', stream: true };
  const call = pair.house.call(customer, 'chat', question, { signal: leaving.signal }).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 200));
  leaving.abort();
  await call;
  const { ends, usage } = await pair.house.books(customer);
  assert.deepEqual([ends, usage[0]!.provider, usage[0]!.estimated], [['SETTLE client_left'], 'second', true]);
  const [lost] = await pair.borne(customer);
  assert.deepEqual([lost!.result, lost!.absorbed, lost!.estimated], ['answered', costOf(one), false]);
});

test('a stream that breaks after it has won is settled by what was seen; the loser is no way out', async () => {
  const broken = streamed('second', two);
  pair.first.play(streamed('first', one, slow(silence)));
  pair.second.play({ ...broken, dieAfter: broken.cuts![0]! });
  const { customer, told } = await ask('pair', true);
  assert.match(told.text, /"error"/);
  const { ends, usage } = await pair.house.books(customer);
  assert.deepEqual([ends, usage[0]!.provider, usage.length], [['SETTLE cut'], 'second', 1]);
});

test('what leaves more behind than an answer is asked once, and so is what a model turns off', async () => {
  pair.first.play(whole('first', one, slow(150)));
  const asked = async (model: string, more: object) => (await ask(model, false, more)).asked;
  assert.deepEqual(await asked('pair', { store: true }), [1, 0]);
  assert.deepEqual(await asked('pair', { tools: [{ type: 'web_search' }] }), [1, 0]);
  assert.deepEqual(await asked('plain', {}), [1, 0]);
  assert.deepEqual(await asked('pair', { store: false }), [1, 1]);
});

test('nobody waits for a place for a hedge, and none is taken from those who wait', async () => {
  pair.second.play(whole('second', two, slow(700)));
  pair.first.play(whole('first', one, slow(300)));
  const asked = await Promise.all([ask('tight'), ask('tight'), ask('tight')]);
  for (const { told } of asked) says(told, 'first');
  await Promise.all(asked.map(({ customer }) => pair.house.books(customer)));
  const rows = await Promise.all(asked.map(({ customer }) => pair.borne(customer)));
  assert.equal(rows.flat().filter(({ provider }) => provider === 'narrow').length, 1);
});

test('the story tells of both, and the request counts once', async () => {
  pair.first.play(whole('first', one, slow(silence)));
  pair.second.play(whole('second', two));
  const { told, customer } = await ask('pair');
  await pair.house.books(customer);
  let rows: { id: string; attempts: number; provider: string; story: [number, string, ...unknown[]][] }[] = [];
  await until('the row is written', async () => {
    rows = (await pair.house.rows<(typeof rows)[number]>('requests')).filter(({ id }) => id === told.id);
    return rows.length === 1;
  });
  assert.deepEqual([rows[0]!.attempts, rows[0]!.provider], [2, 'second']);
  const lines = rows[0]!.story.map(([, id, ...values]) => [id, ...values]);
  assert.ok(
    lines.some(([id, second, first, afterMs]) => id === 'route.hedge' && second === 2 && first === 1 && afterMs === 60),
  );
  assert.ok(lines.some(([id, number, result]) => id === 'route.attempt' && number === 1 && result === 'lost'));
});

test('no more requests than the share have one, and the story says why', async () => {
  const half = await startPair(40, 0.5);
  try {
    half.first.play(whole('first', one, slow(120)));
    half.second.play(whole('second', two));
    const customer = await half.house.customer();
    const asked = [];
    for (let count = 0; count < 4; count += 1) {
      const began = half.second.requests.length;
      await half.house.call(customer, 'chat', { model: 'pair', prompt: 'Hello' });
      asked.push(half.second.requests.length - began);
    }
    assert.deepEqual(asked, [0, 1, 0, 1]);
    await half.house.books(customer, 4);
    const lines = async () =>
      (await half.house.rows<{ story: [number, string, ...unknown[]][] }>('requests')).flatMap((row) => row.story);
    await until('the rows are written', async () => {
      const refused = (await lines()).filter(([, id, , why]) => id === 'route.no_hedge' && why === 'share');
      return refused.length === 2;
    });
  } finally {
    await half.stop();
  }
});

test('a loser is slow, not at fault: nothing stays under way, no circuit counts it, its time is known', async () => {
  const health = pair.house.gateway.gateway.find(upstreamHealth)!;
  health.reset('first');
  pair.first.play(whole('first', one, slow(silence)));
  pair.second.play(whole('second', two));
  const { customer } = await ask('pair');
  await pair.house.books(customer);
  for (const provider of ['first', 'second', 'patient', 'steady', 'narrow', 'twofold'])
    for (const { inFlight } of health.targets(provider)) assert.equal(inFlight, 0, provider);
  const target = health.targets('first').find(({ model }) => model === 'pair')!;
  assert.deepEqual([target.circuit, target.failed, target.recent], ['closed', 0, 0]);
  assert.ok(target.wholeMs! >= 50);
});

test('the books are in order after all that', () => pair.house.audit());
