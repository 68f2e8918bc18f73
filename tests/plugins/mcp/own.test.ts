/** The gateway's own tools: for the account of the key alone, for the models of the key, at the prices that it pays. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { projectAdmin } from '../../../plugins/common/domain/organizations/projects.ts';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({
    servers: ', price: { call: 0.25 }',
    keys: true,
    plugins: 'providers, models,',
    below: ', route, protocol-convert',
    more: `
providers:
  vendor: { keys: k, speaks: { chat: "http://127.0.0.1:9/v1" } }
  european: { keys: k, regions: [eu], speaks: { chat: "http://127.0.0.1:9/v1" } }
models:
  small: { owned_by: x, targets: [vendor], price: { input: 1, output: 2 } }
  large: { owned_by: x, targets: [vendor, european], price: { input: 10, output: 20 } }
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

test('models and prices are those that the key, its project and its regions allow, and a part of the name narrows them', async () => {
  const { key } = await world.account('0');
  const bound = await world.account('0', ['small']);
  const names = async (of: string, given = {}) =>
    (await ask(of, 'modern', 'models_and_prices', given)).models.map(({ model }: { model: string }) => model);
  assert.deepEqual(await names(key), ['small', 'large']);
  assert.deepEqual(await names(key, { search: 'LARG' }), ['large']);
  assert.deepEqual(await names(bound.key), ['small']);
  await world.gateway.gateway.find(projectAdmin)!.create(bound.id, { name: 'big', models: ['large'] });
  const withTerms = async (terms: object) => names((await keyAdmin().createKey(bound.id, { name: 'k', ...terms })).key);
  assert.deepEqual(await withTerms({ project: 'big' }), ['large']);
  assert.deepEqual(await withTerms({ regions: ['eu'] }), ['large']);
  assert.deepEqual(await withTerms({ regions: ['us'] }), []);
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

const keyAdmin = () => world.gateway.gateway.find(accountAdmin)!;

test('a key makes another one of its own rights, which spends its cap and no more', async () => {
  const ada = await world.account('10');
  const made = await ask(ada.key, 'modern', 'create_key', { name: 'for a script', cap: '0.3', days: 7 });
  assert.match(made.key, /^sk-/);
  const view = await keyAdmin().key(ada.id, made.id);
  assert.deepEqual(
    [view.name, view.cap, view.models],
    ['for a script', { amount: 300_000_000n, every: 'ever' }, undefined],
  );
  assert.equal(made.expires_at, new Date(view.expiresAt!).toISOString());
  assert.ok(Math.abs(view.expiresAt! - Date.now() - 7 * 86_400_000) < 60_000);
  const connected = await world.client(made.key, 'modern');
  await connected.callTool({ name: 'new__echo' });
  await world.charges(ada.id, 1);
  await assert.rejects(connected.callTool({ name: 'new__echo' }), /cap|limit/i);
  await connected.close();
  assert.equal(await world.balance(ada.id), 9_750_000_000n);
});

test('a key that has limits, models, a project and an end gives them to what it makes, and never more', async () => {
  const { id, key: rich } = await world.account('1');
  const expiresAt = Date.now() + 86_400_000;
  const limits = { rpm: 7 };
  const terms = {
    name: 'bound',
    project: 'alpha',
    models: ['small', 'new/*'],
    expiresAt,
    limits,
    addresses: ['127.0.0.0/8'],
  };
  const { key } = await keyAdmin().createKey(id, terms, undefined);
  const made = await ask(key, 'modern', 'create_key', { name: 'child', cap: '1', every: 'month', models: ['small'] });
  const view = await keyAdmin().key(id, made.id);
  assert.deepEqual(
    [view.project, view.models, view.expiresAt, view.limits, view.addresses],
    ['alpha', ['small'], expiresAt, limits, ['127.0.0.0/8']],
  );
  const whole = await ask(key, 'legacy', 'create_key', { name: 'child', cap: '1' });
  assert.deepEqual((await keyAdmin().key(id, whole.id)).models, ['small', 'new/*']);
  assert.match(
    await ask(key, 'modern', 'create_key', { name: 'c', cap: '1', models: ['large'] }),
    /may not call "large"/,
  );
  // A cap for each of many keys would be no cap.
  assert.match(
    await ask(made.key, 'modern', 'create_key', { name: 'grandchild', cap: '1' }),
    /has a cap makes no keys/,
  );
  const wrong = [{ name: 'c' }, { name: '', cap: '1' }, { name: 'c', cap: '0' }, { name: 'c', cap: '-1' }];
  for (const given of [...wrong, { name: 'c', cap: '1', days: 366 }, { name: 'c', cap: '1', access: 'organization' }])
    assert.match(await ask(rich, 'modern', 'create_key', given), /^[a-z]+: /, JSON.stringify(given));
});

test('no key makes another one where the operator has not allowed it', async () => {
  const bare = await openWorld();
  const { key } = await bare.account('1');
  const connected = await bare.client(key, 'modern', { path: '/mcp/gateway' });
  const { tools } = await connected.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['call_cost', 'my_usage', 'models_and_prices'],
  );
  await assert.rejects(connected.callTool({ name: 'create_key', arguments: { name: 'c', cap: '1' } }), /Unknown tool/);
  await connected.close();
  await bare.stop();
});
