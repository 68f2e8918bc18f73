/** Providers and keys that an operator takes out of use, at the whole gateway: others serve, or the client is asked to come back. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { requestQueries } from '../../plugins/common/domain/admin/requests.ts';
import { upstreamAdmin } from '../../plugins/common/domain/admin/upstreams.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
let customer: Customer;

before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({ spare: { keys: 'vendor-key-of-the-sandbox', speaks: speaks(sandbox) } }),
    models: { both: modelAt('sandbox/sandbox', 'spare/sandbox') },
  });
  customer = await testbed.customer();
});
after(() => testbed.stop());

const admin = () => testbed.gateway.gateway.find(upstreamAdmin)!;

async function providerOf(id: string): Promise<string | undefined> {
  let provider: string | undefined;
  await until('its row is there', async () => {
    const row = await testbed.gateway.gateway.find(requestQueries)!.find(id, undefined);
    provider = row?.provider;
    return row !== undefined;
  });
  return provider;
}

test('a disabled provider is skipped, and serves again once it is enabled', async () => {
  const question = { model: 'both', prompt: 'hello' };
  const served = async () => {
    const reply = await testbed.call(customer, 'messages', question);
    assert.equal(reply.status, 200);
    return providerOf(reply.id);
  };
  assert.equal(await served(), 'sandbox');
  await admin().setDisabled('sandbox', undefined, true);
  assert.equal(await served(), 'spare');
  await admin().setDisabled('sandbox', undefined, false);
  assert.equal(await served(), 'sandbox');
  await admin().setDisabled('sandbox', 'sandbox#1', true);
  assert.equal(await served(), 'spare');
  await admin().setDisabled('sandbox', 'sandbox#1', false);
});

test('where no other vendor serves the model each protocol answers 503, nothing is charged, and the model is still listed', async () => {
  await admin().setDisabled('sandbox', undefined, true);
  const before = await testbed.balance(customer);
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, { model: 'sandbox', prompt: 'hello' });
    assert.equal(reply.status, 503, name);
    assert.ok(dialects[name].errorType(JSON.parse(reply.text)) !== undefined, name);
    assert.match(reply.text, /out of service at the moment/);
  }
  assert.equal(await testbed.balance(customer), before);
  const list = (await (await fetch(`${testbed.origin}/v1/models`)).json()) as { data: { id: string }[] };
  assert.ok(list.data.some(({ id }) => id === 'sandbox'));
  await admin().setDisabled('sandbox', undefined, false);
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'hello' })).status, 200);
  await testbed.audit();
});
