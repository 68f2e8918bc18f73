/** A second attempt beside a silent one: one answer, one charge for its client, and what the other cost is absorbed. */
import assert from 'node:assert/strict';
import { after, before as begin, test } from 'node:test';
import {
  before,
  checkCharge,
  costOf,
  nextAnswered,
  nextRequest,
  type Pair,
  send,
  startPair,
  streamed,
  whole,
} from './hedging.ts';
import { type Reply, until } from './testbed.ts';

const one = { input: 7, output: 3 };
const two = { input: 8, output: 5 };
const afterMs = 100;
const silence = 10_000;
const slow = (milliseconds: number) => ({ headDelayMs: milliseconds });

let pair: Pair;
begin(async () => {
  pair = await startPair(afterMs);
});
after(() => pair.stop());

const says = ({ text }: Reply, words: string) => assert.match(text, new RegExp(words));

for (const stream of [false, true]) {
  const form = stream ? streamed : whole;
  const name = stream ? 'streamed' : 'whole';

  test(`${name}: the first is slow and the second fast: the second's answer is returned byte for byte, and charged once`, async () => {
    const script = form('second', two);
    pair.first.play(form('first', one, slow(silence)));
    pair.second.play(script);
    const { customer, reply, requested } = await send(
      pair,
      'pair',
      stream,
      stream ? { stream_options: { include_usage: true } } : {},
    );
    assert.deepEqual([reply.status, requested], [200, [1, 1]]);
    assert.equal(reply.text, script.body);
    const rows = await checkCharge(pair, customer, 'second', costOf(two));
    const [lost] = rows;
    assert.deepEqual(
      [lost!.provider, lost!.result, lost!.bearer, lost!.estimated],
      ['first', 'unknown', 'operator', true],
    );
    assert.ok(lost!.absorbed > 0n && lost!.absorbed < costOf({ input: 200, output: 0 }));
    await pair.first.requests.at(-1)!.closed;
  });

  test(`${name}: the first answers after the hedge began: its answer is returned, and the second is written off`, async () => {
    pair.first.play(form('first', one, { after: nextRequest(pair.second) }));
    pair.second.play(form('second', two, slow(silence)));
    const { customer, reply, requested } = await send(pair, 'pair', stream);
    says(reply, 'first');
    assert.deepEqual(requested, [1, 1]);
    const rows = await checkCharge(pair, customer, 'first', costOf(one));
    assert.deepEqual(
      rows.map(({ number, provider, bearer: who }) => [number, provider, who]),
      [
        [1, 'first', 'client'],
        [2, 'second', 'operator'],
      ],
    );
  });

  test(`${name}: an answer in time starts no second attempt`, async () => {
    pair.first.play(form('first', one));
    const { customer, reply, requested } = await send(pair, 'calm', stream);
    says(reply, 'first');
    assert.deepEqual(requested, [1, 0]);
    assert.equal((await checkCharge(pair, customer, 'first', costOf(one))).length, 1);
  });

  test(`${name}: with providers that are read to the end, the loser's cost is known exactly`, async () => {
    pair.first.play(form('first', one, { after: nextAnswered(pair.second) }));
    pair.second.play(form('second', two));
    const { customer, reply } = await send(pair, 'drained', stream);
    says(reply, 'second');
    const [lost] = await checkCharge(pair, customer, 'steady', costOf(two));
    assert.deepEqual(
      [lost!.provider, lost!.result, lost!.absorbed, lost!.estimated],
      ['patient', 'answered', costOf(one), false],
    );
  });

  for (const status of [500, 503, 429]) {
    test(`${name}: the first fails with ${status} while the second runs: the second's answer is returned`, async () => {
      const failed = nextAnswered(pair.first);
      pair.first.play({ status, after: nextRequest(pair.second), body: '{"error":{"message":"no"}}' });
      pair.second.play(form('second', two, { after: failed }));
      const { customer, reply, requested } = await send(pair, 'pair', stream);
      says(reply, 'second');
      assert.deepEqual(requested, [1, 1]);
      const [lost] = await checkCharge(pair, customer, 'second', costOf(two));
      assert.equal(lost!.bearer, status === 500 ? 'operator' : null);
      if (status === 429) await new Promise((resolve) => setTimeout(resolve, 1_050));
    });
  }

  test(`${name}: the second fails while the first runs: the first's answer is returned`, async () => {
    pair.first.play(form('first', one, { after: nextAnswered(pair.second) }));
    pair.second.play({ status: 400, body: '{"error":{"message":"not here"}}' });
    const { customer, reply } = await send(pair, 'pair', stream);
    says(reply, 'first');
    const rows = await checkCharge(pair, customer, 'first', costOf(one));
    assert.equal(rows[1]!.bearer, null);
  });
}

test('a hedge in another protocol: its answer is translated, and shows nothing of the first', async () => {
  pair.first.play(whole('first', one, slow(silence)));
  const usage = { input_tokens: two.input, output_tokens: two.output };
  const content = [{ type: 'text', text: 'translated' }];
  const answer = { id: 'm1', type: 'message', role: 'assistant', model: 'x', content, stop_reason: 'end_turn', usage };
  pair.second.play({ body: JSON.stringify(answer) });
  const { customer, reply } = await send(pair, 'mixed');
  const { choices } = JSON.parse(reply.text) as { choices: { message: { content: string } }[] };
  assert.equal(choices[0]!.message.content, 'translated');
  await checkCharge(pair, customer, 'foreign', costOf(two));
  assert.deepEqual(
    [pair.first.requests.at(-1)!.url, pair.second.requests.at(-1)!.url],
    ['/v1/chat/completions', '/v1/messages'],
  );
});

test('a whole answer whose head has arrived is awaited', async () => {
  pair.first.play(whole('first', one, { cuts: [20], pauseMs: 1_300 }));
  const { customer, reply, requested } = await send(pair, 'calm');
  says(reply, 'first');
  assert.deepEqual(requested, [1, 0]);
  await checkCharge(pair, customer, 'first', costOf(one));
});

test("a client's own fault ends both attempts at once", async () => {
  pair.first.play({ status: 400, after: nextRequest(pair.second), body: '{"error":{"message":"no"}}' });
  pair.second.play(whole('second', two, slow(silence)));
  const { customer, reply } = await send(pair, 'pair');
  assert.equal(reply.status, 400);
  assert.deepEqual((await pair.testbed.records(customer)).ends, ['free unknown']);
  assert.equal(await pair.testbed.balance(customer), before);
  await pair.second.requests.at(-1)!.closed;
});

test('both attempts fail: nothing is charged, both are written off, and the client may repeat the call', async () => {
  pair.first.play({ status: 500, after: nextRequest(pair.second) });
  pair.second.play({ dieAtOnce: true });
  const { customer, reply } = await send(pair, 'pair');
  assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [502, 'true']);
  assert.deepEqual((await pair.testbed.records(customer)).ends, ['free unknown']);
  const rows = await pair.borne(customer);
  assert.deepEqual(
    rows.map(({ bearer: who }) => who),
    ['operator', 'operator'],
  );
  assert.equal(await pair.testbed.balance(customer), before);
});

test('both attempts are refused: the next target is tried as without a hedge', async () => {
  pair.first.play({ status: 503, after: nextRequest(pair.second) });
  pair.second.play({ status: 503, headDelayMs: 50 });
  const { customer, reply, requested } = await send(pair, 'three');
  assert.deepEqual([reply.status, requested], [200, [1, 1]]);
  const { ends, charges } = await pair.testbed.records(customer);
  assert.deepEqual([ends, charges[0]!.provider], [['charged answered'], 'sandbox']);
  assert.deepEqual(
    (await pair.borne(customer)).map(({ provider, result, bearer: who }) => [provider, result, who]),
    [
      ['first', 'refused', null],
      ['second', 'refused', null],
      ['sandbox', 'answered', 'client'],
    ],
  );
});

test('a hedge at the same target uses another key, never the same one', async () => {
  pair.first.play(whole('late', one, slow(silence)), whole('soon', two));
  const { customer, reply } = await send(pair, 'keys');
  says(reply, 'soon');
  const rows = await checkCharge(pair, customer, 'twofold', costOf(two));
  assert.equal(rows.length, 2);
  const { attempts } = await pair.testbed.records(customer);
  assert.equal(new Set(attempts.map(({ credential }) => credential)).size, 2);
  pair.first.play(whole('late', one, slow(300)));
  assert.deepEqual((await send(pair, 'lonely')).requested, [1, 0]);
});

for (const stream of [false, true]) {
  test(`a disconnection during a ${stream ? 'streamed' : 'whole'} race ends both attempts, and the client pays the prompt of the first`, async () => {
    pair.first.play(whole('first', one, slow(silence)));
    pair.second.play(whole('second', two, slow(silence)));
    const customer = await pair.testbed.customer();
    const leaving = new AbortController();
    const begun = pair.second.requests.length;
    const question = { model: 'pair', prompt: 'Hello there', stream };
    const call = pair.testbed.call(customer, 'chat', question, { signal: leaving.signal }).catch(() => undefined);
    await until('the hedge has begun', () => pair.second.requests.length > begun);
    leaving.abort();
    await call;
    await Promise.all([pair.first.requests.at(-1)!.closed, pair.second.requests.at(-1)!.closed]);
    const { ends, charges } = await pair.testbed.records(customer);
    assert.deepEqual([ends, charges[0]!.provider], [['charged client_left'], 'first']);
    const { held } = charges[0]!;
    assert.ok(charges[0]!.cost > 0n && charges[0]!.cost <= held);
    const rows = await pair.borne(customer);
    assert.deepEqual(
      rows.map(({ provider, bearer: who }) => [provider, who]),
      [
        ['first', 'client'],
        ['second', 'operator'],
      ],
    );
  });
}

test('a disconnection during a race at providers that are read to the end is charged for the first that answers', async () => {
  const left = Promise.withResolvers<void>();
  pair.first.play(whole('first', one, { after: nextAnswered(pair.second) }));
  pair.second.play(whole('second', two, { after: left.promise }));
  const customer = await pair.testbed.customer();
  const leaving = new AbortController();
  const begun = pair.second.requests.length;
  const call = pair.testbed
    .call(customer, 'chat', { model: 'drained', prompt: 'Hello' }, { signal: leaving.signal })
    .catch(() => undefined);
  await until('the hedge has begun', () => pair.second.requests.length > begun);
  leaving.abort();
  await call;
  left.resolve();
  const { ends, charges } = await pair.testbed.records(customer);
  assert.deepEqual([ends, charges[0]!.provider, charges[0]!.cost], [['charged client_left'], 'steady', costOf(two)]);
  const [lost] = await pair.borne(customer);
  assert.deepEqual([lost!.bearer, lost!.absorbed], ['operator', costOf(one)]);
});

test('a disconnection from the winner in mid-stream does not stop the reading of the loser', async () => {
  const words = streamed('second', two);
  const left = Promise.withResolvers<void>();
  pair.first.play(streamed('first', one, { after: left.promise }));
  pair.second.play({ ...words, dieAfter: words.cuts![0]!, hang: true, pauseMs: silence });
  const customer = await pair.testbed.customer();
  const question = { model: 'uneven', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
  const leaving = await fetch(`${pair.testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(question),
  });
  const reader = leaving.body!.getReader();
  await reader.read();
  await reader.cancel();
  left.resolve();
  const { ends, charges } = await pair.testbed.records(customer);
  assert.deepEqual([ends, charges[0]!.provider, charges[0]!.estimated], [['charged client_left'], 'second', true]);
  const [lost] = await pair.borne(customer);
  assert.deepEqual([lost!.result, lost!.absorbed, lost!.estimated], ['answered', costOf(one), false]);
});

test('a winning stream that breaks is settled by the received part; the loser does not replace it', async () => {
  const broken = streamed('second', two);
  pair.first.play(streamed('first', one, slow(silence)));
  pair.second.play({ ...broken, dieAfter: broken.cuts![0]! });
  const { customer, reply } = await send(pair, 'pair', true);
  assert.match(reply.text, /"error"/);
  const { ends, charges } = await pair.testbed.records(customer);
  assert.deepEqual([ends, charges[0]!.provider, charges.length], [['charged cut'], 'second', 1]);
});

test('the ledger passes its audit at the end', () => pair.testbed.audit());
