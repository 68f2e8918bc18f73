/** The gateway's own tools: for the account of the key alone, for the models of the key, at the prices that it pays. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({
    servers: ', price: { call: 0.25 }',
    plugins: 'providers, models,',
    below: ', route, protocol-convert',
    more: `
providers: { vendor: { keys: k, speaks: { chat: "http://127.0.0.1:9/v1" } } }
models:
  small: { owned_by: x, targets: [vendor], price: { input: 1, output: 2 } }
  large: { owned_by: x, targets: [vendor], price: { input: 10, output: 20 } }
`,
  });
});
after(() => world.stop());

const ask = async (key: string, era: 'modern' | 'legacy', name: string, given = {}) => {
  const connected = await world.client(key, era, { path: '/mcp/gateway' });
  const { structuredContent, isError, content } = await connected.callTool({ name, arguments: given });
  await connected.close();
  // biome-ignore lint/suspicious/noExplicitAny: results of several tools are asserted on
  return (isError === true ? (content[0] as { text: string }).text : structuredContent) as any;
};

test('a key learns what a call of its account cost and why, and another account learns nothing of it', async () => {
  const [ada, bob] = [await world.account('10'), await world.account('10')];
  const connected = await world.client(ada.key, 'modern');
  await connected.callTool({ name: 'new__echo' });
  const [charge] = await world.charges(ada.id, 1);
  for (const era of ['modern', 'legacy'] as const) {
    const cost = await ask(ada.key, era, 'call_cost', { request_id: charge!.request });
    assert.deepEqual([cost.cost, cost.model, cost.usage], ['0.25', 'new__echo', { call: 1 }]);
    assert.match(cost.why, /^1 call × 0\.25$/);
    assert.match(await ask(bob.key, era, 'call_cost', { request_id: charge!.request }), /No charge of this account/);
    assert.match(await ask(ada.key, era, 'call_cost', { request_id: 'x' }), /No charge of this account/);
    const used = await ask(ada.key, era, 'my_usage');
    assert.deepEqual([used.balance, used.today], ['9.75', { calls: 1, cost: '0.25' }]);
    assert.deepEqual(used.month, { cost: '0.25', models: [{ model: 'new__echo', calls: 1, cost: '0.25' }] });
    assert.deepEqual((await ask(bob.key, era, 'my_usage')).today, { calls: 0, cost: '0.00' });
  }
});

test('models and prices are those of the key, and a part of the name narrows them', async () => {
  const { key } = await world.account('0');
  const bound = await world.account('0', ['small']);
  const names = async (of: string, given = {}) =>
    (await ask(of, 'modern', 'models_and_prices', given)).models.map(({ model }: { model: string }) => model);
  assert.deepEqual(await names(key), ['small', 'large']);
  assert.deepEqual(await names(key, { search: 'LARG' }), ['large']);
  assert.deepEqual(await names(bound.key), ['small']);
  const { models } = await ask(bound.key, 'modern', 'models_and_prices');
  assert.deepEqual(
    models[0].prices.map(({ class: of, per, usd }: Record<string, string>) => [of, per, usd]),
    [
      ['input', 'million', '1.00'],
      ['output', 'million', '2.00'],
    ],
  );
});

test('a tool that the gateway does not have is the error of the protocol, and no key is 401', async () => {
  const { key } = await world.account('0');
  await assert.rejects(ask(key, 'modern', 'other'), { code: -32_602 });
  const answer = await fetch(`${world.gateway.origin}/mcp/gateway`, { method: 'POST', body: '{}' });
  assert.equal(answer.status, 401);
});
