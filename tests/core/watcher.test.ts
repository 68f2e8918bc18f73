/** A watcher of an answer sees what the client gets, whole or streamed, an error's too, and changes none of it. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

let directory: string;
let gateway: TestGateway;

const source = () => `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { GatewayError } from '${pathToFileURL('core/contract/errors.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
async function* chunks() {
  for (const word of ['one ', '', 'two ', 'three']) yield Buffer.from(word);
}
const answers = {
  text: () => ({ status: 201, headers: { 'content-type': 'text/plain' }, body: 'naïve' }),
  bytes: () => ({ status: 200, headers: {}, body: Buffer.from([0, 255, 13]) }),
  stream: () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: chunks() }),
  error: () => { throw new GatewayError('not_found', 'There is no such thing.'); },
};
const seen = [];
export default definePlugin({
  name: 'watching',
  config: z.strictObject({}),
  setup: () => ({
    endpoints: [
      { method: 'GET', path: '/answer/:kind', operation: 'answer', body: 'none', handle: ({ request }) => answers[request.params.kind]() },
      { method: 'GET', path: '/seen', operation: 'seen', body: 'none', handle: () => ({ status: 200, headers: {}, body: JSON.stringify(seen.pop()) }) },
    ],
    applies: ({ operation }) => operation === 'answer',
    async handle(exchange, next) {
      const saw = { status: 0, type: undefined, parts: '' };
      exchange.watch({
        head(status, headers) { saw.status = status; saw.type = headers['content-type']; },
        chunk(bytes) { saw.parts += Buffer.from(bytes).toString('latin1'); },
      });
      let heard = '';
      exchange.watch({
        head(status) { heard += status + ' '; },
        chunk(bytes) { heard += Buffer.from(bytes).toString('latin1'); },
      });
      exchange.defer(() => void seen.push({ ...saw, heard }));
      return next();
    },
  }),
});`;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'watcher-'));
  await writeFile(join(directory, 'watching.ts'), source());
  gateway = await startGateway('gateway: test\nlisten: 127.0.0.1:0\nplugins: [./watching.ts]\n', { directory });
});
after(async () => {
  await gateway.stop();
  await rm(directory, { recursive: true, force: true });
});

for (const kind of ['text', 'bytes', 'stream', 'error'])
  test(`each of two watchers of an answer with ${kind} gets status, type and every byte`, async () => {
    const answer = await fetch(`${gateway.origin}/answer/${kind}`);
    const body = Buffer.from(await answer.arrayBuffer()).toString('latin1');
    assert.ok(body.length > 0);
    const seen = (await (await fetch(`${gateway.origin}/seen`)).json()) as object;
    const type = answer.headers.get('content-type');
    assert.deepEqual(seen, {
      status: answer.status,
      ...(type === null ? {} : { type }),
      parts: body,
      heard: `${answer.status} ${body}`,
    });
  });
