/** Every page of the operator in light, dark and on a small screen: whole, readable, and fit for all. */
import assert from 'node:assert/strict';
import { after, before, test } from './browser-test.ts';
import { cutColumns, englishNumbers, findingsOf, firstLook, visit } from './looks.ts';
import { type Stage, startStage } from './operator-stage.ts';

let stage: Stage;
let paths: readonly string[];
before(async () => {
  stage = await startStage();
  const { accounts, requests } = stage.testbed.world;
  const names = [
    'overview',
    'monitor',
    'requests',
    'upstreams',
    'alerts',
    'accounts',
    'people',
    'plans',
    'codes',
    'prices',
    'tasks',
    'files',
    'batches',
  ];
  const account = `accounts/${accounts[0]!.id}`;
  paths = [
    ...names,
    ...['money', 'nodes', 'config', 'audit', 'tokens'],
    ...['', '?tab=ledger', '?tab=members', '?tab=keys', '?tab=requests', '?tab=tasks'].map((tab) => account + tab),
    `requests/${requests.at(-3)!.id}`,
    'codes?make=days',
    'prices?quote=yes',
    'prices?open=claude-sonnet-5',
    'money?tab=ledger',
    'files?open=file-questionsjsonl',
    'batches?open=batch_native',
    'batches?open=batch_wrong',
    'config?view=history&version=3',
    'alerts?tab=rules',
    'plans?edit=pro',
  ];
});
after(() => stage?.stop());

// In parts, each far below the time limit of a test.
for (const part of [0, 1, 2])
  test(`every page in German is accessible, no wider than the window, has all columns in sight and its numbers in German (${part + 1} of 3)`, async () => {
    const page = await stage.page('operator', { ...firstLook, locale: 'de' });
    const findings: string[] = [];
    const those = paths.filter((_, index) => index % 3 === part);
    for (const path of those) {
      findings.push(...(await findingsOf(page, `/console/admin/${path}`)));
      findings.push(...(await englishNumbers(page)));
      // What is opened beside a page covers the end of its table. Words are longest in German.
      if (!/[?&](?:open|edit|make|quote)=/.test(path)) findings.push(...(await cutColumns(page)));
    }
    assert.deepEqual(findings, []);
  });

test('pages in Chinese have no missing text', async () => {
  const page = await stage.page('operator', { locale: 'zh-CN' });
  for (const path of [
    'monitor',
    'upstreams',
    'alerts',
    'files',
    'batches?open=batch_native',
    'money',
    'codes',
    'people',
  ]) {
    await visit(page, `/console/admin/${path}`);
    const title = (await page.getByRole('heading', { level: 1 }).textContent())!;
    assert.match(title, /\p{Script=Han}/u, path);
    assert.doesNotMatch((await page.locator('main').textContent())!, /operator\.\w+\./, path);
  }
});

test('the comparison of models without calls says so, and leads to the playground', async () => {
  const page = await stage.page('client');
  await page.route('**/api/models/comparison', (route) => route.fulfill({ json: { rows: [] } }));
  await page.goto('/console/models?compare=1');
  const note = page.getByRole('status').filter({ hasText: 'No model has answered a call' });
  assert.equal(await note.getByRole('link').getAttribute('href'), '/console/playground');
  await page.context().close();
});

test('the browser reports no error', () => {
  assert.deepEqual(stage.complaints, []);
});
