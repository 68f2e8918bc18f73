/** Media by URL: fetched, judged by content, and never from the inside. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type LookupFunction } from 'node:net';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { isPublicAddress } from '../../../core/tools/public-address.ts';
import type { MediaPart, Part, Prompt } from '../../../plugins/common/canonical/prompt.ts';
import {
  defaultFetchOptions,
  type FetchOptions,
  fetchMedia,
} from '../../../plugins/protocol-convert/translate/fetch-media.ts';

const png = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR and more', 'latin1');
const open: FetchOptions = { ...defaultFetchOptions, allowPrivate: true, timeoutMs: 5_000 };
const never = new AbortController().signal;

const image = (url: string): MediaPart => ({ kind: 'image', source: { form: 'url', url } });
const promptOf = (...parts: Part[]): Prompt => ({ turns: [{ role: 'user', parts }], tools: [] });

async function withServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  work: (origin: string, seen: IncomingMessage[]) => Promise<void>,
): Promise<void> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  }
}

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => assert.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal(error.kind, 'invalid_request');
  return error;
}

test('pitfall 192: images by URL become bytes of the type that their content tells, also in tool results', () =>
  withServer(
    (_request, response) => response.writeHead(200, { 'content-type': 'image/jpeg' }).end(png),
    async (origin, seen) => {
      const inside: Part = {
        kind: 'tool-result',
        callId: 'c',
        parts: [{ kind: 'text', text: 't' }, image(`${origin}/a`)],
      };
      const other: Part = { kind: 'document', source: { form: 'url', url: `${origin}/doc` } };
      const prompt = promptOf({ ...image(`${origin}/a`), detail: 'low' }, inside, other, image(`${origin}/b?x=1`));
      const fetched = await fetchMedia(prompt, ['image'], open, never);
      const source = { form: 'bytes', mediaType: 'image/png', base64: png.toString('base64') };
      assert.deepEqual(fetched.turns[0]!.parts, [
        { kind: 'image', source, detail: 'low' },
        {
          ...inside,
          parts: [
            { kind: 'text', text: 't' },
            { kind: 'image', source },
          ],
        },
        other,
        { kind: 'image', source },
      ]);
      assert.deepEqual(seen.map(({ url }) => url).sort(), ['/a', '/b?x=1']);
      assert.deepEqual(Object.keys(seen[0]!.headers).sort(), [
        'accept',
        'accept-encoding',
        'connection',
        'host',
        'user-agent',
      ]);
    },
  ));

test('a prompt without such addresses is handed back as it is', async () => {
  const prompt = promptOf({ kind: 'text', text: 'hi' }, { kind: 'image', source: { form: 'file', id: 'f' } });
  assert.equal(await fetchMedia(prompt, ['image'], open, never), prompt);
});

test('a document is called what its server calls it, or what its ending tells', () =>
  withServer(
    (request, response) => {
      const type = request.url === '/sized' ? 'text/csv; charset=utf-8' : 'application/octet-stream';
      response.writeHead(200, { 'content-type': type }).end('a,b');
    },
    async (origin) => {
      const reported: MediaPart = { kind: 'document', source: { form: 'url', url: `${origin}/sized` } };
      const ending: MediaPart = {
        kind: 'document',
        source: { form: 'url', url: `${origin}/a.md`, mediaType: 'text/markdown' },
      };
      const { turns } = await fetchMedia(promptOf(reported, ending), ['document'], open, never);
      assert.deepEqual(
        turns[0]!.parts.map((part) => ((part as MediaPart).source as { mediaType: string }).mediaType),
        ['text/csv', 'text/markdown'],
      );
    },
  ));

test('a page instead of an image is refused', () =>
  withServer(
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    async (origin) => {
      const error = await refusal(fetchMedia(promptOf(image(`${origin}/a.png?token=secret`)), ['image'], open, never));
      assert.match(error.message, /cannot be fetched: it is text\/html, not an image\.$/);
      assert.ok(error.message.includes('/a.png') && !error.message.includes('secret'));
    },
  ));

test('a file that is too large is refused, whether its length is reported or not', () =>
  withServer(
    (request, response) => {
      const body = Buffer.alloc(3 * 2 ** 20, png);
      if (request.url === '/sized') response.writeHead(200, { 'content-length': body.length });
      response.end(body);
    },
    async (origin) => {
      const options = { ...open, maxBytes: 2 ** 20 };
      for (const path of ['/sized', '/unsized']) {
        const error = await refusal(fetchMedia(promptOf(image(origin + path)), ['image'], options, never));
        assert.match(error.message, /larger than 1 MB/);
      }
      const total = { ...open, maxTotalBytes: 4 * 2 ** 20 };
      const error = await refusal(
        fetchMedia(promptOf(image(`${origin}/1`), image(`${origin}/2`)), ['image'], total, never),
      );
      assert.match(error.message, /too large together/);
    },
  ));

test('too many addresses are refused before any is fetched', () =>
  withServer(
    (_request, response) => response.end(png),
    async (origin, seen) => {
      const parts = Array.from({ length: 4 }, (_, index) => image(`${origin}/${index}`));
      await refusal(fetchMedia(promptOf(...parts), ['image'], { ...open, maxFiles: 3 }, never));
      assert.equal(seen.length, 0);
    },
  ));

test('not more than the allowed number is fetched at once', () => {
  let now = 0;
  let most = 0;
  return withServer(
    (_request, response) => {
      most = Math.max(most, ++now);
      setTimeout(() => {
        now -= 1;
        response.end(png);
      }, 20);
    },
    async (origin, seen) => {
      const parts = Array.from({ length: 7 }, (_, index) => image(`${origin}/${index}`));
      await fetchMedia(promptOf(...parts), ['image'], { ...open, parallel: 2 }, never);
      assert.equal(seen.length, 7);
      assert.equal(most, 2);
    },
  );
});

test('three redirects are followed, four are not, and each is checked', () =>
  withServer(
    (request, response) => {
      const [, left = 0] = /^\/(\d)$/.exec(request.url!) ?? [];
      if (request.url === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end();
      else if (request.url === '/inside') response.writeHead(302, { location: 'http://user:word@127.0.0.1/' }).end();
      else if (Number(left) > 0) response.writeHead(307, { location: `/${Number(left) - 1}` }).end('moved');
      else response.end(png);
    },
    async (origin) => {
      await fetchMedia(promptOf(image(`${origin}/3`)), ['image'], open, never);
      const get = (path: string) => refusal(fetchMedia(promptOf(image(origin + path)), ['image'], open, never));
      assert.match((await get('/4')).message, /redirects too often/);
      assert.match((await get('/file')).message, /only http and https/);
      assert.match((await get('/inside')).message, /credentials/);
    },
  ));

test('a server that is silent, breaks off, refuses or is not there gets a general message', () =>
  withServer(
    (request, response) => {
      if (request.url === '/break')
        response.writeHead(200, { 'content-length': 100 }).write('x', () => response.destroy());
      else if (request.url === '/404') response.writeHead(404).end();
      else if (request.url === '/packed') response.writeHead(200, { 'content-encoding': 'gzip' }).end(png);
      else if (request.url === '/empty') response.end();
    },
    async (origin) => {
      const get = (url: string, options = open) => refusal(fetchMedia(promptOf(image(url)), ['image'], options, never));
      assert.match((await get(`${origin}/silent`, { ...open, timeoutMs: 100 })).message, /took too long/);
      assert.match((await get(`${origin}/break`)).message, /could not be reached or broke off/);
      assert.match((await get(`${origin}/404`)).message, /status 404/);
      assert.match((await get(`${origin}/packed`)).message, /packs it/);
      assert.match((await get(`${origin}/empty`)).message, /empty/);
      const gone = await get('http://127.0.0.1:9/x');
      assert.match(gone.message, /could not be reached or broke off\.$/);
    },
  ));

test('when the client leaves, the fetching ends with what it was aborted with', () =>
  withServer(
    () => {},
    async (origin) => {
      const controller = new AbortController();
      const left = new GatewayError('client_left', 'gone');
      const fetching = fetchMedia(promptOf(image(`${origin}/a`)), ['image'], open, controller.signal);
      setTimeout(() => controller.abort(left), 20);
      await assert.rejects(fetching, (error) => error === left);
    },
  ));

test('one bad address ends the fetching of the others', () =>
  withServer(
    (request, response) => void (request.url === '/bad' && response.writeHead(500).end()),
    async (origin) => {
      const prompt = promptOf(image(`${origin}/silent`), image(`${origin}/bad`));
      assert.match((await refusal(fetchMedia(prompt, ['image'], open, never))).message, /\/bad cannot be fetched/);
    },
  ));

// ------------------------------------------------------------------------------------------------------- the guard

test('addresses that are not public, however they are written, are refused without a connection', () =>
  withServer(
    (_request, response) => response.end(png),
    async (origin, seen) => {
      const { port } = new URL(origin);
      const hosts = [
        '127.0.0.1',
        '0x7f.1',
        '2130706433',
        '0177.0.0.1',
        '[::1]',
        '[::ffff:127.0.0.1]',
        '[::127.0.0.1]',
        '0',
      ];
      for (const host of [...hosts, '[64:ff9b::7f00:1]', '[fe80::1]', '169.254.169.254', '10.1.2.3']) {
        const prompt = promptOf(image(`http://${host}:${port}/`));
        const error = await refusal(fetchMedia(prompt, ['image'], defaultFetchOptions, never));
        assert.match(error.message, /not a public address|not a URL/, host);
      }
      assert.equal(seen.length, 0);
    },
  ));

test('a name that leads inside is refused, also when only one of its addresses does', () =>
  withServer(
    (_request, response) => response.end(png),
    async (origin, seen) => {
      const { port } = new URL(origin);
      for (const addresses of [['127.0.0.1'], ['93.184.215.14', '10.0.0.1'], ['::1'], ['::ffff:10.0.0.1'], []]) {
        const lookup = fakeLookup(() => addresses);
        const prompt = promptOf(image(`http://files.example:${port}/`));
        const error = await refusal(fetchMedia(prompt, ['image'], { ...defaultFetchOptions, lookup }, never));
        assert.match(error.message, /its host is not a public address\.$/, addresses.join());
      }
      assert.equal(seen.length, 0);
    },
  ));

/** The guard as it is, but the test's own server counts as public. */
const guarded = { ...defaultFetchOptions, isPublic: (address: string) => address === '127.0.0.1' };

test('a name is resolved once for a connection: a second answer that leads inside is never asked for', () =>
  withServer(
    (_request, response) => response.end(png),
    async (origin, seen) => {
      const answers = [['127.0.0.1'], ['10.0.0.1']];
      let requestCount = 0;
      const lookup = fakeLookup(() => answers[requestCount++]!);
      const url = `http://rebind.example:${new URL(origin).port}/`;
      await fetchMedia(promptOf(image(url)), ['image'], { ...guarded, lookup }, never);
      assert.deepEqual([requestCount, seen.length], [1, 1]);
      const error = await refusal(fetchMedia(promptOf(image(url)), ['image'], { ...guarded, lookup }, never));
      assert.match(error.message, /not a public address/);
      assert.equal(seen.length, 1);
    },
  ));

test('a redirect that leads inside is refused, by name and by address', () =>
  withServer(
    (request, response) => {
      const { port } = new URL(`http://${request.headers.host}`);
      const host = request.url === '/name' ? 'inside.example' : '[::1]';
      response.writeHead(302, { location: `http://${host}:${port}/` }).end();
    },
    async (origin, seen) => {
      const lookup = fakeLookup((name) => [name === 'inside.example' ? '10.0.0.1' : '127.0.0.1']);
      for (const path of ['/name', '/address']) {
        const url = `http://outside.example:${new URL(origin).port}${path}`;
        const error = await refusal(fetchMedia(promptOf(image(url)), ['image'], { ...guarded, lookup }, never));
        assert.match(error.message, /outside\.example:\d+\/\w+ cannot be fetched: its host is not a public address/);
      }
      assert.equal(seen.length, 2);
    },
  ));

test('ports of other services, credentials and other schemes are refused', async () => {
  const cases: [string, RegExp][] = [
    ['http://example.com:25/', /port is not allowed/],
    ['https://user:word@example.com/', /credentials/],
    ['ftp://example.com/a.png', /only http and https/],
    ['file:///etc/passwd', /only http and https/],
    ['gs://bucket/a.png', /only http and https/],
    ['//example.com/a.png', /not a URL/],
    [`https://example.com/${'a'.repeat(9000)}`, /too long/],
  ];
  for (const [url, reason] of cases) {
    const error = await refusal(fetchMedia(promptOf(image(url)), ['image'], defaultFetchOptions, never));
    assert.match(error.message, reason);
    assert.ok(error.message.length < 400 && !error.message.includes('word@'));
  }
});

test('only globally reachable unicast addresses are public', () => {
  const inside = [
    ...[
      '0.0.0.0',
      '10.255.0.1',
      '100.64.0.1',
      '100.127.255.255',
      '127.0.0.1',
      '169.254.1.1',
      '172.16.0.1',
      '172.31.9.9',
    ],
    ...[
      '192.0.0.1',
      '192.168.1.1',
      '198.18.0.1',
      '198.19.255.255',
      '203.0.113.5',
      '224.0.0.1',
      '239.1.1.1',
      '255.255.255.255',
    ],
    ...[
      '::',
      '::1',
      '::ffff:8.8.8.8',
      '::ffff:7f00:1',
      '64:ff9b::808:808',
      '64:ff9b:1::1',
      'fc00::1',
      'fd12::1',
      'fe80::1',
    ],
    ...['fec0::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::', '2001:0:1::', '100::1', 'fe80::1%eth0', 'localhost', ''],
  ];
  const outside = [
    '8.8.8.8',
    '1.1.1.1',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '192.0.1.1',
    '223.1.1.1',
  ];
  for (const address of inside) assert.equal(isPublicAddress(address), false, address);
  for (const address of [...outside, '2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001::1'])
    assert.equal(isPublicAddress(address), true, address);
});

function fakeLookup(resolve: (name: string) => readonly string[]): LookupFunction {
  return (name, options, callback) => {
    const found = resolve(name).map((address) => ({ address, family: isIP(address) }));
    if (options.all === true) callback(null, found);
    else if (found[0] === undefined) callback(new Error('not found'), '', 0);
    else callback(null, found[0].address, found[0].family);
  };
}

test('media that cannot be fetched become a text in earlier turns and tool results, and are refused in the last turn of the user', () =>
  withServer(
    (request, response) =>
      request.url === '/good' ? response.end(png) : response.writeHead(request.url === '/gone' ? 404 : 200).end(),
    async (origin) => {
      const text: Part = { kind: 'text', text: 'Go on.' };
      const [gone, empty, good] = ['gone', 'empty', 'good'].map((path) => image(`${origin}/${path}`));
      const result: Part = { kind: 'tool-result', callId: 'c', parts: [empty!] };
      const turnsOf = (...last: Part[]): Prompt['turns'] => [
        { role: 'user', parts: [gone!, good!] },
        { role: 'assistant', parts: [{ kind: 'tool-call', id: 'c', name: 'look', input: '{}' }] },
        { role: 'user', parts: [result, ...last] },
      ];
      const missing: string[] = [];
      const onMissing = ({ kind, source }: MediaPart) => void missing.push(`${kind} ${JSON.stringify(source)}`);
      const { turns } = await fetchMedia({ turns: turnsOf(text), tools: [] }, ['image'], { ...open, onMissing }, never);
      const unseen = { kind: 'text', text: '(image that cannot be shown)' };
      assert.deepEqual(turns[0]!.parts[0], unseen);
      assert.equal('source' in turns[0]!.parts[1]! && turns[0]!.parts[1].source.form, 'bytes');
      assert.deepEqual(turns[2]!.parts, [{ ...result, parts: [unseen] }, text]);
      assert.equal(missing.length, 2);
      const few = { ...open, maxFiles: 1 };
      const second = await fetchMedia({ turns: turnsOf(good!), tools: [] }, ['image'], few, never);
      assert.equal('source' in second.turns[2]!.parts[1]! && second.turns[2]!.parts[1].source.form, 'bytes');
      for (const last of [gone!, empty!]) {
        const pending = fetchMedia({ turns: turnsOf(last), tools: [] }, ['image'], open, never);
        assert.match((await refusal(pending)).message, /cannot be fetched/);
      }
    },
  ));
