/** Files and batches at the demo gateway: a file with mistakes, one without, the batch to its end, its results, deletion. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { after, before, test } from './browser-test.ts';
import { findingsOf, firstLook } from './looks.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let page: Page;
before(async () => {
  stage = await openStage('demo');
  page = await stage.page(firstLook);
  const code = await stage.makeCode('5');
  await page.request.post(`${stage.origin}/console/api/wallet/redeem`, {
    headers: { origin: stage.origin, 'x-console': '1', 'idempotency-key': 'batches' },
    data: { code },
  });
});
after(() => stage?.close());

const line = (customId: string, model = 'gpt-5.4') =>
  JSON.stringify({
    custom_id: customId,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model, max_tokens: 20, messages: [{ role: 'user', content: `Say ${customId}` }] },
  });

const choose = (text: string) =>
  page
    .locator('input[type=file]')
    .setInputFiles({ name: 'requests.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(text) });
const button = (name: string) => page.getByRole('button', { name, exact: true });

test('a batch file with mistakes has its lines named, and no batch starts', async () => {
  await page.goto(`${stage.origin}/console/batches?new=1`);
  await button('Make a key for this session').click();
  await button('Make a key for this session').waitFor({ state: 'hidden' });
  await choose(`${line('one')}\n{"custom_id": 7}\n`);
  await button('Upload and check').click();
  const alert = page.getByRole('alert');
  await alert.getByText('1 mistake', { exact: true }).waitFor();
  assert.match((await alert.textContent())!, /Line 2:/);
  assert.equal(await button('Start the batch').count(), 0);
});

test('a file without mistakes becomes a batch, which ends with its results and its cost; its failed line is made again', async () => {
  await choose(`${line('one')}\n${line('two')}\n${line('three')}\n${line('four', 'no-such-model')}\n`);
  await button('Upload and check').click();
  await page.getByText('4 lines for /v1/chat/completions, without a mistake.', { exact: true }).waitFor();
  await button('Start the batch').click();
  const drawer = page.getByRole('dialog', { name: 'Batch', exact: true });
  await drawer.getByText('Completed', { exact: true }).waitFor();
  await drawer.getByText('4 of 4', { exact: true }).waitFor();
  const id = new URL(page.url()).searchParams.get('open')!;
  const saved = page.waitForEvent('download');
  await drawer.getByRole('link', { name: `Download ${id}_output.jsonl`, exact: true }).click();
  const file = await saved;
  const results = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n');
  assert.deepEqual(results.map((text) => JSON.parse(text).custom_id).sort(), ['one', 'three', 'two']);
  const answer = await page.request.get(`${stage.origin}/console/api/batches/${id}`);
  const { cost } = (await answer.json()) as { cost: string };
  assert.match(cost, /^0\.0*[1-9]/);
  const shown = await drawer.getByText(/^\$0\.0/).textContent();
  assert.ok(cost.startsWith(shown!.slice(1)), `${shown} of ${cost}`);
  await drawer.getByRole('button', { name: 'Make 1 failed line again', exact: true }).click();
  const again = page.getByRole('dialog', { name: 'Make 1 failed line again', exact: true });
  await again.getByText(/a line cost so far, about \$0\.0/).waitFor();
  await again.getByRole('button', { name: 'Upload and check', exact: true }).click();
  await again.getByText('1 line for /v1/chat/completions, without a mistake.', { exact: true }).waitFor();
  await again.getByRole('button', { name: 'Start the batch', exact: true }).click();
  await again.waitFor({ state: 'detached' });
  await drawer.getByText('1 of 1', { exact: true }).waitFor();
  assert.notEqual(new URL(page.url()).searchParams.get('open'), id);
});

test('files are listed with their expiry, and deleted after a confirmation', async () => {
  await page.goto(`${stage.origin}/console/files`);
  const rows = page.getByRole('region', { name: 'Files', exact: true }).getByRole('row', { name: /requests\.jsonl/ });
  await rows.first().waitFor();
  assert.equal(await rows.count(), 2, 'the file of the failed line has a name of its own');
  assert.match((await rows.first().textContent())!, /in \d+ (?:hours|days)/);
  await rows.first().getByRole('button', { name: 'Delete requests.jsonl', exact: true }).click();
  const question = page.getByRole('dialog', { name: 'Delete requests.jsonl?', exact: true });
  await question.getByRole('button', { name: 'Delete', exact: true }).click();
  await question.waitFor({ state: 'detached' });
  await rows.nth(1).waitFor({ state: 'detached' });
  assert.equal(await rows.count(), 1);
});

test('the pages of batches and files are accessible', async () => {
  const findings: string[] = [];
  for (const path of ['/files', '/batches'])
    findings.push(...(await findingsOf(page, `${stage.origin}/console${path}`)));
  assert.deepEqual([...findings, ...stage.complaints], []);
});
