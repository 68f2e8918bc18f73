/** Files and batches of all accounts, as an operator looks through them, deletes and cancels; an auditor only looks. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { batchAdmin } from '../../plugins/common/domain/admin/batches.ts';
import { fileAdmin } from '../../plugins/common/domain/admin/files.ts';
import { until } from '../helpers/until.ts';
import { after, before, test } from './browser-test.ts';
import { type Stage, startStage } from './operator-stage.ts';

let stage: Stage;
let other: { readonly id: string; readonly name: string };
before(async () => {
  stage = await startStage();
  other = stage.testbed.world.accounts[1]!;
});
after(() => stage?.stop());

const auditRows = async (page: Page, subject: string) => {
  const answer = await page.request.get(`/console/api/admin/audit?subject=${subject}`);
  const { rows } = (await answer.json()) as { rows: { action: string; reason: string; result: string }[] };
  return rows.map(({ action, reason, result }) => [action, reason, result]);
};
/** Polls, because the page shows the previous rows until the answer arrives. */
const waitForRows = (page: Page, count: number) =>
  until(`${count} rows`, async () => (await page.getByRole('table').getByRole('row').count()) === count);
const choose = async (page: Page, filter: string, option: string) => {
  await page.getByRole('combobox', { name: filter, exact: true }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
};

test("files of all accounts are paged, and filtered by purpose and by a person's account", async () => {
  const page = await stage.page();
  await page.goto('/console/admin/files');
  await page.getByRole('row', { name: /questions\.jsonl/ }).waitFor();
  await waitForRows(page, 26);
  await page.getByRole('button', { name: 'Next', exact: true }).click();
  await page.getByRole('row', { name: /a-report-with-quite/ }).waitFor();
  await waitForRows(page, 33 - 25 + 1);
  await choose(page, 'Any purpose', 'batch_output');
  await page.getByRole('row', { name: /batch_7d1c_output\.jsonl/ }).waitFor();
  await waitForRows(page, 2);
  await page.goto('/console/admin/files?purpose=user_data');
  await page.getByRole('combobox', { name: 'Account', exact: true }).fill('client@exa');
  await page.getByRole('option', { name: /^Ada Client · / }).click();
  await page.waitForURL(/accountId=/);
  await page.getByRole('row', { name: /a-report-with-quite/ }).waitFor();
  await page.goto(`/console/admin/files?purpose=user_data&accountId=${other.id}`);
  await page.getByText('No file fits these filters').waitFor();
});

test('a file is deleted with a reason, and links to it show that it is gone', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/files');
  const row = page.getByRole('row', { name: /nightly-1\.jsonl/ });
  await row.getByRole('button').first().click();
  const drawer = page.getByRole('dialog', { name: 'File', exact: true });
  await drawer.getByText('All files of the account').waitFor();
  await drawer.getByRole('button', { name: 'Delete file', exact: true }).click();
  const question = page.getByRole('dialog', { name: 'Delete nightly-1.jsonl?', exact: true });
  await question.getByRole('button', { name: 'Delete file', exact: true }).click();
  await question.getByText('Write a reason: others will ask for it later.').waitFor();
  assert.notEqual(await stage.testbed.find(fileAdmin)!.find('file-nightly1jsonl'), undefined);
  await question.getByRole('textbox', { name: 'Why?', exact: true }).fill('personal data');
  await question.getByRole('button', { name: 'Delete file', exact: true }).click();
  await page.getByText('The file is deleted.').waitFor();
  await row.waitFor({ state: 'detached' });
  await drawer.waitFor({ state: 'detached' });
  assert.equal(await stage.testbed.find(fileAdmin)!.find('file-nightly1jsonl'), undefined);
  assert.deepEqual(await auditRows(page, 'file-nightly1jsonl'), [['file.delete', 'personal data', 'done']]);
  await page.goto('/console/admin/files?open=file-nightly1jsonl');
  await page.getByText('There is no such file any more.').waitFor();
});

test('batches are filtered by state and endpoint, and a batch shows its progress at the vendor', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/batches');
  await choose(page, 'Any state', 'Expired');
  await page.waitForURL(/state=expired/);
  await page.getByRole('row', { name: /120|Expired/ }).waitFor();
  await waitForRows(page, 2);
  await page.goto('/console/admin/batches');
  await choose(page, 'Any endpoint', '/v1/embeddings');
  await page.waitForURL(/endpoint=/);
  await page
    .getByRole('row', { name: /completed/i })
    .first()
    .waitFor();
  await waitForRows(page, 8);
  await page.goto('/console/admin/batches?state=running');
  await page.getByRole('row', { name: /openai/ }).click();
  const drawer = page.getByRole('dialog', { name: 'Batch', exact: true });
  await drawer.getByText('The vendor works on it').waitFor();
  await drawer.getByText('gpt-5.4-mini as gpt-5.4-mini-2026-03-17').waitFor();
  await drawer.getByText('100 of 24,100').waitFor();
  const held = drawer.getByText('Set aside for lines at the vendor');
  assert.equal(await held.locator('xpath=following-sibling::dd[1]').textContent(), '$38.40');
  await drawer.getByRole('link', { name: /jsonl$/ }).click();
  await page.waitForURL(/admin\/files\?open=file-questionsjsonl/);
  await page.getByRole('dialog', { name: 'File', exact: true }).getByText('questions.jsonl', { exact: true }).waitFor();
});

test('an operator cancels a batch with a reason, and an auditor has no button for it', async () => {
  const page = await stage.page();
  const watching = await stage.page('auditor');
  await watching.goto('/console/admin/batches?open=batch_running');
  const seen = watching.getByRole('dialog', { name: 'Batch', exact: true });
  await seen.getByText('433 of 1,200').waitFor();
  assert.equal(await seen.getByRole('button', { name: 'Cancel batch', exact: true }).count(), 0);
  await page.goto('/console/admin/batches?open=batch_running');
  const drawer = page.getByRole('dialog', { name: 'Batch', exact: true });
  await drawer.getByRole('button', { name: 'Cancel batch', exact: true }).click();
  const question = page.getByRole('dialog', { name: /^Cancel batch/ });
  await question.getByRole('textbox', { name: 'Why?', exact: true }).fill('too costly');
  await question.getByRole('button', { name: 'Cancel batch', exact: true }).click();
  await drawer.getByText('Being cancelled', { exact: true }).first().waitFor();
  assert.equal(await drawer.getByRole('button', { name: 'Cancel batch', exact: true }).count(), 0);
  const timeline = await stage.testbed.find(batchAdmin)!.findAny('batch_running');
  assert.notEqual(timeline!.batch.cancelAt, undefined);
  assert.deepEqual(await auditRows(page, 'batch_running'), [['batch.cancel', 'too costly', 'done']]);
});

test('the browser reports no error', () => {
  // The address of a file that is gone was opened on purpose.
  assert.deepEqual(
    stage.complaints.filter((text) => !/status of 404/.test(text)),
    [],
  );
});
