/** What the README shows runs as it stands: the first calls with each SDK, and the plugin. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { parseUsd } from '../core/money.ts';
import { accounts, ledger } from '../core/vocabulary.ts';
import { startGateway, type TestGateway } from './helpers/gateway.ts';

const run = promisify(execFile);
const [firstCalls, plugin] = Array.from(
  readFileSync('README.md', 'utf8').matchAll(/```ts\n([\s\S]*?)```/g),
  (block) => block[1]!,
);
const directory = mkdtempSync(join(tmpdir(), 'readme-'));
let gateway: TestGateway;
let accountId: string;
let key: string;

before(async () => {
  // A path beside the file names a plugin; it is written as a module that lives outside of the repository.
  writeFileSync(join(directory, 'who.mts'), plugin!.replaceAll("'../../core/", `'${process.cwd()}/core/`));
  const demo = readFileSync('config/demo.yaml', 'utf8');
  const list = /plugins:\n(?: {2}- .*\n)+/.exec(demo)![0].replace('  - plans\n', '  - ./who.mts\n  - plans\n');
  gateway = await startGateway(`include: config/demo.yaml\n${list}`, { directory });
  const account = await gateway.gateway.find(accounts)!.create('reader', 'free');
  accountId = account.id;
  await gateway.gateway
    .find(ledger)!
    .credit(accountId, parseUsd('5'), { kind: 'top-up', reason: 'test', reference: 'readme' });
  key = (await gateway.gateway.find(accounts)!.createKey(accountId, { name: 'reader' })).key;
});

after(() => gateway.stop());

test('the first calls with each SDK run as they are written', async () => {
  const code = firstCalls!.replaceAll('http://localhost:8080', gateway.origin);
  await run(process.execPath, ['--input-type=module', '--eval', code], { env: { ...process.env, GATEWAY_KEY: key } });
  const rows = gateway.lines
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as { protocol: string; status: number });
  assert.deepEqual(
    rows.map(({ protocol, status }) => [protocol, status]),
    [
      ['responses', 200],
      ['messages', 200],
      ['gemini', 200],
    ],
  );
});

test('the plugin works where it is listed', async () => {
  const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('x-account'), accountId);
});
