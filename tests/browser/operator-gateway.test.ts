/** What an operator does about codes, prices, people, tokens and the configuration, in a real browser. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import { test } from './browser-test.ts';
import { visit } from './looks.ts';
import { sharedStage } from './operator-stage.ts';

const stage = sharedStage();

async function reasonAnd(page: Page, reason: string, button: string): Promise<void> {
  const dialog = page.getByRole('dialog').last();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill(reason);
  await dialog.getByRole('button', { name: button, exact: true }).click();
}

test('codes are made, shown once, saved as a file, listed without the codes, and revoked', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/codes');
  await page.getByRole('button', { name: 'Make codes', exact: true }).first().click();
  const form = page.getByRole('dialog', { name: 'Make codes', exact: true });
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('5');
  await form.getByRole('textbox', { name: 'How many', exact: true }).fill('3');
  await form.getByRole('textbox', { name: 'Name of the batch', exact: true }).fill('autumn');
  await reasonAnd(page, 'for the fair', 'Make codes');
  const made = page.getByRole('dialog', { name: '3 codes in batch autumn', exact: true });
  const codes = (await made.getByTestId('codes').textContent())!.split('\n');
  assert.equal(codes.length, 3);
  await page.keyboard.press('Escape');
  assert.ok(await made.isVisible(), 'what is lost here is lost: nothing but the button shuts it');
  const saved = page.waitForEvent('download');
  await made.getByRole('button', { name: 'Download CSV', exact: true }).click();
  const file = await readFile(await (await saved).path(), 'utf8');
  for (const code of codes) assert.ok(file.includes(`${code},autumn`));
  await made.getByRole('button', { name: 'I have saved them', exact: true }).click();
  await page
    .getByRole('row', { name: /autumn.*\$5\.00.*0 of 1/ })
    .first()
    .waitFor();
  assert.equal((await page.content()).includes(codes[0]!), false);
  await page.getByRole('link', { name: 'autumn', exact: true }).first().click();
  await page.getByRole('button', { name: 'Revoke batch', exact: true }).click();
  await reasonAnd(page, 'the fair is over', 'Revoke');
  await page.getByText('3 codes were revoked.').waitFor();
});

test('the cost of a request is calculated with its formula', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/prices');
  await page.getByText('1 model has no price and is not sold').waitFor();
  await page.getByRole('button', { name: 'What would this request cost?', exact: true }).click();
  const drawer = page.getByRole('dialog');
  await drawer.getByLabel('input', { exact: true }).fill('1000000');
  await drawer.getByRole('button', { name: 'Work it out', exact: true }).click();
  await drawer
    .getByTestId('quote')
    .getByText(/1000000 input|1,000,000 input/)
    .waitFor();
});

test('a model opens its prices beside its costs', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/prices?text=claude-sonnet');
  await page
    .getByRole('row', { name: /Claude Sonnet/ })
    .getByRole('button')
    .click();
  await page
    .getByRole('dialog', { name: /Claude Sonnet/ })
    .getByRole('row', { name: /cache_read/ })
    .first()
    .waitFor();
});

test('prices and costs are shown on a small screen too', async () => {
  const page = await stage.page('operator', { viewport: { width: 380, height: 780 } });
  await page.goto('/console/admin/prices?open=claude-sonnet-5');
  const drawer = page.getByRole('dialog', { name: /Claude Sonnet/ });
  await drawer.getByText('$15.00').filter({ visible: true }).first().waitFor();
});

test('a person is invited by a link, changes role, is blocked, and gets a reset link', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/people');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Mail addresses', exact: true }).fill('new@example.test');
  await reasonAnd(page, 'a new client', 'Invite');
  assert.match((await page.getByTestId('link').textContent())!, /^https?:/);
  await page.getByRole('button', { name: 'Done', exact: true }).click();
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await page
    .getByRole('dialog')
    .getByRole('textbox', { name: 'Mail addresses', exact: true })
    .fill('one@example.test, two@example.test\nolga@example.test');
  await reasonAnd(page, 'a class', 'Invite');
  const invited = page.getByRole('dialog').getByRole('row');
  await invited.filter({ hasText: 'two@example.test' }).getByRole('button', { name: 'Copy', exact: true }).waitFor();
  assert.equal(await invited.count(), 3);
  await page.getByRole('button', { name: 'Done', exact: true }).click();
  const act = async (item: string) => {
    await page.getByRole('button', { name: 'More: Olga Auditor', exact: true }).click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
  };
  await act('Change role');
  await page.getByRole('dialog').getByLabel('Client').check();
  await reasonAnd(page, 'left the audit', 'Change role');
  await page.getByText('Olga Auditor is Client now.').waitFor();
  await act('Reset link');
  await reasonAnd(page, 'lost her password', 'Reset link');
  await page.getByTestId('link').waitFor();
  await page.getByRole('button', { name: 'Done', exact: true }).click();
  await act('Block');
  await reasonAnd(page, 'left', 'Block');
  await page.getByText('Olga Auditor is blocked.').waitFor();
  const person = stage.testbed.people.rows.find(({ name }) => name === 'Olga Auditor')!;
  assert.deepEqual([person.role, person.blocked], ['client', true]);
  assert.equal(await page.getByRole('button', { name: 'More: Oscar Operator', exact: true }).count(), 0);
});

test('a token is shown once and revoked', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/tokens');
  await page.getByRole('button', { name: 'New token', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'What it is for', exact: true }).fill('nightly report');
  await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
  const token = (await page.getByTestId('secret').textContent())!;
  assert.ok(token.length > 8);
  await page.getByRole('button', { name: 'I have saved it', exact: true }).click();
  const row = page.getByRole('row', { name: /nightly report/ });
  await row.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await row.waitFor({ state: 'detached' });
});

test('the configuration is completed, marked, compared, saved and reloaded', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/config?file=text');
  const editor = page.getByRole('textbox', { name: /Gateway file/ });
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('lo');
  await page.getByRole('option', { name: /^log/ }).first().waitFor();
  // The editor takes no choice in the first moments of a list that pops up under somebody's fingers.
  await page.waitForTimeout(200);
  await page.keyboard.press('Enter');
  await page.keyboard.type('loud');
  await page.locator('.cm-lintRange-error').first().waitFor();
  for (let letter = 0; letter < 4; letter++) await page.keyboard.press('Backspace');
  await page.keyboard.type('debug');
  await page.keyboard.press('Escape');
  await page.getByText('No faults').waitFor();
  await page.getByRole('button', { name: 'Review and save', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: /^Save/ });
  await dialog.getByTestId('config-diff').getByText('debug').waitFor();
  await reasonAnd(page, 'look closer', 'Save and apply');
  await dialog.waitFor({ state: 'detached' });
  const { files } = await stage.testbed.find(configFiles)!.view();
  assert.match(files[0]!.text, /log: debug/);
  await page.getByText(/^Unchanged/).waitFor();
  await page.getByRole('button', { name: 'Reload files', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reload files', exact: true }).click();
  await page.getByText('Reloaded.', { exact: true }).waitFor();
});

test('a file that someone else has changed meanwhile is not overwritten', async () => {
  const configFilesService = stage.testbed.find(configFiles)!;
  const page = await stage.page();
  await page.goto('/console/admin/config?file=text');
  await page.getByRole('textbox', { name: /Gateway file/ }).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('\ndata: ./mine\n');
  await page.getByText('No faults').waitFor();
  const { name, text } = (await configFilesService.view()).files[0]!;
  await configFilesService.save(name, `${text}data: ./theirs\n`, text);
  await page.getByRole('button', { name: 'Review and save', exact: true }).click();
  await reasonAnd(page, 'mine', 'Save and apply');
  await page.getByRole('dialog').getByText('The file has changed meanwhile.').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Reload files', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reload files', exact: true }).click();
  await page.getByRole('button', { name: 'Take the file as it is now', exact: true }).click();
  await page.getByText('data: ./theirs').or(page.getByText('./theirs')).first().waitFor();
  assert.match((await configFilesService.view()).files[0]!.text, /theirs/);
});

test('the warnings of the running configuration are listed and lead to their lines; without any, the page says so', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/config');
  await page.getByRole('tab', { name: 'Warnings 2', exact: true }).click();
  const rows = page.getByTestId('config-notices').getByRole('row');
  await rows.nth(2).waitFor();
  assert.equal(await rows.count(), 3);
  await rows.filter({ hasText: 'files.origin is not set' }).getByText('Place not known').waitFor();
  await rows.last().getByText('Note', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'main.yaml:11', exact: true }).click();
  await page.getByRole('textbox', { name: 'Gateway file main.yaml', exact: true }).waitFor();
  await page.locator('.cm-activeLine', { hasText: 'pro: { price: 20' }).waitFor();
  await page.route('**/console/api/admin/config', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), notices: [] } });
  });
  await page.goto('/console/admin/config?view=warnings');
  await page.getByText('No warnings', { exact: true }).waitFor();
  await page.unroute('**/console/api/admin/config');
});

test('the keyboard focus can leave the editor', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/config?file=text');
  await page.getByRole('textbox', { name: /Gateway file/ }).click();
  await page.keyboard.press('Tab');
  const inside = await page.evaluate(
    `document.activeElement !== null && document.activeElement.closest('.cm-editor') !== null`,
  );
  assert.equal(inside, false);
});

test('the audit log has every change', async () => {
  const page = await stage.page();
  await page.goto('/console/admin/audit');
  for (const action of ['codes.create', 'codes.revoke', 'person.change', 'person.reset', 'token.create', 'config.save'])
    await page
      .getByRole('row', { name: new RegExp(action.replace('.', '\\.')) })
      .first()
      .waitFor();
  await page
    .getByRole('row', { name: /config\.save.*look closer/ })
    .getByRole('link')
    .click();
  const history = page.getByRole('region', { name: 'Applied configurations', exact: true });
  await history.getByRole('row', { name: /Save.*look closer.*main\.yaml/ }).waitFor();
  await page.getByTestId('config-diff').getByText('log: debug').waitFor();
  await page.getByRole('combobox', { name: 'Compared with', exact: true }).selectOption({ index: 2 });
  await page.getByTestId('config-diff').getByText('price: 30').waitFor();
  await history.getByRole('button', { name: '3', exact: true }).click();
  await page.getByRole('heading', { name: 'Version 3', exact: true }).waitFor();
  await page.getByTestId('config-diff').getByText('price: 20').waitFor();
  await page.getByRole('button', { name: 'Restore…', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Go back to version 3?', exact: true });
  await dialog.getByText('No faults').waitFor();
  await dialog.getByTestId('config-diff').getByText('log: debug').waitFor();
  await reasonAnd(page, 'that was enough', 'Restore and apply');
  await history.getByRole('row', { name: /5 runs.*Restoration.*that was enough/ }).waitFor();
  const { files } = await stage.testbed.find(configFiles)!.view();
  assert.doesNotMatch(files[0]!.text, /debug/);
});

test('versions below a comparison that comes late can be clicked when it is there, and stay where they are', async () => {
  const page = await stage.page();
  const { promise: differenceIsAsked, resolve: answerDifference } = Promise.withResolvers<void>();
  await page.route('**/config/history/difference**', async (route) => {
    await differenceIsAsked;
    await route.continue();
  });
  await page.goto('/console/admin/config?view=history&version=3');
  const version = page
    .getByRole('region', { name: 'Applied configurations', exact: true })
    .getByRole('button', { name: '3', exact: true });
  await version.waitFor();
  const click = () => version.click({ trial: true, timeout: 500 });
  await assert.rejects(click(), /intercepts pointer events/);
  answerDifference();
  await version.click({ trial: true });
  const place = await version.boundingBox();
  assert.ok(place!.y > (await page.getByTestId('config-diff').boundingBox())!.y);
  await page.waitForLoadState('networkidle');
  assert.deepEqual(await version.boundingBox(), place);
});

test('an auditor sees the pages without their controls', async () => {
  await stage.testbed.people.setBlocked('person-auditor', false);
  await stage.testbed.people.setRole('person-auditor', 'auditor');
  const page = await stage.page('auditor');
  const changing =
    /^(Credit|More|Disable|Enable|Wake|Refund|Make codes|Revoke.*|Invite|Reconcile|Reload files|New token|Cancel task)$/;
  const id = stage.testbed.world.accounts[0]!.id;
  for (const path of ['accounts', `accounts/${id}`, 'upstreams', 'codes', 'people', 'money', 'config', 'tokens']) {
    await visit(page, `/console/admin/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForTimeout(300);
    assert.equal(await page.getByRole('button', { name: changing, exact: true }).count(), 0, path);
  }
});
