/** Pages that plugins add, in a real browser at a real gateway: the example of the notes, and three that are broken. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { firstToken, operator, startConsole, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';

let testbed: TestConsole;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

before(async () => {
  buildPages();
  testbed = await startConsole(undefined, '', [
    resolve('tests/examples/notes/index.ts'),
    resolve('tests/browser/plugin-pages/index.ts'),
  ]);
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  browser = await launchBrowser();
  page = await openPage(browser, complaints, { baseURL: testbed.origin });
  await signIn(page, operator);
});
after(async () => {
  await browser?.close();
  await testbed?.stop();
});

test("a plugin's page is in the navigation, and reads and writes by the API", async () => {
  await page.getByRole('link', { name: 'Notes', exact: true }).click();
  await page.getByText('No notes yet.').waitFor();
  await page.getByRole('textbox', { name: 'Model', exact: true }).fill('m');
  await page.getByRole('textbox', { name: 'Note', exact: true }).fill('<img src=x onerror=alert(1)>');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('cell', { name: '<img src=x onerror=alert(1)>', exact: true }).waitFor();
  await page.getByRole('textbox', { name: 'Note', exact: true }).fill('x'.repeat(501));
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('The note is longer than 500 characters.').waitFor();
  assert.equal(await page.title(), 'Notes · test');
});

test("a plugin's page is rendered again in another language", async () => {
  await page.evaluate(() => localStorage.setItem('console-language', 'zh'));
  await page.reload();
  await page.getByRole('columnheader', { name: '备注', exact: true }).waitFor();
  await page.getByRole('heading', { name: '笔记', exact: true }).waitFor();
  await page.evaluate(() => localStorage.setItem('console-language', 'en'));
});

for (const [name, fault] of [
  ['no-mount', 'its module exports no function "mount"'],
  ['throws', 'no shelf is free'],
  ['no-module', /Unexpected identifier/],
] as const)
  test(`a broken page (${name}) shows a plain error, and the console stays usable`, async () => {
    await page.goto(`/console/admin/${name}`);
    const alert = page.getByRole('alert').filter({ hasText: `The page of the plugin "${name}" does not work` });
    await alert.getByText(fault).waitFor();
    assert.equal(await page.getByText('half a page').isVisible(), false);
    await alert.getByRole('button', { name: 'Try again', exact: true }).click();
    await alert.getByText(fault).waitFor();
    await page.getByRole('link', { name: 'People', exact: true }).click();
    await page.getByRole('cell', { name: operator.name, exact: true }).first().waitFor();
  });

test("a plugin's page for clients is among the own pages, and its route is given the own account", async () => {
  await page.getByText('My account', { exact: true }).click();
  await page.getByRole('link', { name: 'Own page', exact: true }).click();
  await page.getByText(/^operator: <b>[0-9a-f-]{36}<\/b>$/).waitFor();
  assert.equal(new URL(page.url()).pathname, '/console/pages/own');
});

test('an unknown address is reported, and the browser reports no error', async () => {
  await page.goto('/console/admin/nothing-here');
  await page.getByText('There is nothing here').waitFor();
  assert.deepEqual(complaints, []);
});
