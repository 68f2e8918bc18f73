/** Notes in a gateway with an embedded database: table, command and endpoint, and what its page of the console needs. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { checkGateway, startGateway, type TestGateway } from 'model-gateway/testing';

const options = { from: import.meta.dirname };
let gateway: TestGateway;

before(async () => {
  gateway = await startGateway({ plugins: ['storage', 'console', './index.ts'], notes: { longest: 20 } }, options);
});
after(() => gateway?.stop());

test('the endpoint shows notes that the command wrote', async () => {
  assert.deepEqual(await gateway.run('notes set', { model: 'm', note: 'draft' }), { model: 'm', note: 'draft' });
  await gateway.run('notes set', { model: 'm', note: 'good at lists' });
  const answer = await fetch(`${gateway.origin}/v1/notes`);
  assert.deepEqual(await answer.json(), { data: [{ model: 'm', note: 'good at lists' }] });
});

test('a note that is too long is refused', async () => {
  await assert.rejects(gateway.run('notes set', { model: 'm', note: 'x'.repeat(21) }), /longer than 20 characters/);
});

test("the console serves the plugin's module, and checks access to its rows", async () => {
  const module = await fetch(`${gateway.origin}/console/modules/notes.js`);
  assert.match(module.headers.get('content-type') ?? '', /^text\/javascript/);
  assert.equal(await module.text(), await readFile(new URL('./page.js', import.meta.url), 'utf8'));
  assert.equal((await fetch(`${gateway.origin}/console/api/admin/notes`)).status, 401);
});

test('without a console in the list, one sentence names the missing plugin', async () => {
  const [sentence] = await checkGateway({ plugins: ['storage', './index.ts'] }, options);
  assert.match(sentence ?? '', /"admin pages", which no plugin of the list owns: add .*"console"/);
});
