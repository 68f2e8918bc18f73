/** A transform of answers where no request comes over HTTP: a turn of a WebSocket passes it like any call. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { chatStream, startGateway, startVendor } from '../../plugins/common/author/testing.ts';
import { talk } from './sockets.ts';

test('a secret in a turn over WebSocket is replaced, in its deltas and in the whole response', async () => {
  const vendor = await startVendor();
  const gateway = await startGateway(
    {
      plugins: ['storage', 'auth', './', 'providers', 'models', 'route', 'protocol-convert', 'websockets'],
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
    },
    { from: join(import.meta.dirname, '../examples/redaction') },
  );
  try {
    await gateway.run('accounts create', { name: 'ada' });
    const { key } = (await gateway.run('keys create', { account: 'ada', name: 'test' })) as { key: string };
    vendor.play(chatStream(...'Use sk-abcdefghijklmnop0123456789 for it.'));
    const client = await talk(gateway.origin, key);
    const messages = await client.turn({ model: 'm', input: 'x' });
    await client.close();
    const said = messages.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('');
    assert.equal(said, 'Use [secret] for it.');
    assert.equal(messages.at(-1).type, 'response.completed');
    assert.equal(messages.at(-1).response.output[0].content[0].text, said);
    assert.doesNotMatch(JSON.stringify(messages), /sk-ab/);
  } finally {
    await gateway.stop();
    await vendor.stop();
  }
});
