/** Ways to vendors: proxies of three kinds, certificates, address families, queries and headers, against strict stand-ins on loopback. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import {
  certificates,
  type StandIn,
  startHttpProxy,
  startSocksProxy,
  startVendor,
} from '../../helpers/network-stand-ins.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const key = 'sk-stand-in-vendor-key-1';
const password = 'pass-word-of-the-proxy';
const running: { close?(): Promise<void>; stop?(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of running.splice(0).toReversed()) await (one.stop ?? one.close!).call(one);
});

function kept<T extends StandIn | TestGateway>(one: T): T {
  running.push(one as never);
  return one;
}

/** A gateway with one vendor and one model. */
async function gatewayTo(provider: object, target: object = { provider: 'vendor' }): Promise<TestGateway> {
  const entry = JSON.stringify({ keys: key, timeouts: { connect: '2s' }, ...provider });
  const yaml = `gateway: networks
listen: 127.0.0.1:0
plugins: [providers, models, route, protocol-convert]
providers: { vendor: ${entry} }
models: { m: { owned_by: us, price: free, targets: [${JSON.stringify(target)}] } }
`;
  return kept(await startGateway(yaml));
}

async function call({ origin }: TestGateway): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  return { status: answer.status, text: await answer.text() };
}

const proxies = {
  http: { start: (rules: object) => startHttpProxy(rules), scheme: 'http' },
  https: { start: (rules: object) => startHttpProxy(rules, true), scheme: 'https' },
  socks5: { start: startSocksProxy, scheme: 'socks5' },
} as const;

for (const [kind, { start, scheme }] of Object.entries(proxies)) {
  for (const vendorKind of ['plain', 'demanding'] as const) {
    test(`through a proxy (${kind}) with credentials to a vendor (${vendorKind}), whose name it resolves`, async () => {
      const vendor = kept(await startVendor(vendorKind));
      const proxy = kept(await start({ to: vendor.port, credentials: `us:${password}` }));
      const isTls = vendorKind === 'demanding';
      const { cert, key: certKey } = certificates.client;
      const gateway = await gatewayTo({
        speaks: { chat: `${isTls ? 'https' : 'http'}://vendor.test${isTls ? '' : ':8000'}/v1` },
        proxy: `${scheme}://us:${password}@127.0.0.1:${proxy.port}`,
        tls: { ca: certificates.ca, cert, key: certKey },
      });
      for (let round = 0; round < 2; round++) assert.deepEqual((await call(gateway)).status, 200);
      assert.deepEqual(proxy.requested, [`vendor.test:${isTls ? 443 : 8000}`], 'the connection is kept');
      assert.deepEqual(proxy.credentials, [`us:${password}`]);
      assert.deepEqual(
        vendor.calls.map(({ path }) => path),
        ['/v1/chat/completions', '/v1/chat/completions'],
      );
      assert.ok(
        vendor.calls.every(({ remotePort }) => proxy.ports.has(remotePort!)),
        'nothing goes past the proxy',
      );
      assert.equal(vendor.calls[0]!.headers['authorization'], `Bearer ${key}`);
      assert.equal(vendor.calls[0]!.headers['proxy-authorization'], undefined);
      assert.equal(vendor.calls[0]!.client, isTls ? 'client.test' : undefined);
    });
  }

  for (const fault of ['refuse', 'close', 'silent', 'credentials', 'gone'] as const) {
    test(`a proxy (${kind}) that fails (${fault}): nothing was sent, and no detail of it is shown`, async () => {
      const vendor = kept(await startVendor('plain'));
      const credentials = fault === 'credentials' ? { credentials: 'them:other' } : { credentials: `us:${password}` };
      const rules = fault === 'credentials' || fault === 'gone' ? credentials : { ...credentials, fault };
      const proxy = await start({ to: vendor.port, ...rules });
      if (fault === 'gone') await proxy.close();
      else kept(proxy);
      const gateway = await gatewayTo({
        speaks: { chat: 'http://vendor.test/v1' },
        proxy: `${scheme}://us:${password}@127.0.0.1:${proxy.port}`,
        tls: { ca: certificates.ca },
        timeouts: { connect: '300ms' },
      });
      const { status, text } = await call(gateway);
      assert.equal(status, 502, text);
      assert.match(text, /The model could not be reached/);
      assert.deepEqual(vendor.calls, []);
      const shown = text + gateway.lines.join('\n');
      for (const hidden of [password, key, Buffer.from(`us:${password}`).toString('base64')])
        assert.ok(!shown.includes(hidden), shown);
    });
  }
}

test("a key's own proxy overrides the provider's, and an empty one means none", async () => {
  const vendor = kept(await startVendor('plain'));
  const [common, own] = [
    kept(await startHttpProxy({ to: vendor.port })),
    kept(await startSocksProxy({ to: vendor.port })),
  ];
  const gateway = await gatewayTo({
    keys: ['key-one', { key: 'key-two', proxy: `socks5://127.0.0.1:${own.port}` }, { key: 'key-three', proxy: '' }],
    speaks: { chat: `http://127.0.0.1:${vendor.port}/v1` },
    proxy: `http://127.0.0.1:${common.port}`,
  });
  for (let round = 0; round < 3; round++) assert.equal((await call(gateway)).status, 200);
  const ways = vendor.calls.map(({ headers, remotePort }) => [
    headers['authorization'],
    common.ports.has(remotePort!) ? 'common' : own.ports.has(remotePort!) ? 'own' : 'direct',
  ]);
  assert.deepEqual(ways, [
    ['Bearer key-one', 'common'],
    ['Bearer key-two', 'own'],
    ['Bearer key-three', 'direct'],
  ]);
});

test('a vendor with its own certificates is refused without them, and reached with them, from files too', async () => {
  const vendor = kept(await startVendor('demanding'));
  const speaks = { chat: `https://127.0.0.1:${vendor.port}/v1` };
  const { cert, key: certKey } = certificates.client;
  for (const tls of [undefined, { ca: certificates.ca }, { cert, key: certKey }])
    assert.equal((await call(await gatewayTo({ speaks, tls }))).status, 502);
  assert.deepEqual(vendor.calls, []);
  assert.equal(
    (await call(await gatewayTo({ speaks, tls: { ca: [certificates.ca], cert, key: certKey } }))).status,
    200,
  );
  const directory = temporaryDirectory('certificates-');
  const files = { ca: certificates.ca, cert, key: certKey };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const tls = Object.fromEntries(Object.keys(files).map((name) => [name, join(directory, name)]));
  assert.equal((await call(await gatewayTo({ speaks, tls }))).status, 200);
  assert.deepEqual(
    vendor.calls.map(({ client }) => client),
    ['client.test', 'client.test'],
  );
});

test('a certificate for another name is refused, wherever the proxy leads', async () => {
  const vendor = kept(await startVendor('tls'));
  const proxy = kept(await startHttpProxy({ to: vendor.port }));
  const gateway = await gatewayTo({
    speaks: { chat: 'https://elsewhere.test/v1' },
    proxy: `http://127.0.0.1:${proxy.port}`,
    tls: { ca: certificates.ca },
  });
  assert.equal((await call(gateway)).status, 502);
  assert.deepEqual([proxy.requested.length > 0, vendor.calls], [true, []]);
});

test('the query of a base URL is kept on every address, and headers of a target override those of its provider', async () => {
  const vendor = kept(await startVendor('plain'));
  const gateway = await gatewayTo(
    {
      speaks: { chat: `http://127.0.0.1:${vendor.port}/deployments/d/?api-version=2026-01-01` },
      headers: { 'X-Team': 'provider', 'x-only': 'provider' },
    },
    { provider: 'vendor', headers: { 'x-team': 'target', 'X-Model': 'm' } },
  );
  assert.equal((await call(gateway)).status, 200);
  const [{ path, headers }] = vendor.calls as [(typeof vendor.calls)[number]];
  assert.equal(path, '/deployments/d/chat/completions?api-version=2026-01-01');
  assert.deepEqual([headers['x-team'], headers['x-only'], headers['x-model']], ['target', 'provider', 'm']);
});

test('a setting of IPv4 alone reaches a vendor on IPv4, and one of IPv6 alone does not', async () => {
  const vendor = kept(await startVendor('plain'));
  const speaks = { chat: `http://localhost:${vendor.port}/v1` };
  for (const [addresses, status] of [
    ['ipv4', 200],
    ['ipv4_first', 200],
    ['ipv6_first', 200],
    ['ipv6', 502],
  ])
    assert.equal((await call(await gatewayTo({ speaks, addresses }))).status, status, String(addresses));
});
