/** Forms over the configuration in a real browser, at a gateway whose files are copies of the demo's. */
import assert from 'node:assert/strict';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import { operator, operatorOf, startHouse, type TestConsole } from '../plugins/console/house.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { findingsOf } from './looks.ts';
import { buildPages, cannotRun } from './operator-stage.ts';

let house: TestConsole;
let browser: Browser;
let page: Page;

before(async () => {
  if (cannotRun !== false) return;
  buildPages();
  const directory = await mkdtemp(join(tmpdir(), 'console-forms-'));
  await cp('config', join(directory, 'config'), { recursive: true });
  // With the plugins storage, request-log and others of the demo.
  house = await startHouse(`# plugins: storage, and others\ninclude:\n  - ${directory}/config/demo.yaml\n`, directory);
  browser = await launchBrowser();
  page = await openPage(browser, [], { baseURL: house.origin, reducedMotion: 'reduce' });
  await operatorOf(house);
  await signIn(page, operator);
  await page.getByRole('link', { name: 'Overview' }).waitFor();
});
after(async () => {
  await browser?.close();
  await house?.stop();
});

/** Fills the reason of the dialog in front, presses its button, and waits until it is gone. */
async function confirm(button: string, reason: string): Promise<void> {
  const dialog = page.getByRole('dialog').last();
  await dialog.getByLabel('Why?').fill(reason);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await page.getByLabel('Why?').waitFor({ state: 'detached' });
}

/** Opens a form over the configuration. */
async function openForm(form: string, entry?: string): Promise<void> {
  await page.goto(`/console/admin/config?form=${form}${entry === undefined ? '' : `&entry=${entry}`}`);
  await page.getByRole('tab', { name: 'Forms' }).waitFor();
}

/** Of the page's only edited file: after the gateway has checked it. */
async function saveForm(reason: string, seen: string): Promise<void> {
  await page.getByText('No faults').waitFor();
  await page.getByRole('button', { name: 'Review and save' }).click();
  await page.getByTestId('config-diff').getByText(seen).first().waitFor();
  await confirm('Save and apply', reason);
  await page.getByText('No faults').waitFor({ state: 'detached' });
}

test('a form writes into the file, which keeps its comments, and it is applied at once', {
  skip: cannotRun,
}, async () => {
  const files = house.gateway.find(configFiles)!;
  const before = (await files.view()).files.map(({ text }) => text).join('\n');
  const comments = (text: string) => text.split('\n').filter((line) => line.includes('#'));
  await openForm('plans', 'pro');
  await page.getByLabel('Price in USD').fill('24.50');
  await saveForm('dearer', '24.50');
  await openForm('vendors');
  await page.getByRole('button', { name: 'Add vendor' }).click();
  await page.getByRole('combobox', { name: 'Preset' }).fill('groq');
  await page.getByRole('option', { name: 'Groq' }).first().click();
  await page.getByLabel('Name', { exact: true }).fill('groq-two');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('GROQ_API_KEY', { exact: true }).waitFor();
  await saveForm('a second account there', 'groq-two');
  const after = (await files.view()).files.map(({ text }) => text).join('\n');
  assert.deepEqual(comments(after), comments(before));
  assert.match(after, /price: 24\.50/);
  assert.match(after, /groq-two:\n {4}preset: groq\n {4}keys: \$\{GROQ_API_KEY:-\}/);
  await page.goto('/console/admin/plans');
  await page.getByText('$24.50').waitFor();
});

test('a wrong value is said at its field, a secret is not taken, and a file with a fault cannot be saved', {
  skip: cannotRun,
}, async () => {
  await openForm('plans', 'pro');
  const price = page.getByLabel('Price in USD');
  await price.fill('a lot');
  await page.getByTestId('config-problems').waitFor();
  assert.match((await price.getAttribute('aria-describedby')) ?? '', /error/);
  assert.equal(await page.getByRole('button', { name: 'Review and save' }).isDisabled(), true);
  await page.getByRole('tab', { name: 'main.yaml' }).click();
  await page.getByText('a lot').first().waitFor();
  await page.getByRole('tab', { name: 'Forms' }).click();
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard changes' }).click();
  await openForm('vendors', 'groq-two');
  const keys = page.getByRole('combobox', { name: 'Keys' });
  await keys.fill('gsk-not-a-name');
  await keys.press('Enter');
  await page.getByText(/not the secret itself/).waitFor();
  assert.equal(await page.getByText('Review and save').count(), 0);
});

test('every form can be read and used by everybody', { skip: cannotRun }, async () => {
  const findings: string[] = [];
  await openForm('plans');
  for (const form of ['vendors', 'prices', 'plans', 'ratios', 'signUp'])
    findings.push(...(await findingsOf(page, `${house.origin}/console/admin/config?form=${form}`)));
  assert.deepEqual(findings, []);
});
