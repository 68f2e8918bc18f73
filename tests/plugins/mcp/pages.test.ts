/** What the console's pages of tools say: servers, health, prices and costs, of a gateway with tools that were called. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../../helpers/until.ts';
import { firstToken, operator, signIn, startDemo, type TestConsole } from '../console/start-console.ts';

let testbed: TestConsole;
before(async () => {
  testbed = await startDemo();
});
after(() => testbed.stop());

test('operators see calls, failures and costs of tools, and clients their prices', async () => {
  const boss = testbed.browser();
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  await signIn(boss, operator);
  const ada = testbed.browser();
  const who = { email: 'ada@example.test', password: 'another long password', name: 'Ada' };
  await ada.send('/auth/sign-up/email', { body: who });
  const accountId = (await ada.send('/me')).json.account.id;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  await boss.send(`/admin/accounts/${accountId}/credit`, { body: { amount: '5', reason: 'a test' }, headers });
  const { key } = (await ada.send('/keys', { body: { name: 'laptop' } })).json;
  const call = (city: string) =>
    fetch(`${testbed.origin}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'sandbox__weather', arguments: { city } },
      }),
    }).then((answer) => answer.text());
  assert.match(await call('Oslo'), /Oslo/);
  assert.match(await call('Atlantis'), /There is no weather/);
  const page = await until('the cost', async () => {
    const { json } = await boss.send('/admin/tools');
    return json.spent.length > 0 && json;
  });
  const [server] = page.servers;
  assert.deepEqual([server.name, server.reached, server.calls, server.failed], ['sandbox', true, 2, 1]);
  assert.ok(Date.parse(server.lastFailure) > 0);
  const [spent] = page.spent;
  assert.equal(spent.tool, 'sandbox__weather');
  assert.equal(spent.cost, '0.001');
  const own = (await ada.send('/pages/tools')).json;
  assert.deepEqual(own.bundles, ['harbour']);
  assert.deepEqual(
    own.tools.map(({ name, price }: { name: string; price: string }) => `${name} ${price}`),
    ['sandbox__order 0.001', 'sandbox__time 0.001', 'sandbox__weather 0.001'],
  );
});
