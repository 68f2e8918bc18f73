/** The proxy before a fleet keeps connections for as long as it says, whatever the servers behind it say of theirs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { startTurningProxy } from './turning-proxy.ts';

test('a client of the proxy hears how long the proxy keeps its connection, not how long the server would', async () => {
  const server = createServer({ keepAliveTimeout: 75_000 }, (_, outgoing) => outgoing.end('served'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const proxy = await startTurningProxy([origin]);
  const keptFor = async (address: string) => {
    const answer = await fetch(address);
    assert.equal(await answer.text(), 'served');
    return answer.headers.get('keep-alive');
  };
  try {
    assert.equal(await keptFor(origin), 'timeout=75');
    assert.equal(await keptFor(proxy.origin), 'timeout=600');
  } finally {
    proxy.close();
    server.close();
    server.closeAllConnections();
  }
});
