/** Every way to an address that somebody else names, against names that lead outside once and inside ever after. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net, { type AddressInfo, isIP, type LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { GuardedClient } from '../../core/tools/guarded-fetch.ts';
import type { Order } from '../../plugins/common/media/adapters.ts';
import { Incoming } from '../../plugins/files/incoming.ts';
import { defaultFetchOptions, fetchMedia } from '../../plugins/protocol-convert/translate/fetch-media.ts';
import { fetcherOf } from '../../plugins/task-store/engine/reference-bytes.ts';
import { fakeHost } from '../helpers/fakes.ts';

const outside = '93.184.215.14';
const insides = [
  '127.0.0.1',
  '169.254.169.254',
  '::ffff:127.0.0.1',
  '64:ff9b::7f00:1',
  '0.0.0.0',
  'fd00::1',
  '::1',
  '::',
];
const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'), Buffer.alloc(200, 1)]);
const [systemLookup, systemConnect] = [dns.lookup, net.connect];

/** What the names resolve to, one answer after the other, the last one again and again. */
let answers = new Map<string, string[]>();
let requests: string[] = [];
/** Addresses to which connections were made; each ends at the server of this test. */
let connected: string[] = [];
let paths: string[] = [];
let answer: RequestListener;
const server = createServer((request, response) => {
  paths.push(request.url!);
  answer(request, response);
});
const port = () => (server.address() as AddressInfo).port;

const resolver: LookupFunction = (name, options, callback) => {
  requests.push(name);
  const left = answers.get(name)!;
  const address = left.length > 1 ? left.shift()! : left[0]!;
  const family = isIP(address);
  process.nextTick(() =>
    options.all === true ? callback(null, [{ address, family }]) : callback(null, address, family),
  );
};

/** Lets the connection look up its name as it does, notes where that leads, and leads to the server here. */
function connectHere(options: net.TcpNetConnectOpts): net.Socket {
  const { lookup, host } = options;
  if (isIP(host!) !== 0) connected.push(host!);
  return systemConnect({
    ...options,
    host: isIP(host!) === 0 ? host! : '127.0.0.1',
    lookup: (name, wanted, callback) =>
      lookup!(name, wanted, (error, found, family) => {
        if (error !== null) return callback(error, found, family!);
        connected.push(...(typeof found === 'string' ? [found] : found.map(({ address }) => address)));
        callback(null, wanted.all === true ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1', 4);
      }),
  });
}

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  Object.assign(dns, { lookup: resolver });
  Object.assign(net, { connect: connectHere });
  syncBuiltinESMExports();
});
after(() => {
  Object.assign(dns, { lookup: systemLookup });
  Object.assign(net, { connect: systemConnect });
  syncBuiltinESMExports();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  answer = (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png);
});

function begin(found: Readonly<Record<string, string[]>>): void {
  answers = new Map(Object.entries(found));
  requests = [];
  connected = [];
  paths = [];
}

const patience = () => AbortSignal.timeout(5_000);
const never = new AbortController().signal;

async function withClient(work: (client: GuardedClient) => Promise<unknown>): Promise<void> {
  const client = new GuardedClient({ allowPrivate: false, maxBytes: 10_000 });
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

async function incoming(url: string, baseUrl?: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'rebinding-'));
  const guard = { allowPrivate: false, maxBytes: 10_000 };
  const files = new Incoming(directory, { guard, parallel: 1, timeoutMs: 5_000, attempts: 1 }, fakeHost().random);
  await files.open();
  try {
    const vendor =
      baseUrl === undefined ? undefined : { baseUrl, headers: { authorization: 'Bearer vendor' }, network: undefined };
    await files.take({ url, ...(vendor && { vendor }) }, 'image', never);
  } finally {
    await files.close();
    await rm(directory, { recursive: true });
  }
}

interface Place {
  reach(url: string): Promise<unknown>;
  /** What is posted follows no redirect. */
  readonly posts?: true;
}
const prompt = (url: string) => ({
  turns: [{ role: 'user' as const, parts: [{ kind: 'image' as const, source: { form: 'url' as const, url } }] }],
  tools: [],
});
const order = (url: string) => ({ references: [{ field: 'image', source: { url } }] }) as unknown as Order;

const places: Readonly<Record<string, Place>> = {
  'an image of a prompt': { reach: (url) => fetchMedia(prompt(url), ['image'], defaultFetchOptions, never) },
  'a reference of an order': { reach: (url) => withClient((client) => fetcherOf(client)(order(url), never)) },
  'the result of a task': { reach: (url) => incoming(url) },
  'the result of a task at a vendor that is elsewhere': { reach: (url) => incoming(url, 'http://10.1.2.3:9000/v1') },
  'a callback of a task': {
    reach: (url) => withClient((client) => client.post(url, '{}', {}, patience())),
    posts: true,
  },
  'a request of a plugin': {
    reach: (url) =>
      fakeHost()
        .fetch(url)
        .then((got) => got.text()),
  },
  'a text that a plugin posts, such as an alert': {
    reach: (url) => fakeHost().fetch(url, { method: 'POST', body: '{}' }),
    posts: true,
  },
};

for (const [name, { reach, posts }] of Object.entries(places)) {
  test(`${name}: a name that is public and then private is fetched at the checked address, and refused the next time`, async () => {
    for (const inside of insides) {
      begin({ 'rebind.example': [outside, inside] });
      const url = `http://rebind.example:${port()}/a.png`;
      await reach(url);
      assert.deepEqual([requests, connected], [['rebind.example'], [outside]], inside);
      await assert.rejects(reach(url), inside);
      assert.deepEqual([requests.length, connected, paths], [2, [outside], ['/a.png']], inside);
    }
  });

  test(`${name}: a redirect to a private address is not followed`, async () => {
    for (const inside of insides) {
      const literal = isIP(inside) === 6 ? `[${inside}]` : inside;
      for (const host of ['rebind.example', 'other.example', literal]) {
        begin({ 'rebind.example': [outside, inside], 'other.example': [inside] });
        answer = (_request, response) =>
          response.writeHead(307, { location: `http://${host}:${port()}/b.png`, connection: 'close' }).end();
        const reached = reach(`http://rebind.example:${port()}/a.png`);
        if (posts) await reached.catch(() => undefined);
        else await assert.rejects(reached, `${inside} ${host}`);
        assert.deepEqual([connected, paths], [[outside], ['/a.png']], `${inside} ${host}`);
      }
    }
  });
}

test("a result at its vendor's own private origin is fetched, and its redirects are checked as any others", async () => {
  const origin = `http://vendor.internal:${port()}`;
  begin({ 'vendor.internal': ['10.1.2.3'] });
  await incoming(`${origin}/a.png`, `${origin}/v1`);
  assert.deepEqual(connected, ['10.1.2.3']);
  for (const inside of insides) {
    const seen: (string | undefined)[] = [];
    begin({ 'vendor.internal': ['10.1.2.3'], 'other.example': [inside] });
    answer = (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `http://other.example:${port()}/b.png`, connection: 'close' }).end();
    };
    await assert.rejects(incoming(`${origin}/a.png`, `${origin}/v1`));
    assert.deepEqual([connected, seen], [['10.1.2.3'], ['Bearer vendor']], inside);
  }
});
