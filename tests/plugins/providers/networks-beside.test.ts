/** Ways to vendors for what is no chat call: images, videos, polls, downloads of results, and the token requests of credentials. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { secret } from '../../../core/contract/secret.ts';
import { GuardedClient, Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import {
  answer,
  certificates,
  type StandIn,
  startHttpProxy,
  startSocksProxy,
  startVendor,
} from '../../helpers/network-stand-ins.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { clientOf, ended, mp4, png } from '../task-store/clients.ts';

const running: { close?(): Promise<void>; stop?(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of running.splice(0).toReversed()) await (one.stop ?? one.close!).call(one);
});

function kept<T extends StandIn | TestGateway>(one: T): T {
  running.push(one as never);
  return one;
}

const { cert, key: certKey } = certificates.client;
const tls = { ca: certificates.ca, cert, key: certKey };

const proxies = {
  http: { start: (rules: object) => startHttpProxy(rules), scheme: 'http' },
  https: { start: (rules: object) => startHttpProxy(rules, true), scheme: 'https' },
  socks5: { start: startSocksProxy, scheme: 'socks5' },
} as const;

/** What the studio answers: films are at two origins in turn, its own and another. */
function studio(origins: readonly string[]): (path: string) => string | Buffer {
  let films = 0;
  return (path) => {
    if (path.endsWith('.mp4')) return mp4;
    if (path.endsWith('/images/generations'))
      return JSON.stringify({ created: 1, data: [{ b64_json: png.toString('base64') }] });
    if (path.endsWith('/videos/generations')) return JSON.stringify({ request_id: 'v1' });
    const url = `${origins[films++ % origins.length]}/film.mp4`;
    return JSON.stringify({ status: 'done', video: { url, duration: 3 }, model: 'm' });
  };
}

async function studioGateway(provider: object): Promise<TestGateway> {
  const entry = JSON.stringify({ keys: 'sk-1', timeouts: { connect: '2s' }, ...provider });
  const target = JSON.stringify({ provider: 'vendor', model: 'm', headers: { 'X-Project': 'target' } });
  return kept(
    await startGateway(`gateway: test
listen: 127.0.0.1:0
plugins: [storage, auth, plans, providers, models, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers: { vendor: ${entry} }
models:
  film: { owned_by: us, kind: video, price: { second: 0.01 }, targets: [${target}] }
  paint: { owned_by: us, kind: image, price: { image: 0.01 }, targets: [${target}] }
task-store: { poll: { first: 20ms, longest: 20ms }, retry: { first: 20ms, longest: 20ms } }
`),
  );
}

const film = { model: 'film', content: [{ type: 'text', text: 'waves' }], duration: 3 };
const orders = '/v1/contents/generations/tasks';

for (const [kind, { start, scheme }] of Object.entries(proxies)) {
  test(`orders, polls and downloads go through a proxy (${kind}), with certificates and headers`, async () => {
    const origins = ['https://vendor.test', 'https://vendor.test:9443'];
    const vendor = kept(await startVendor('demanding', undefined, undefined, studio(origins)));
    const proxy = kept(await start({ to: vendor.port, credentials: 'us:word' }));
    const gateway = await studioGateway({
      speaks: { 'xai-videos': 'https://vendor.test/v1?team=a', 'openai-images': 'https://vendor.test/{model}/v1' },
      proxy: `${scheme}://us:word@127.0.0.1:${proxy.port}`,
      headers: { 'X-Project': 'provider', 'X-Team': 'ours' },
      tls,
    });
    const alice = await clientOf(gateway, 'alice');
    for (const _round of origins) {
      const { json } = await alice.send('POST', orders, film);
      assert.equal((await ended(alice, `${orders}/${json.id}`)).status, 'succeeded');
    }
    const painted = await alice.send('POST', '/v1/images/generations', {
      ...{ model: 'paint', prompt: 'a cat', response_format: 'b64_json' },
    });
    assert.equal(painted.status, 200, JSON.stringify(painted.json));
    const ways = ['/v1/videos/generations?team=a', '/v1/videos/v1?team=a', '/film.mp4'];
    assert.deepEqual(
      vendor.calls.map(({ path }) => path),
      [...ways, ...ways, '/m/v1/images/generations'],
    );
    const calls = Array.from({ length: 7 }, (_, index) => (index === 5 ? 'vendor.test:9443' : 'vendor.test:443'));
    assert.deepEqual(proxy.requested, calls);
    for (const [index, { headers, client, remotePort }] of vendor.calls.entries()) {
      assert.ok(proxy.ports.has(remotePort!), 'nothing goes past the proxy');
      assert.equal(client, 'client.test');
      assert.equal(headers['authorization'], index % 3 === 2 ? undefined : 'Bearer sk-1');
      const own = index === 5 ? [undefined, undefined] : ['target', 'ours'];
      assert.deepEqual([headers['x-project'], headers['x-team']], own, 'no header reaches another origin');
    }
  });
}

test('where the proxy of a key refuses, nothing was sent, and the next key with its own proxy makes the video once', async () => {
  const vendor = kept(await startVendor('tls', undefined, undefined, studio(['https://vendor.test'])));
  const [bad, good] = [await startHttpProxy({ fault: 'refuse' }), await startHttpProxy({ to: vendor.port })].map(kept);
  const key = (name: string, { port }: StandIn) => ({ key: name, proxy: `http://127.0.0.1:${port}` });
  const gateway = await studioGateway({
    speaks: { 'xai-videos': 'https://vendor.test/v1' },
    keys: [key('sk-1', bad!), key('sk-2', good!)],
    tls: { ca: certificates.ca },
  });
  const alice = await clientOf(gateway, 'alice');
  const before = await alice.balance();
  const { json } = await alice.send('POST', orders, film);
  assert.equal((await ended(alice, `${orders}/${json.id}`)).status, 'succeeded');
  const sent = vendor.calls.filter(({ path }) => path.endsWith('/generations'));
  assert.deepEqual(
    sent.map(({ headers }) => headers['authorization']),
    ['Bearer sk-2'],
  );
  assert.ok(bad!.requested.length >= 1);
  await alice.hasPaid(before, 30_000_000n);
});

test('images are fetched over IPv4 unless the provider has only IPv6', async () => {
  const vendor = kept(await startVendor('plain', undefined, undefined, studio([])));
  const origin = `http://localhost:${vendor.port}`;
  const speaks = { 'openai-images': `${origin}/v1` };
  for (const [addresses, status] of [
    ['ipv6_first', 200],
    ['ipv6', 503],
  ] as const) {
    const alice = await clientOf(await studioGateway({ speaks, addresses }), 'alice');
    const wanted = { model: 'paint', prompt: 'a cat', response_format: 'b64_json' };
    const painted = await alice.send('POST', '/v1/images/generations', wanted);
    assert.equal(painted.status, status, JSON.stringify(painted.json));
  }
});

test('through a proxy, no name is resolved here, and private addresses are refused as everywhere', async () => {
  const vendor = kept(await startVendor('plain', undefined, undefined, () => png));
  const proxy = kept(await startHttpProxy({ to: vendor.port }));
  const looked: string[] = [];
  const client = new GuardedClient({
    allowPrivate: false,
    maxBytes: 1_000,
    lookup: (name) => {
      looked.push(name);
    },
  });
  try {
    const network = { name: 'one', proxy: secret(`http://127.0.0.1:${proxy.port}`) };
    const open = (address: string) => client.open(address, AbortSignal.timeout(5_000), { network });
    const opened = await open('http://cdn.test/a.png');
    for await (const chunk of opened.body) assert.deepEqual(chunk, png);
    for (const address of ['http://10.0.0.1/a.png', 'http://[::1]/a.png', 'http://cdn.test:22/a.png'])
      await assert.rejects(open(address), Unfetchable);
    assert.deepEqual([looked, proxy.requested], [[], ['cdn.test:80']]);
  } finally {
    await client.close();
  }
});

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const account = {
  ...{ type: 'service_account', client_email: 'us@project.example', private_key: privateKey },
  token_uri: 'https://vendor.test:8443/token',
};
const token = JSON.stringify({ access_token: 'the-token', expires_in: 3_600 });
const role = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;

const schemes = {
  google: { provider: { auth: { scheme: 'google' }, keys: JSON.stringify(account) }, path: '/token', given: token },
  azure: {
    provider: {
      auth: { scheme: 'azure', entra: { tenant: 'tenant', client_id: 'us', authority: 'https://vendor.test:8443' } },
      keys: 'the-secret',
    },
    path: '/tenant/oauth2/v2.0/token',
    given: token,
  },
  aws: { provider: { auth: { scheme: 'aws', service: 'bedrock', region: 'eu-west-1' } }, path: '/', given: role },
} as const;

for (const [scheme, { provider, path, given }] of Object.entries(schemes)) {
  test(`the token requests of ${scheme} use the network of the calls`, async (context) => {
    const ways = (requested: string) => (requested === path ? given : answer);
    const vendor = kept(await startVendor('demanding', undefined, undefined, ways));
    const proxy = kept(await startSocksProxy({ to: vendor.port, credentials: 'us:word' }));
    if (scheme === 'aws') webIdentity(context);
    const network = { tls, proxy: `socks5://us:word@127.0.0.1:${proxy.port}` };
    const entry = { ...provider, ...network, speaks: { chat: 'https://vendor.test/v1' } };
    const gateway = kept(
      await startGateway(`gateway: test
listen: 127.0.0.1:0
plugins: [${scheme}, providers, models, route, protocol-convert]
providers: { vendor: ${JSON.stringify(entry)} }
models: { m: { owned_by: us, price: free, targets: [vendor] } }
`),
    );
    const called = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    assert.equal(called.status, 200, `${await called.text()} ${gateway.lines.join('\n')}`);
    assert.deepEqual(proxy.requested, ['vendor.test:8443', 'vendor.test:443']);
    const [requested, sent] = vendor.calls;
    assert.deepEqual([requested!.path, requested!.client, sent!.client], [path, 'client.test', 'client.test']);
    assert.match(sent!.headers['authorization']!, scheme === 'aws' ? /Credential=ASIAROLE\// : /^Bearer the-token$/);
  });
}

/** The environment of a workload with a web identity, such as a pod. */
function webIdentity(context: { after(work: () => void): void }): void {
  const file = join(temporaryDirectory('identity-'), 'token');
  writeFileSync(file, 'subject-token');
  const values = {
    ...{ AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/gateway' },
    ...{ AWS_REGION: 'eu-west-1', AWS_ENDPOINT_URL_STS: 'https://vendor.test:8443', AWS_EC2_METADATA_DISABLED: 'true' },
    ...{ AWS_CONFIG_FILE: '/nowhere', AWS_SHARED_CREDENTIALS_FILE: '/nowhere' },
  };
  const earlier = Object.keys(values).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, values);
  context.after(() => {
    for (const [name, value] of earlier)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
}
