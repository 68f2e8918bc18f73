/** Keys of a role, as containers get them from an address of their own machine: fetched once for all, and replaced ahead of their end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';
import { until } from '../../helpers/until.ts';

let vendor: Vendor;
let gateway: TestGateway;
/** The minutes for which the next keys hold; undefined: there are none. */
let minutes: number | undefined;
let given = 0;
const roles = createServer((_request, response) => {
  if (minutes === undefined) {
    response
      .writeHead(403, { 'content-type': 'application/json' })
      .end('{"message":"secret words of the role service"}');
    return;
  }
  given += 1;
  const expiration = new Date(Date.now() + minutes * 60_000).toISOString();
  const identity = { AccessKeyId: `ASIAROLE${given}`, SecretAccessKey: 'the-secret-of-the-role', Token: 'the-session' };
  response.writeHead(200, { 'content-type': 'application/json' });
  setTimeout(() => response.end(JSON.stringify({ ...identity, Expiration: expiration })), 200);
}).listen(0, '127.0.0.1');
const variables = ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE'];

before(async () => {
  if (!roles.listening) await once(roles, 'listening');
  const address = `http://127.0.0.1:${(roles.address() as AddressInfo).port}/keys`;
  Object.assign(process.env, Object.fromEntries(variables.map((name) => [name, '/nowhere'])), {
    [variables[0]!]: address,
  });
  vendor = await startVendor();
  vendor.play(chatAnswer('Hello.'));
  const auth = { scheme: 'aws', service: 'bedrock', region: 'eu-west-1' };
  gateway = await startGateway({
    plugins: ['aws', 'providers', 'models', 'route', 'protocol-convert'],
    providers: { one: { auth, speaks: { chat: vendor.origin } }, other: { auth, speaks: { chat: vendor.origin } } },
    models: {
      m: { owned_by: 'us', price: 'free', targets: ['one'] },
      rests: { owned_by: 'us', price: 'free', targets: ['other'] },
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
  roles.close();
  for (const name of variables) delete process.env[name];
});

async function send(model: string) {
  const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] }),
  });
  return { status: answer.status, text: await answer.text() };
}
const keyOf = (index: number) =>
  /Credential=(\w+)\//.exec(String(vendor.requests.at(index)!.headers.authorization))?.[1];

test('concurrent requests wait for one set of keys, which is replaced ahead of its end', async () => {
  minutes = 4;
  const all = await Promise.all(Array.from({ length: 8 }, () => send('m')));
  assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([200]), JSON.stringify(all[0]));
  assert.equal(given, 1);
  assert.deepEqual(new Set(vendor.requests.map((_, index) => keyOf(index))), new Set(['ASIAROLE1']));
  minutes = 60;
  // The keys that end soon are used while the next ones are fetched.
  assert.equal((await send('m')).status, 200);
  assert.equal(keyOf(-1), 'ASIAROLE1');
  await until('the next keys are used', async () => {
    await send('m');
    return keyOf(-1) !== 'ASIAROLE1';
  });
  assert.equal(keyOf(-1), 'ASIAROLE2');
  assert.equal(given, 2);
});

test('a credential without keys is put into cooldown with a notice, and nothing is sent or shown', async () => {
  minutes = undefined;
  const sent = vendor.requests.length;
  for (let times = 0; times < 2; times++) {
    const { status, text } = await send('rests');
    assert.ok(status === 502 || status === 503, text);
    assert.doesNotMatch(text, /role|aws|secret|127\.0\.0\.1/i);
  }
  assert.equal(vendor.requests.length, sent);
  const lines = JSON.stringify(gateway.lines);
  assert.match(lines, /"other#1".*an upstream key cools down/);
  assert.doesNotMatch(lines, /secret words|the-secret-of-the-role|the-session/);
});
