/** `host.fetch` of a plugin: what it refuses, how long and how much it reads, which way it goes, and who measures it. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { type OutboundCall, outboundCalls } from '../../core/contract/outbound.ts';
import { startGateway, type TestGateway } from '../../plugins/common/author/testing.ts';
import { freePort } from '../helpers/free-port.ts';
import { startGateway as startServing } from '../helpers/gateway.ts';
import { answer, certificates, startHttpProxy, startVendor as startTlsVendor } from '../helpers/network-stand-ins.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';

const folder = temporaryDirectory('outbound-');
mkdirSync(join(folder, 'asking'));
writeFileSync(
  join(folder, 'asking/index.ts'),
  `import { definePlugin, z } from 'model-gateway';
export default definePlugin({
  name: 'asking',
  config: z.strictObject({}),
  setup: (host) => ({
    endpoints: [{ method: 'POST', path: '/ask', operation: 'ask', keyless: true, async handle({ request }) {
      const { url, ...options } = JSON.parse(Buffer.from(request.body).toString());
      const got = await host.fetch(url, options)
        .then(async (answer) => ({ status: answer.status, text: await answer.text(), to: answer.headers.get('location') }))
        .catch(({ name, message }) => ({ name, message }));
      return { status: 200, headers: {}, body: JSON.stringify(got) };
    } }],
  }),
});`,
);
let service: Vendor;
let elsewhere: Vendor;
let gateway: TestGateway;
const closed: (() => Promise<unknown>)[] = [];
const kept = <T extends { close(): Promise<void> }>(thing: T): T => {
  closed.push(() => thing.close());
  return thing;
};

const start = (more: object = {}) => startGateway({ plugins: ['./asking'], ...more }, { from: folder });
before(async () => {
  [service, elsewhere, gateway] = await Promise.all([startVendor(), startVendor(), start()]);
});
after(() => Promise.all([gateway?.stop(), service.stop(), elsewhere.stop()]));
afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
  for (const { requests } of [service, elsewhere]) requests.length = 0;
});

interface Got {
  readonly status?: number;
  readonly text?: string;
  readonly to?: string | null;
  readonly name?: string;
  readonly message?: string;
}
const ask = async (url: string, options: object = {}, of = gateway) =>
  (await (await of.post('/ask', { url, ...options })).json()) as Got;
const allowPrivate = true;

test('an address on this machine or in a private network is refused, and nothing is sent', async () => {
  const { port } = new URL(service.origin);
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '0x7f.1']) {
    const { name, message } = await ask(`http://${host}:${port}/`);
    assert.equal(name, 'Unfetchable', host);
    assert.match(message!, /not a public address/);
  }
  for (const url of [
    'http://10.0.0.1/',
    'http://169.254.169.254/',
    'file:///etc/passwd',
    'http://u:p@example.com/',
    'x',
  ])
    assert.equal((await ask(url)).name, 'Unfetchable', url);
  assert.equal(service.requests.length, 0);
});

test('an address that the call allows is asked with the method, headers and body of the call, and any status is an answer', async () => {
  service.play({ status: 404, body: 'nothing here' });
  const headers = { authorization: 'Bearer a', 'content-type': 'text/plain' };
  const got = await ask(`${service.origin}/x?y=1`, { allowPrivate, method: 'POST', headers, body: 'texts' });
  assert.deepEqual([got.status, got.text], [404, 'nothing here']);
  const [request] = service.requests;
  assert.deepEqual([request!.method, request!.url, request!.body.toString()], ['POST', '/x?y=1', 'texts']);
  assert.equal(request!.headers.authorization, 'Bearer a');
});

test('a redirect within the allowed origin is followed, and one to another address inside is refused', async () => {
  const to = (location: string) => ({ status: 302, headers: { location } });
  service.play(to('/next'), { body: 'arrived' });
  assert.equal((await ask(service.origin, { allowPrivate })).text, 'arrived');
  service.play(to(elsewhere.origin));
  assert.equal((await ask(service.origin, { allowPrivate })).name, 'Unfetchable');
  assert.equal(elsewhere.requests.length, 0);
  service.play(to('/again'));
  assert.match((await ask(service.origin, { allowPrivate })).message!, /redirects too often/);
});

test('the redirect of a POST is the answer', async () => {
  service.play({ status: 307, headers: { location: `${elsewhere.origin}/` } });
  const got = await ask(service.origin, { allowPrivate, method: 'POST', body: 'x' });
  assert.deepEqual([got.status, got.to], [307, `${elsewhere.origin}/`]);
  assert.equal(elsewhere.requests.length, 0);
});

test('a head or a body that takes longer than the time limit ends the request', async () => {
  service.play({ headDelayMs: 30_000 });
  assert.equal((await ask(service.origin, { allowPrivate, timeoutMs: 30 })).name, 'TimeoutError');
  service.play({ body: 'the beginning', hang: true });
  assert.equal((await ask(service.origin, { allowPrivate, timeoutMs: 60 })).name, 'TimeoutError');
});

test('a body of more bytes than the bound is not read, whether its length is declared or not', async () => {
  const body = 'x'.repeat(1_001);
  service.play({ body, headers: { 'content-length': '1001' } }, { body });
  for (const _declared of [true, false]) {
    const { name, message } = await ask(service.origin, { allowPrivate, maxBytes: 1_000 });
    assert.deepEqual([name, message], ['Unfetchable', 'it is larger than 1000 bytes']);
  }
  assert.equal((await ask(service.origin, { allowPrivate, maxBytes: 1_001 })).text, body);
});

test('requests go through the proxy of the gateway with its certificates, but for hosts that are reached directly', async () => {
  const vendor = kept(await startTlsVendor('tls'));
  const proxy = kept(await startHttpProxy({ to: vendor.port, credentials: 'us:word' }));
  const outbound = {
    proxy: `http://us:word@127.0.0.1:${proxy.port}`,
    direct: ['127.0.0.1'],
    tls: { ca: certificates.ca },
  };
  await using own = await start({ outbound });
  assert.deepEqual(await ask('https://vendor.test/', {}, own), { status: 200, text: answer, to: null });
  assert.deepEqual(proxy.requested, ['vendor.test:443']);
  // The proxy resolves names; a number is judged here.
  assert.equal((await ask('http://10.0.0.1/', {}, own)).name, 'Unfetchable');
  service.play({ body: 'direct' });
  assert.equal((await ask(service.origin, { allowPrivate }, own)).text, 'direct');
  assert.equal(proxy.requested.length, 1);
});

test('a changed proxy applies to the next request after a reload', async () => {
  const proxy = kept(await startHttpProxy({ fault: 'refuse' }));
  const yaml = (more: string) => `gateway: test\nlisten: 127.0.0.1:0\nplugins: ['${join(folder, 'asking')}']\n${more}`;
  await using own = await startServing(yaml(`outbound: { proxy: 'http://127.0.0.1:${proxy.port}' }\n`));
  const request = { method: 'POST', body: JSON.stringify({ url: service.origin, allowPrivate }) };
  const status = async () => ((await (await fetch(`${own.origin}/ask`, request)).json()) as Got).status;
  service.play({ body: 'x' });
  assert.equal(await status(), undefined);
  assert.equal(proxy.requested.length, 1);
  await writeFile(join(own.directory, 'gateway.yaml'), yaml(''));
  assert.deepEqual((await own.gateway.reload()).changes, [{ section: 'outbound', restart: false }]);
  assert.equal(await status(), 200);
});

test('without the certificate of the service the request fails', async () => {
  const vendor = kept(await startTlsVendor('tls'));
  const { status, name } = await ask(`https://127.0.0.1:${vendor.port}/`, { allowPrivate });
  assert.deepEqual([status, name], [undefined, 'Error']);
  assert.equal(vendor.calls.length, 0);
});

test('each request is measured by its plugin and its end, and Prometheus reads it', async () => {
  const port = await freePort();
  const telemetry = { listen: `127.0.0.1:${port}` };
  await using own = await start({ plugins: ['telemetry', './asking'], telemetry });
  const calls: OutboundCall[] = [];
  own.find(outboundCalls)!.watch((call) => void calls.push(call));
  service.play({ body: 'x' }, { headDelayMs: 30_000 });
  await ask(service.origin, { allowPrivate }, own);
  await ask(service.origin, { allowPrivate, timeoutMs: 30 }, own);
  await ask(service.origin, {}, own);
  await ask(`http://127.0.0.1:${await freePort()}`, { allowPrivate }, own);
  assert.deepEqual(
    calls.map(({ plugin, outcome }) => [plugin, outcome]),
    ['answered', 'timeout', 'refused', 'failed'].map((outcome) => ['asking', outcome]),
  );
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  for (const outcome of ['answered', 'timeout', 'refused', 'failed'])
    assert.match(
      page,
      new RegExp(`^gateway_outbound_duration_count\\{.*plugin="asking".*outcome="${outcome}".*\\} 1$`, 'm'),
    );
});
