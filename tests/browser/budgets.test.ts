/** Budgets in a browser: a client sets, raises and ends one of their own; an operator does for an account. */
import assert from 'node:assert/strict';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

test('a client sets a budget from the page of keys, is warned before it is lowered below its spending, adds to it and ends it', async () => {
  const page = await stage.page('client');
  await page.goto('/console/keys');
  await page.getByRole('link', { name: 'Projects', exact: true }).click();
  await page.getByRole('cell', { name: 'The account · Month', exact: true }).waitFor();
  await page.getByRole('button', { name: 'New budget', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('combobox', { name: 'Counts calls of', exact: true }).click();
  await page.getByRole('option', { name: 'A project, or each', exact: true }).click();
  await form.getByRole('combobox', { name: 'Project', exact: true }).click();
  await page.getByRole('option', { name: 'web shop', exact: true }).click();
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('50');
  await form.getByRole('button', { name: 'New budget', exact: true }).click();
  const row = page.getByRole('row').filter({ hasText: 'Project ' });
  await row.getByText('$31.25 / $50.00', { exact: true }).first().waitFor();

  await row.getByRole('button', { name: /^Edit / }).click();
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('30');
  await form.getByText('$31.25 are spent already: calls are refused at once.').waitFor();
  await form.getByRole('button', { name: 'Save', exact: true }).click();
  await row.getByText('$31.25 / $30.00', { exact: true }).first().waitFor();

  await row.getByRole('button', { name: /^Add to / }).click();
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('12.50');
  await form.getByRole('textbox', { name: 'Reason', exact: true }).fill('a release');
  await form.getByRole('button', { name: 'Add', exact: true }).click();
  await row.getByText('$31.25 / $42.50', { exact: true }).first().waitFor();

  await row.getByRole('button', { name: /^End / }).click();
  await form.getByRole('button', { name: 'End', exact: true }).click();
  await row.waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('row').filter({ hasText: 'The account · Month' }).count(), 1);
});

test('a client sets a budget of a tag, which is asked for with its value', async () => {
  const page = await stage.page('client');
  await page.goto('/console/projects');
  await page.getByRole('button', { name: 'New budget', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('combobox', { name: 'Counts calls of', exact: true }).click();
  await page.getByRole('option', { name: 'A tag', exact: true }).click();
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('50');
  await form.getByRole('textbox', { name: 'Tag', exact: true }).fill('env');
  await form.getByRole('button', { name: 'New budget', exact: true }).click();
  await form.getByText('A tag such as env=dev').waitFor();
  await form.getByRole('textbox', { name: 'Tag', exact: true }).fill('env=dev');
  await form.getByRole('button', { name: 'New budget', exact: true }).click();
  await page.getByRole('cell', { name: 'Tag env=dev · Month', exact: true }).waitFor();
});

test('an operator sets a budget of an account with a reason, and reads those of the settings beside it', async () => {
  const page = await stage.page();
  const { id } = stage.testbed.world.accounts[0]!;
  await page.goto(`/console/admin/accounts/${id}?tab=budgets`);
  await page.getByRole('button', { name: 'New budget', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('5');
  await form.getByRole('button', { name: 'New budget', exact: true }).click();
  await form.getByText('Choose one').waitFor();
  await form.getByRole('textbox', { name: 'Reason', exact: true }).fill('a trial');
  await form.getByRole('button', { name: 'New budget', exact: true }).click();
  await page.getByRole('row').filter({ hasText: '/ $5.00' }).getByText('Operator', { exact: true }).waitFor();
  assert.equal(await page.getByRole('row').filter({ hasText: 'Settings' }).count(), 1);
});
