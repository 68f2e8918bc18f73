/** A gateway behind a proxy: who calls is who the proxy names, if it is trusted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../helpers/gateway.ts';

const gatewayWith = (proxies: string) => `
gateway: test
listen: 127.0.0.1:0
log: debug
server: { trusted_proxies: [${proxies}] }
plugins: [storage, auth, plans, rate-limit, providers, models, billing, route, protocol-convert]
auth: { failures: { per_minute: 3 } }
plans: { default: free, offers: { free: {} } }
`;

async function guess(origin: string, from: string): Promise<number> {
  const headers = { authorization: 'Bearer nothing-like-a-key', 'x-forwarded-for': from };
  return (await fetch(`${origin}/v1/models`, { headers })).status;
}

test('callers behind a trusted proxy are distinguished, and wrong keys of one do not block another', async (t) => {
  const { origin, stop } = await startGateway(gatewayWith('127.0.0.0/8, "::1"'));
  t.after(stop);
  const mine: number[] = [];
  for (let attempt = 0; attempt < 5; attempt++) mine.push(await guess(origin, '203.0.113.1'));
  assert.deepEqual(mine, [401, 401, 401, 429, 429]);
  assert.equal(await guess(origin, '203.0.113.2'), 401);
  // What the caller itself has written stands before what the proxy adds.
  assert.equal(await guess(origin, '198.51.100.7, 203.0.113.1'), 429);
});

test('without trusted proxies the forwarding header is ignored', async (t) => {
  const { origin, stop } = await startGateway(gatewayWith(''));
  t.after(stop);
  const seen: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) seen.push(await guess(origin, `203.0.113.${attempt}`));
  assert.deepEqual(seen, [401, 401, 401, 429]);
});
