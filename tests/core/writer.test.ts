/** Answers go out byte for byte under their length: what comes next on the connection is never taken for a part of them. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
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

test('a body as long as was said goes out under its length, and the connection lives on', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 3; round++) {
    const { length, told, framing } = await ask('/say/25/send/25', agent);
    assert.deepEqual([length, told, framing], [25, '25', undefined]);
  }
  assert.equal(Object.values(agent.freeSockets).flat().length, 1);
  agent.destroy();
});

test('a whole body goes out byte for byte, whatever its length', async () => {
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

test('HEAD has the length of the body that is not sent', async () => {
  const { length, told } = await ask('/say/25/send/0', undefined, 'HEAD');
  assert.deepEqual([length, told], [0, '25']);
});

test('a body that is shorter or longer than was said breaks the connection', async () => {
  for (const path of ['/say/25/send/24', '/say/25/send/26', '/say/25/send/0', '/say/5/send/26'])
    await assert.rejects(ask(path), /aborted|hang up|ECONNRESET|Parse Error/, path);
});

function ask(path: string, agent?: Agent, method = 'GET') {
  return new Promise<{ length: number; told: string | undefined; framing: string | undefined }>((resolve, reject) => {
    const asking = request(gateway.origin + path, { method, ...(agent === undefined ? {} : { agent }) }, (answer) => {
      let length = 0;
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length;
      });
      answer.on('error', reject);
      answer.on('end', () => {
        const { 'content-length': told, 'transfer-encoding': framing } = answer.headers;
        resolve({ length, told, framing });
      });
    });
    asking.on('error', reject).end();
  });
}
