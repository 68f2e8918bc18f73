/** The tools of the sandbox: both eras, the same result each time, failures, and the key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startVendor } from '../../../plugins/sandbox/vendor.ts';

const clientOf = async (origin: string, mode: 'legacy' | 'auto', key = '') => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', origin), { requestInit }));
  return client;
};

test('the tools of the sandbox answer clients of both eras, and say what failed', async () => {
  const vendor = await startVendor({ now: () => Date.UTC(2026, 0, 31, 12) });
  try {
    for (const mode of ['legacy', 'auto'] as const) {
      const client = await clientOf(vendor.origin, mode);
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['weather', 'time', 'order'],
      );
      const call = async (name: string, given: Record<string, unknown>) => {
        const { structuredContent, isError, content } = await client.callTool({ name, arguments: given });
        return isError === true ? (content[0] as { text: string }).text : structuredContent;
      };
      assert.deepEqual(await call('weather', { city: 'Oslo' }), await call('weather', { city: 'Oslo' }));
      assert.deepEqual(await call('time', { zone: 'Europe/Oslo' }), {
        zone: 'Europe/Oslo',
        time: '2026-01-31 13:00:00',
      });
      assert.deepEqual(await call('order', { number: 7 }), { number: 7, state: 'delivered', parcels: 2 });
      assert.equal(await call('weather', { city: 'Atlantis' }), 'There is no weather in Atlantis.');
      assert.equal(await call('order', { number: 'x' }), '"number" must be a whole number from 1 on.');
      await assert.rejects(client.callTool({ name: 'other' }), { code: -32_602 });
      await client.close();
    }
  } finally {
    await vendor.close();
  }
});

test('the tools of a sandbox with a key refuse another one', async () => {
  const vendor = await startVendor({ key: 'right' });
  try {
    await (await clientOf(vendor.origin, 'auto', 'right')).close();
    await assert.rejects(clientOf(vendor.origin, 'auto', 'wrong'));
  } finally {
    await vendor.close();
  }
});
