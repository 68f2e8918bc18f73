/** Liveness and readiness by what the parts say: only what a restart mends fails the first. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

let directory: string;
let gateway: TestGateway;

/** A plugin that says of itself what `POST /say` has set. */
const source = () => `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
let said = {};
export default definePlugin({
  name: 'moody',
  config: z.strictObject({}),
  setup: () => ({
    health: {
      alive: () => said.alive ?? true,
      ready: () => said.ready ?? true,
      stores: () => said.stores ?? {},
      refuses: () => said.refuses ?? {},
    },
    endpoints: [{
      method: 'POST', path: '/say', operation: 'moody', body: 'whole',
      handle: async (exchange) => {
        said = JSON.parse(Buffer.from(exchange.request.body).toString());
        return { status: 204, headers: {}, body: '' };
      },
    }],
  }),
});`;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'health-'));
  await writeFile(join(directory, 'moody.ts'), source());
  gateway = await startGateway('gateway: test\nlisten: 127.0.0.1:0\nplugins: [./moody.ts]\n', { directory });
});
after(async () => {
  await gateway.stop();
  await rm(directory, { recursive: true, force: true });
});

const report = async (path: string) => {
  const answer = await fetch(gateway.origin + path);
  return { status: answer.status, said: await answer.json() };
};
const say = async (words: object) => {
  const answer = await fetch(`${gateway.origin}/say`, { method: 'POST', body: JSON.stringify(words) });
  assert.equal(answer.status, 204, await answer.text());
};

test('a plugin that cannot serve for a while fails readiness, and not liveness', async () => {
  await say({ ready: false });
  assert.deepEqual(await report('/readyz'), { status: 503, said: { status: 'not ready', waiting: ['moody'] } });
  assert.deepEqual(await report('/healthz'), { status: 200, said: { status: 'alive' } });
});

test('a plugin that needs a restart to serve fails liveness, by name', async () => {
  await say({ alive: false });
  assert.deepEqual(await report('/healthz'), { status: 503, said: { status: 'must be restarted', ended: ['moody'] } });
  await say({});
  assert.equal((await report('/healthz')).status, 200);
});

test('readiness lists the stores, and does not fail when one is away', async () => {
  await say({ stores: { shelf: 'ok', drawer: 'away' } });
  const stores = { shelf: 'ok', drawer: 'away' };
  assert.deepEqual(await report('/readyz'), { status: 200, said: { status: 'ready', stores } });
  await say({ ready: false, stores });
  assert.deepEqual(await report('/readyz'), { status: 503, said: { status: 'not ready', waiting: ['moody'], stores } });
});

test('readiness lists current refusals with their end, and does not fail by them', async () => {
  const refuses = { money_in: 'until an operator has looked' };
  await say({ refuses });
  assert.deepEqual(await report('/readyz'), { status: 200, said: { status: 'ready', refuses } });
  await say({ refuses, ready: false, stores: { shelf: 'away' } });
  const said = { status: 'not ready', waiting: ['moody'], refuses, stores: { shelf: 'away' } };
  assert.deepEqual(await report('/readyz'), { status: 503, said });
});
