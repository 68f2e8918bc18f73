/** The money of runs: budgets, refusals in the middle, clients that leave, repetitions by a key. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { boundsOf, RunBudget } from '../../../plugins/agent-loop/budget.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fc } from '../../helpers/properties.ts';
import { until } from '../../helpers/until.ts';
import { type Json, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.gateway.stop());

const tool = { type: 'mcp', server_label: 'town', server_url: 'gateway://sandbox', require_approval: 'never' };
const weather = 'What is the weather in Oslo?';
const body = { model: 'of-chat', input: weather, tools: [tool] };

test('steps of a run in any order never hold and cost more than its budget, if none costs more than it holds', () => {
  const step = fc.record({ amount: fc.bigInt(0n, 60n), share: fc.bigInt(0n, 100n), ends: fc.nat(4) });
  fc.assert(
    fc.property(fc.bigInt(0n, 200n), fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const budget = new RunBudget(money(limit));
      const open: { held: bigint; share: bigint }[] = [];
      let [spent, held] = [0n, 0n];
      for (const { amount, share, ends } of steps) {
        assert.equal(budget.covers(money(amount)), spent + held + amount <= limit);
        if (budget.covers(money(amount))) {
          budget.hold(money(amount));
          open.push({ held: amount, share });
          held += amount;
        }
        const [ended] = ends < open.length ? open.splice(ends, 1) : [];
        if (ended !== undefined) {
          const cost = (ended.held * ended.share) / 100n;
          budget.end(money(ended.held), money(cost));
          held -= ended.held;
          spent += cost;
        }
        assert.ok(spent + held <= limit);
      }
    }),
  );
});

test('the header of a run can only narrow the settings, and a wrong one is refused', () => {
  const settings = { turns: 16, calls: 64 };
  assert.deepEqual(boundsOf(undefined, settings), { budget: undefined, ...settings });
  const { turns, calls } = boundsOf('turns=4; calls=900', settings);
  assert.deepEqual([turns, calls], [4, 64]);
  for (const header of [
    'budget',
    'budget=x',
    'budget=-1',
    'turns=0',
    'turns=1.5',
    'calls=',
    'money=3',
    'id-1; budget=2',
  ])
    assert.throws(() => boundsOf(header, settings), { field: 'x-gateway-run' }, header);
});

test('a run ends with what it has where its budget does not cover the next step, and costs no more than that', async () => {
  for (const stream of [false, true]) {
    const { id, key } = await world.account();
    // Enough for a turn of the model and not for the tool, which costs 0.50.
    const headers = { 'x-gateway-run': 'budget=0.4' };
    const response = await world.post('/v1/responses', key, { ...body, stream }, headers);
    const text = await response.text();
    const answer: Json = stream ? JSON.parse(text.trim().split('data: ').at(-1)!).response : JSON.parse(text);
    assert.equal(answer.status, 'incomplete');
    const call = answer.output.find(({ type }: Json) => type === 'mcp_call');
    assert.match(call.error, /budget of this run, 0.40 USD/);
    const [charge, ...none] = await world.charges(id, 1);
    assert.ok(Number(charge!.change) > -0.4);
    assert.deepEqual(none, []);
  }
});

test('a first turn that the budget of its run does not cover is refused and costs nothing', async () => {
  const { id, key } = await world.account('5');
  const response = await world.post('/v1/responses', key, body, { 'x-gateway-run': 'budget=0.000001' });
  assert.equal(response.status, 402);
  assert.equal(((await response.json()) as Json).error.code, 'run_budget');
  assert.equal(await world.balance(id), '5.00');
});

test('a balance that ends in the middle of a run ends it with what it has, and what ran is charged once', async () => {
  const { id, key } = await world.account('0.51');
  const twice = 'What is the weather in Oslo, and what is the time in Europe/Oslo?';
  const answer: Json = await (await world.post('/v1/responses', key, { ...body, input: twice })).json();
  const calls = answer.output.filter(({ type }: Json) => type === 'mcp_call');
  assert.deepEqual(calls.map(({ status }: Json) => status).sort(), ['completed', 'failed']);
  assert.equal(answer.status, 'incomplete');
  assert.equal((await world.charges(id, 2)).length, 2);
});

test('a run that is repeated by its Idempotency-Key has the same answer, and is charged once', async () => {
  const { id, key } = await world.account();
  const headers = { 'idempotency-key': 'run 1' };
  const ask = async () => (await (await world.post('/v1/responses', key, body, headers)).json()) as Json;
  const [first, again] = [await ask(), await ask()];
  assert.deepEqual(again.output.at(-1).content, first.output.at(-1).content);
  await world.charges(id, 3);
  const balance = await world.balance(id);
  await ask();
  assert.equal(await world.balance(id), balance);
  assert.equal((await world.charges(id, 3)).length, 3);
});

test('a client that leaves in the middle of a run pays once for what ran, and nothing stays held', async () => {
  const { id, key } = await world.account();
  const slow = `${weather} [[sandbox: chunk_delay=200ms tokens=400]]`;
  const response = await world.post('/v1/responses', key, { ...body, input: slow, stream: true });
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes('response.output_text.delta')) break;
  }
  const charges = await world.charges(id, 3);
  assert.equal(charges.length, 3);
  const cost = charges.reduce((sum, { change }) => sum + Math.round(Number(change) * 1e9), 0);
  await until('the balance', async () => Math.round(Number(await world.balance(id)) * 1e9) === 100e9 + cost);
});

test('a run of as many turns or calls as it may have ends as cut off', async () => {
  const { key } = await world.account();
  for (const bound of ['turns=1', 'calls=1']) {
    const input = 'What is the weather in Oslo, and what is the time in Europe/Oslo?';
    const response = await world.post('/v1/responses', key, { ...body, input }, { 'x-gateway-run': bound });
    const answer: Json = await response.json();
    assert.equal(answer.status, 'incomplete', bound);
    const made = answer.output.filter(({ type }: Json) => type === 'mcp_call').length;
    assert.equal(made, bound === 'turns=1' ? 2 : 0);
  }
});
