/** What a changed section means while people are signed in. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { operatorOf, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
before(async () => {
  testbed = await startConsole('sign_up: open\nname: Before');
});
after(() => testbed.stop());

test('name and sign-up policy change at once, and sessions continue', async () => {
  const boss = await operatorOf(testbed);
  assert.equal((await boss.send('/info')).json.gateway, 'Before');
  const file = join(testbed.directory, 'gateway.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('name: Before', 'name: After').replace('sign_up: open', 'sign_up: closed'));
  const check = await boss.send('/admin/config/reload', { method: 'POST' });
  assert.deepEqual([check.status, check.json.problems], [200, []], check.text);
  assert.deepEqual(check.json.changes, [{ section: 'console', restart: false }]);
  const info = (await boss.send('/info')).json;
  assert.deepEqual([info.gateway, info.signUp], ['After', 'closed']);
  const who = { email: 'late@example.test', password: 'a password, too late', name: 'Late' };
  const refused = await testbed.browser().send('/auth/sign-up/email', { body: who });
  assert.equal(refused.json.error.code, 'sign_up_not_allowed');
  assert.equal((await boss.send('/me')).json.role, 'operator');
  const actions = (await boss.send('/admin/audit')).json.rows.map(({ action }: { action: string }) => action);
  assert.ok(actions.includes('config.reload'));
});
