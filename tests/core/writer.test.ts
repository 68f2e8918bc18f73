/** Answers go out byte for byte under their length: what comes next on the connection is never taken for a part of them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

let directory: string;
let gateway: TestGateway;

/** A plugin whose streamed answers send `sent` bytes and say that they are `said`, and whose whole ones have bytes of all values. */
const source = () => `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
async function* body(sent) {
  for (let left = sent; left > 0; left -= 10) yield Buffer.alloc(Math.min(left, 10), 'x');
}
async function* parts(sizes) {
  for (const [index, size] of sizes.entries()) yield Buffer.alloc(size, 97 + index);
}
const kept = { status: 200, headers: { 'x-own': 'stays' }, body: '{}' };
export default definePlugin({
  name: 'lengths',
  config: z.strictObject({}),
  setup: () => ({
    endpoints: ['GET', 'HEAD'].flatMap((method) => [{
      method, path: '/whole/:bytes', operation: 'wholes', body: 'none',
      handle: ({ request: { params } }) => ({
        status: 200, headers: {}, body: Uint8Array.from({ length: Number(params.bytes) }, (_, index) => index % 256),
      }),
    }, {
      method, path: '/kept', operation: 'kept', body: 'none', handle: () => kept,
    }, {
      method, path: '/kept-headers', operation: 'kept', body: 'none',
      handle: () => ({ status: 200, headers: {}, body: JSON.stringify(kept) }),
    }, {
      method, path: '/parts/:sizes', operation: 'parts', body: 'none',
      handle: ({ request: { params } }) => ({ status: 200, headers: {}, body: parts(params.sizes.split('-').map(Number)) }),
    }, {
      method, path: '/say/:said/send/:sent', operation: 'lengths', body: 'none',
      handle: ({ request: { params } }) => ({
        status: 200, headers: {}, body: body(Number(params.sent)), bodyBytes: Number(params.said),
      }),
    }]),
  }),
});`;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writer-'));
  await writeFile(join(directory, 'lengths.ts'), source());
  gateway = await startGateway('gateway: test\nlisten: 127.0.0.1:0\nplugins: [./lengths.ts]\n', { directory });
});
after(async () => {
  await gateway.stop();
  await rm(directory, { recursive: true, force: true });
});

test('a cached answer gets the ids of each request, and is never modified', async () => {
  const idsOf = ({ headers }: Response) => [headers.get('request-id'), headers.get('x-request-id')];
  const seen = new Set<string | null>();
  for (let round = 0; round < 3; round++) {
    const answer = await fetch(`${gateway.origin}/kept`);
    const [id, same] = idsOf(answer);
    assert.equal(id, same);
    assert.deepEqual([answer.headers.get('x-own'), await answer.text()], ['stays', '{}']);
    seen.add(id!);
  }
  assert.equal(seen.size, 3);
  const left = await fetch(`${gateway.origin}/kept-headers`);
  assert.deepEqual(await left.json(), { status: 200, headers: { 'x-own': 'stays' }, body: '{}' });
});

test('a body of the declared length is sent with that length, and the connection stays open', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 3; round++) {
    const { length, reported, framing } = await send('/say/25/send/25', agent);
    assert.deepEqual([length, reported, framing], [25, '25', undefined]);
  }
  assert.equal(Object.values(agent.freeSockets).flat().length, 1);
  agent.destroy();
});

test('a whole body is sent byte for byte, at any length', async () => {
  for (const bytes of [0, 1, 256, 12 * 1024, 12 * 1024 + 1, 100_000]) {
    const answer = await fetch(`${gateway.origin}/whole/${bytes}`);
    assert.equal(answer.headers.get('content-length'), String(bytes));
    assert.deepEqual(
      await answer.bytes(),
      Uint8Array.from({ length: bytes }, (_, index) => index % 256),
    );
    const { headers } = await fetch(`${gateway.origin}/whole/${bytes}`, { method: 'HEAD' });
    assert.equal(headers.get('content-length'), String(bytes));
  }
});

test('parts of any size are one chunk each, for consecutive readers and for one that waits', async () => {
  const sizes = [1, 8_192, 8_193, 20_000, 0, 3, 300_000, 8_193];
  const wanted = Buffer.concat(sizes.map((size, index) => Buffer.alloc(size, 97 + index)));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const waitMs of [0, 0, 200]) {
    const { framing, body } = await send(`/parts/${sizes.join('-')}`, agent, 'GET', waitMs);
    assert.equal(framing, 'chunked');
    assert.ok(body.equals(wanted));
  }
  assert.equal(Object.values(agent.freeSockets).flat().length, 1);
  agent.destroy();
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  socket.write('GET /parts/1-9000-2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await once(socket, 'close');
  const framed = `1\r\na\r\n2328\r\n${'b'.repeat(9_000)}\r\n2\r\ncc\r\n0\r\n\r\n`;
  assert.equal(received.slice(received.indexOf('\r\n\r\n') + 4), framed);
});

test('HEAD has the length of the body that is not sent', async () => {
  const { length, reported } = await send('/say/25/send/0', undefined, 'HEAD');
  assert.deepEqual([length, reported], [0, '25']);
});

test('a body shorter or longer than declared breaks the connection', async () => {
  for (const path of ['/say/25/send/24', '/say/25/send/26', '/say/25/send/0', '/say/5/send/26'])
    await assert.rejects(send(path), /aborted|hang up|ECONNRESET|Parse Error/, path);
});

interface Requested {
  readonly length: number;
  readonly reported: string | undefined;
  readonly framing: string | undefined;
  readonly body: Buffer;
}

/** Reads the body after `waitMs`. */
function send(path: string, agent?: Agent, method = 'GET', waitMs = 0) {
  return new Promise<Requested>((resolve, reject) => {
    const requesting = request(
      gateway.origin + path,
      { method, ...(agent === undefined ? {} : { agent }) },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('error', reject);
        answer.on('end', () => {
          const { 'content-length': reported, 'transfer-encoding': framing } = answer.headers;
          const body = Buffer.concat(chunks);
          resolve({ length: body.length, reported, framing, body });
        });
        setTimeout(() => answer.on('data', (chunk: Buffer) => chunks.push(chunk)), waitMs);
      },
    );
    requesting.on('error', reject).end();
  });
}
