/** The guarded client against name servers that change their answers: it connects to the address that it has checked. */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { GuardedClient, type GuardOptions, Unfetchable } from '../../core/tools/guarded-fetch.ts';
import { until } from '../helpers/until.ts';

/** The one address that counts as public here; the other one is inside. */
const publicAddress = '127.0.0.1';
const privateAddress = '127.0.0.2';

/** A name server that answers each question with the next of these lists, the last one again and again. */
let answers: string[][] = [];
let requestCount = 0;
let nameServer: Socket;
let outside: Server;
let inside: Server;
let seenInside = 0;
let seenOutside = 0;
let answerOutside: RequestListener;

before(async () => {
  nameServer = createSocket('udp4');
  nameServer.on('message', (question, from) => {
    const addresses = answers[Math.min(requestCount++, answers.length - 1)]!;
    nameServer.send(replyTo(question, addresses), from.port, from.address);
  });
  nameServer.bind(0, publicAddress);
  await once(nameServer, 'listening');
  outside = createServer((request, response) => {
    seenOutside++;
    answerOutside(request, response);
  });
  await once(outside.listen(0, publicAddress), 'listening');
  inside = createServer((_request, response) => {
    seenInside++;
    response.end('secrets of the inside');
  });
  // The same port: only the address tells the two apart.
  await once(inside.listen((outside.address() as AddressInfo).port, privateAddress), 'listening');
});

after(() => {
  nameServer.close();
  for (const server of [outside, inside]) {
    server.closeAllConnections();
    server.close();
  }
});

beforeEach(() => {
  requestCount = 0;
  seenInside = 0;
  seenOutside = 0;
  answerOutside = (_request, response) => response.end('for all');
});

/** One question, answered with A records that live for no time at all. */
function replyTo(question: Buffer, addresses: readonly string[]): Buffer {
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  let end = 12;
  while (question[end] !== 0) end += question[end]! + 1;
  const name = question.subarray(12, end + 5);
  const records = addresses.map((address) =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  );
  return Buffer.concat([head, name, ...records]);
}

function lookupFrom(server: Socket): LookupFunction {
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`${publicAddress}:${(server.address() as AddressInfo).port}`]);
  return (hostname, options, callback) => {
    resolver.resolve4(hostname, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const found = addresses.map((address) => ({ address, family: 4 }));
      if (options.all === true) callback(null, found);
      else callback(null, found[0]!.address, 4);
    });
  };
}

async function withClient(
  work: (client: GuardedClient, url: string) => Promise<void>,
  more: Partial<GuardOptions> = {},
): Promise<void> {
  const options: GuardOptions = {
    allowPrivate: false,
    maxBytes: 1_000,
    lookup: lookupFrom(nameServer),
    isPublic: (address) => address === publicAddress,
    ...more,
  };
  const client = new GuardedClient(options);
  try {
    await work(client, `http://rebind.example:${(outside.address() as AddressInfo).port}/`);
  } finally {
    await client.close();
  }
}

const patience = () => AbortSignal.timeout(5_000);
const isRefusal = (error: Error) => error instanceof Unfetchable && /not a public address/.test(error.message);

test('a name that is public when checked and private afterwards is fetched at the checked address', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress], [privateAddress]];
    assert.equal((await client.get(url, patience())).bytes.toString(), 'for all');
    assert.deepEqual([requestCount, seenOutside, seenInside], [1, 1, 0]);
  }));

test('the next fetch resolves the name again and is refused without a connection', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress], [privateAddress]];
    await client.get(url, patience());
    await assert.rejects(client.get(url, patience()), isRefusal);
    assert.deepEqual([seenOutside, seenInside], [1, 0]);
  }));

test('a name with one private address among others is refused, at any position', () =>
  withClient(async (client, url) => {
    for (const list of [
      [publicAddress, privateAddress],
      [privateAddress, publicAddress],
    ]) {
      answers = [list];
      requestCount = 0;
      await assert.rejects(client.get(url, patience()), isRefusal);
    }
    assert.deepEqual([seenOutside, seenInside], [0, 0]);
  }));

test('concurrent fetches of a name with alternating answers never reach a private address', () =>
  withClient(async (client, url) => {
    answers = Array.from({ length: 200 }, (_, index) => [index % 2 === 0 ? publicAddress : privateAddress]);
    const ends = await Promise.allSettled(Array.from({ length: 60 }, () => client.get(url, patience())));
    const fetched = ends.filter(({ status }) => status === 'fulfilled').length;
    assert.ok(fetched > 0 && fetched < 60, `${fetched} fetched`);
    for (const end of ends) if (end.status === 'rejected') assert.ok(isRefusal(end.reason), String(end.reason));
    assert.equal(seenInside, 0);
  }));

test('a redirect to the same name is resolved again, and refused when the name is private now', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress], [privateAddress]];
    answerOutside = (_request, response) => {
      response.writeHead(302, { location: `${url}again`, connection: 'close' }).end();
    };
    await assert.rejects(client.get(url, patience()), isRefusal);
    assert.deepEqual([seenOutside, seenInside], [1, 0]);
  }));

test('a request with a body goes to the checked address too', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress], [privateAddress]];
    assert.equal(await client.post(url, 'hello', {}, patience()), 200);
    await assert.rejects(client.post(url, 'hello', {}, patience()), isRefusal);
    assert.deepEqual([seenOutside, seenInside], [1, 0]);
  }));

const request = (more: object = {}) => ({ signal: patience(), maxBytes: 1_000, ...more });
const directly = () => undefined;

test('a request of a plugin goes where its name was checked, and each one and each redirect is checked again', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress], [privateAddress]];
    const sent = await client.fetch(url, request({ method: 'POST', body: 'hello' }), directly);
    assert.equal(await sent.text(), 'for all');
    await assert.rejects(client.fetch(url, request(), directly), isRefusal);
    requestCount = 0;
    answerOutside = (_request, response) => {
      response.writeHead(302, { location: `${url}again`, connection: 'close' }).end();
    };
    await assert.rejects(client.fetch(url, request(), directly), isRefusal);
    assert.deepEqual([seenOutside, seenInside], [2, 0]);
  }));

test('a redirect to another origin gets none of the headers of the request', () =>
  withClient(async (client, url) => {
    answers = [[publicAddress]];
    const seen: (string | undefined)[] = [];
    answerOutside = ({ headers, url: path }, response) => {
      seen.push(headers.authorization);
      const next = { '/': '/same', '/same': url.replace('rebind', 'other') + 'end' }[path!];
      if (next === undefined) response.end('there');
      else response.writeHead(302, { location: next }).end();
    };
    const answer = await client.fetch(url, request({ headers: { authorization: 'Bearer a' } }), directly);
    assert.equal(await answer.text(), 'there');
    assert.deepEqual(seen, ['Bearer a', 'Bearer a', undefined]);
  }));

for (const address of [
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[::ffff:169.254.169.254]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://0.0.0.0/',
  'http://0/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://169.254.169.254/latest/meta-data/',
  'http://[fd00:ec2::254]/',
  'http://localhost/',
]) {
  test(`a private address is refused in any spelling: ${address}`, async () => {
    const client = new GuardedClient({ allowPrivate: false, maxBytes: 1_000 });
    try {
      await assert.rejects(client.get(address, patience()), isRefusal);
    } finally {
      await client.close();
    }
  });
}

for (const address of ['http://127.0.0.1:80\\@example.com/', 'http://example.com@127.0.0.1/', 'file:///etc/passwd']) {
  test(`an address that two parsers could read differently is refused: ${address}`, async () => {
    const client = new GuardedClient({ allowPrivate: false, maxBytes: 1_000 });
    try {
      await assert.rejects(client.get(address, patience()), Unfetchable);
    } finally {
      await client.close();
    }
  });
}

test('a server that is silent for longer than a file may take is waited for by a request of the gateway, until its signal ends', () =>
  withClient(
    async (client, url) => {
      answers = [[publicAddress]];
      const held: ServerResponse[] = [];
      answerOutside = (_request, response) => void held.push(response);
      const waiting = request({ signal: AbortSignal.timeout(60_000) });
      const asked = client.fetch(url, waiting, directly);
      await until('the request', () => held.length === 1);
      // It begins later, and is given up first.
      await assert.rejects(client.get(url, patience()), { name: 'HeadersTimeoutError' });
      held[0]!.write('at ');
      const answer = await asked;
      await assert.rejects(client.get(url, patience()), { name: 'HeadersTimeoutError' });
      held[0]!.end('last');
      assert.equal(await answer.text(), 'at last');
      const gone = new AbortController();
      const left = client.fetch(url, { ...waiting, signal: gone.signal }, directly);
      await until('the request', () => held.length === 4);
      gone.abort();
      await assert.rejects(left, { name: 'AbortError' });
    },
    { silenceMs: 50 },
  ));
