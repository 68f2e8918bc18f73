/** Two gateway processes on one PostgreSQL while keys change: a key's secret with an overlap, and the keys that an issuer signs tokens with. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { testOnServer } from '../helpers/database.ts';
import { type Fleet, gather } from './fleet.ts';
import { until } from './testbed.ts';

const audience = 'https://gateway.example.test';
type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

async function startIssuer() {
  const published: object[] = [];
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys: published })));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    publish: async (kid: string, { publicKey }: Pair) => {
      published.splice(0, published.length, { ...(await exportJWK(publicKey)), kid });
    },
    token: (kid: string, { privateKey }: Pair, account: string) =>
      new SignJWT({ iss: issuer, aud: audience, sub: 'job', account })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
    close: () => server.close(),
  };
}

/** What each of the processes says to who calls with it. */
const statusesOf = (fleet: Fleet, secret: string): Promise<number[]> =>
  Promise.all(
    fleet.nodes.map(async ({ origin }) => {
      const answer = await fetch(`${origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'none', messages: [{ role: 'user', content: 'Hello' }] }),
      });
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
const [taken, refused] = [
  // There is no such model.
  [404, 404],
  [401, 401],
];

async function overlaps(fleet: Fleet, key: string): Promise<void> {
  assert.deepEqual(await statusesOf(fleet, key), taken);
  const made = await fleet.runAsCommand(async ({ gateway }) => {
    const rotate = gateway.gateway.commands.find(({ name }) => name === 'keys rotate')!;
    return (await rotate.run({ key: 'test', overlap: '10s' })).json as { key: string; overlapEndsAt: Date };
  });
  for (const secret of [key, made.key, key]) assert.deepEqual(await statusesOf(fleet, secret), taken);
  await pause(Math.max(0, made.overlapEndsAt.getTime() - Date.now()) + 1);
  assert.deepEqual(await statusesOf(fleet, key), refused);
  assert.deepEqual(await statusesOf(fleet, made.key), taken);
}

testOnServer(
  'two processes take both secrets of a key until its overlap ends, and the keys of an issuer as it changes them',
  async () => {
    const [first, second] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
    const issuer = await startIssuer();
    const jwt = { issuer: issuer.issuer, audience, jwks: `${issuer.issuer}/keys`, allow_private: true };
    const failures = { per_minute: 10_000 };
    const fleet = await gather({ auth: { jwt: [{ ...jwt, account: { claim: 'account' } }], failures } }, 2);
    try {
      await Promise.all(fleet.nodes.map((node) => node.start()));
      const { accountId, key } = await fleet.runAsCommand((gateway) => gateway.customer());
      await issuer.publish('one', first);
      const before = await issuer.token('one', first, accountId);
      assert.deepEqual(await statusesOf(fleet, before), taken);
      await issuer.publish('two', second);
      const after = await issuer.token('two', second, accountId);
      await overlaps(fleet, key);
      // Unknown keys let each process ask the issuer once in half a minute.
      await until(
        'both take the new key',
        async () => String(await statusesOf(fleet, after)) === String(taken),
        60_000,
      );
      assert.deepEqual(await statusesOf(fleet, await issuer.token('one', first, accountId)), refused);
    } finally {
      issuer.close();
      await fleet.close();
    }
  },
);
