/** Accounts and their members in a browser: another name, by an owner and by an operator. */
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

test('an owner renames the account on the page of members, and an operator calls it by its new name and gives it another', async () => {
  const page = await stage.page('client');
  await page.goto('/console/members');
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('textbox', { name: 'Name' }).fill('Acme');
  await form.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Acme · Owner', { exact: true }).waitFor();
  const operators = await stage.page('operator');
  await operators.goto(`/console/admin/accounts/${stage.testbed.world.accounts[0]!.id}`);
  await operators.getByRole('heading', { name: 'Acme', level: 1 }).waitFor();
  await operators.getByRole('button', { name: 'More', exact: true }).click();
  await operators.getByRole('menuitem', { name: 'Rename', exact: true }).click();
  const dialog = operators.getByRole('dialog', { name: 'Rename Acme' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Acme Ltd');
  await dialog.getByLabel('Why?').fill('a new register');
  await dialog.getByRole('button', { name: 'Rename', exact: true }).click();
  await operators.getByRole('heading', { name: 'Acme Ltd', level: 1 }).waitFor();
});
