/** What an operator does about accounts and money, in a real browser. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { clientAccount } from '../plugins/console/fakes/world.ts';
import { test } from './browser-test.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

const account = (name: string) => stage.testbed.world.accounts.find((row) => row.name === name)!;

async function openAccount(page: Page, name: string): Promise<void> {
  await page.goto('/console/admin/accounts');
  await page.getByLabel('Name, mail address or id', { exact: true }).fill(name);
  await page.getByRole('button', { name, exact: true }).click();
  await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
}

test('an operator finds and credits an account, and the ledger has the row', async () => {
  const page = await stage.page();
  await openAccount(page, 'ada-labs');
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Credit ada-labs', exact: true });
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('12.345678901');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('paid by bank transfer');
  await dialog.getByRole('button', { name: 'Credit', exact: true }).click();
  await page.getByText('$12.345678901 was credited.').waitFor();
  await page.getByRole('tab', { name: 'Ledger', exact: true }).click();
  const row = page.getByRole('row', { name: /paid by bank transfer/ });
  await row.getByText('+$12.345678901').waitFor();
  const written = stage.testbed.world.ledger.find(({ reason }) => reason === 'paid by bank transfer')!;
  assert.equal(written.change, parseUsd('12.345678901'));
  assert.equal(written.accountId, account('ada-labs').id);
});

test('a credit without a reason or with an invalid amount is refused', async () => {
  const page = await stage.page();
  const rows = stage.testbed.world.ledger.length;
  await openAccount(page, 'ada-labs');
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('1,5');
  await dialog.getByText('Write an amount such as 12.50').waitFor();
  await dialog.getByRole('button', { name: 'Credit', exact: true }).click();
  await dialog.getByText('Write a reason').waitFor();
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('1.5');
  await dialog.getByRole('button', { name: 'Credit', exact: true }).click();
  assert.equal(stage.testbed.world.ledger.length, rows);
});

test('a debit beyond the balance is refused with a sentence, and a confirmed one takes the money once', async () => {
  const page = await stage.page();
  await openAccount(page, 'ada-labs');
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Debit', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Debit ada-labs', exact: true });
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('99999');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('a correction');
  await dialog.getByRole('button', { name: 'Debit', exact: true }).click();
  await dialog.getByText('The balance does not cover this.').waitFor();
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('0.25');
  await dialog.getByRole('button', { name: 'Debit', exact: true }).click();
  await page.getByText('$0.25 was taken.').waitFor();
  const taken = stage.testbed.world.ledger.filter(({ reason }) => reason === 'a correction');
  assert.deepEqual(
    taken.map(({ change }) => change),
    [parseUsd('-0.25')],
  );
});

test('a request is refunded from its page, up to its cost', async () => {
  const { world } = stage.testbed;
  const charge = world.charges.find(({ cost, refunded }) => cost > parseUsd('0.02') && refunded === 0n)!;
  const page = await stage.page();
  await page.goto(`/console/admin/requests/${charge.requestId}`);
  await page.getByTestId('formula').waitFor();
  await page.getByRole('button', { name: 'Refund', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('500');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('the answer was empty');
  await dialog.getByRole('button', { name: 'Refund', exact: true }).click();
  await dialog.getByText('More than was paid cannot be given back.').waitFor();
  await dialog.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('0.01');
  await dialog.getByRole('button', { name: 'Refund', exact: true }).click();
  await page.getByText('$0.01 was given back.').waitFor();
  await page.getByText('Refunded', { exact: true }).waitFor();
  assert.equal(world.charges.find(({ requestId }) => requestId === charge.requestId)!.refunded, parseUsd('0.01'));
});

test('plan, multiplier and admission of an account are changed, each with a reason in the audit log', async () => {
  const page = await stage.page();
  const act = async (item: string, fill: () => Promise<void>, button: string) => {
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
    await fill();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Why?', exact: true }).fill(`${item}, as agreed`);
    await page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  await openAccount(page, 'granite');
  const pickPlan = async () => {
    await page.getByRole('dialog').getByRole('combobox', { name: 'Plan', exact: true }).click();
    await page.getByRole('option', { name: 'studio', exact: true }).click();
  };
  await act('Change plan', pickPlan, 'Change plan');
  await act(
    'Multiplier',
    () => page.getByRole('dialog').getByRole('textbox', { name: 'Ratio', exact: true }).fill('0.85'),
    'Save',
  );
  await act('Disable', async () => undefined, 'Disable');
  await page.getByText('Disabled', { exact: true }).waitFor();
  const { plan, multiplier, disabled } = account('granite');
  assert.deepEqual({ plan, multiplier, disabled }, { plan: 'studio', multiplier: '0.85', disabled: true });
  await page.goto('/console/admin/audit');
  for (const action of ['account.plan', 'account.multiplier', 'account.disable'])
    await page
      .getByRole('row', { name: new RegExp(`${action}.*as agreed`) })
      .first()
      .waitFor();
  await page
    .getByRole('row', { name: /account\.multiplier.*as agreed/ })
    .getByRole('button')
    .click();
  const opened = page.getByRole('dialog', { name: 'account.multiplier', exact: true });
  await opened.getByText('1 → 0.85').waitFor();
  await opened.getByText('Multiplier, as agreed').waitFor();
  await opened.getByText('203.0.113.7').or(opened.getByText('127.0.0.1')).waitFor();
});

test('an operator keeps nothing of an account and takes it back, its owner reads it, and an auditor changes nothing', async () => {
  const [page, owner, auditor] = [await stage.page(), await stage.page('client'), await stage.page('auditor')];
  const path = `/console/admin/accounts/${clientAccount}`;
  const kept = () => stage.testbed.world.accounts.find(({ id }) => id === clientAccount)!.retention;
  const set = async (verb: string) => {
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('menuitem', { name: verb, exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('by contract');
    await dialog.getByRole('button', { name: verb, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  await page.goto(path);
  await set('Keep nothing');
  assert.equal(kept(), 'none');
  await page.getByText('Kept of its calls', { exact: true }).waitFor();
  await owner.goto('/console/profile');
  await owner.getByRole('heading', { name: 'What is kept', exact: true }).waitFor();
  await auditor.goto(path);
  await auditor.getByText('Kept of its calls', { exact: true }).waitFor();
  assert.equal(await auditor.getByRole('button', { name: 'More', exact: true }).count(), 0);
  await set('Keep as usual');
  assert.equal(kept(), undefined);
  await page.getByText('Kept of its calls', { exact: true }).waitFor({ state: 'detached' });
  await owner.reload();
  await owner.getByRole('heading', { name: 'You', exact: true }).waitFor();
  assert.equal(await owner.getByRole('heading', { name: 'What is kept', exact: true }).count(), 0);
});

test('the ledger is reconciled, and exported as a file', async () => {
  const page = await stage.page();
  // The numbers come while the button is held down.
  const numbers = Promise.withResolvers<void>();
  await page.route('**/console/api/admin/m*/**', (route) => numbers.promise.then(() => route.continue()));
  await page.route('**/console/api/admin/money?*', (route) => numbers.promise.then(() => route.continue()));
  await page.goto('/console/admin/money');
  await page.getByRole('button', { name: 'Reconcile', exact: true }).hover();
  await page.mouse.down();
  numbers.resolve();
  await page.getByRole('link', { name: /^Cash in/ }).waitFor();
  await page.getByRole('heading', { name: 'Charged, own cost and margin by day', exact: true }).waitFor();
  await page.mouse.up();
  await page.getByRole('status').getByText('The ledger is consistent').waitFor();
  await page.getByRole('tab', { name: 'Ledger', exact: true }).click();
  const saved = page.waitForEvent('download');
  await page.getByRole('link', { name: 'CSV', exact: true }).click();
  assert.equal((await saved).suggestedFilename(), 'ledger.csv');
});

test('a number on a card opens its rows, with the filter in the address', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/money');
  await page.getByRole('link', { name: /^Cash in/ }).click();
  await page
    .getByRole('row', { name: /Credit/ })
    .first()
    .waitFor();
  assert.match(page.url(), /kind=CREDIT/);
  await page
    .getByRole('row', { name: /Charge/ })
    .first()
    .waitFor({ state: 'detached' });
});

test('an operator gives a key another secret with a reason: it is shown once, the earlier one is named, and an auditor has no button', async () => {
  const page = await stage.page();
  const key = stage.testbed.world.keys.find(({ revokedAt }) => revokedAt === undefined)!;
  const { id, name, prefix, accountId } = key;
  const keys = `/console/admin/accounts/${accountId}?tab=keys`;
  await page.goto(keys);
  const row = page.getByRole('row').filter({ hasText: `${prefix}…` });
  await row.getByRole('button', { name: `Rotate ${name}?`, exact: true }).click();
  const dialog = page.getByRole('dialog', { name: `Rotate ${name}?`, exact: true });
  assert.equal(await dialog.getByRole('combobox').inputValue(), 'one more day');
  await dialog.getByRole('button', { name: 'Rotate', exact: true }).click();
  await dialog.getByText('Write a reason').waitFor();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('it was in a mail');
  await dialog.getByRole('button', { name: 'Rotate', exact: true }).click();
  const made = page.getByRole('dialog', { name: `The new secret of ${name}`, exact: true });
  const secret = (await made.getByTestId('secret').textContent())!.trim();
  assert.match(secret, /^sk-\S{10,}$/);
  await made.getByRole('button', { name: 'I have saved it', exact: true }).click();
  await page.getByText(`Earlier secret ${prefix}… works until`).waitFor();
  assert.equal((await page.content()).includes(secret), false, 'nothing keeps the secret');
  const audited = stage.testbed.audit.rows.find(({ action }) => action === 'account.key.rotate')!;
  assert.deepEqual([audited.subject, audited.reason], [id, 'it was in a mail']);
  const auditor = await stage.page('auditor');
  await auditor.goto(keys);
  await auditor
    .getByRole('row')
    .filter({ hasText: `${secret.slice(0, 11)}…` })
    .waitFor();
  assert.equal(await auditor.getByRole('button', { name: /^Rotate / }).count(), 0);
});

test('the browser reports no error', () => {
  const refused = /status of 4\d\d/;
  assert.deepEqual(
    stage.complaints.filter((line) => !refused.test(line)),
    [],
  );
});
