/** Secrets of the lockbox: filled in at the start, read again when it has changed, and named when they cannot be had. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  checkGateway,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

const secrets: Record<string, Record<string, string>> = { 'vendors/acme': { key: 'key-before' } };
let version = 1;
const service = createServer((request, response) => {
  response.setHeader('etag', String(version));
  if (request.headers.authorization !== 'Bearer open-sesame') return response.writeHead(403).end();
  const found = secrets[request.url!.replace('/secrets/', '')];
  return response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? {}));
});
let vendor: Vendor;
let gateway: TestGateway;

const fileWith = (keys: string, token = 'open-sesame') => ({
  plugins: ['providers', 'models', 'route', 'protocol-convert', './'],
  lockbox: { address: `http://127.0.0.1:${(service.address() as AddressInfo).port}`, token, every: '200ms' },
  providers: { vendor: { keys, speaks: { chat: `${vendor.origin}/v1` } } },
  models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
});
const options = { from: import.meta.dirname };
const check = (keys: string, token?: string) => checkGateway(fileWith(keys, token), options);

before(async () => {
  await once(service.listen(0, '127.0.0.1'), 'listening');
  vendor = await startVendor();
  gateway = await startGateway(fileWith('${lockbox:vendors/acme#key}'), options);
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
  service.close();
});

async function keyOfNextCall(): Promise<unknown> {
  vendor.play(chatAnswer('Hello.'));
  const answer = await gateway.post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'x' }] });
  assert.equal(answer.status, 200);
  return vendor.requests.at(-1)!.headers['authorization'];
}

test('a secret is filled in wherever the plugin stands, and a changed one is used without a restart', async () => {
  assert.equal(await keyOfNextCall(), 'Bearer key-before');
  secrets['vendors/acme'] = { key: 'key-after' };
  version += 1;
  await gateway.logged('the changed files are in force');
  assert.equal(await keyOfNextCall(), 'Bearer key-after');
  assert.doesNotMatch(JSON.stringify(gateway.lines), /key-before|key-after|open-sesame/);
});

test('a fault is one sentence with the setting, and shows no secret', async () => {
  assert.deepEqual(await check('${lockbox:vendors/acme#key}'), []);
  assert.match(
    (await check('${lockbox:vendors/none}')).join(),
    /providers\.vendor\.keys: the source "lockbox" has no secret "vendors\/none"/,
  );
  assert.deepEqual(
    (await check('${lockbox:vendors/none:-k}')).filter((line) => line.includes('lockbox')),
    [],
  );
  assert.match(
    (await check('${lockbox:vendors/acme#key}', 'wrong-token')).join(),
    /providers\.vendor\.keys: the secret lockbox:vendors\/acme#key cannot be had: the lockbox answers 403/,
  );
  assert.match(
    (await check('${lockbax:vendors/acme}')).join(),
    /there is no source "lockbax"; did you mean "lockbox"\?/,
  );
  assert.match(
    (await check('k', '${lockbox:token}')).join(),
    /lockbox\.token: a plugin that gives secrets can only have variables and files in its own section/,
  );
});
