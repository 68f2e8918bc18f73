/** The pages of tools in a real browser at the whole demo gateway: servers and costs for operators, settings and prices for clients. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { firstToken, operator, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';

let testbed: TestConsole;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

before(async () => {
  buildPages();
  testbed = await startDemo();
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  browser = await launchBrowser();
  page = await openPage(browser, complaints, { baseURL: testbed.origin });
  await signIn(page, operator);
});
after(async () => {
  await browser?.close();
  await testbed?.stop();
});

test('the page for operators shows the servers as they are reached, and each tool with its price', async () => {
  await page.goto('/console/admin/tools');
  await page.getByRole('row', { name: /^sandbox reached \(3\) 0 0/ }).waitFor();
  await page.getByRole('row', { name: /^sandbox__weather 0\.001 0/ }).waitFor();
  await page.setViewportSize({ width: 380, height: 780 });
  for (const path of ['/console/admin/tools', '/console/pages/tools']) {
    await page.goto(path);
    await page
      .getByRole('cell', { name: /sandbox__weather/ })
      .first()
      .waitFor();
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0);
  }
  await page.setViewportSize({ width: 1280, height: 860 });
});

test('the page for clients writes the settings of each program for the chosen tools, in the reader’s language', async () => {
  await page.goto('/console/pages/tools');
  const settings = page.locator('pre');
  await settings.getByText(`claude mcp add --transport http gateway ${testbed.origin}/mcp --header`).waitFor();
  for (const [program, written] of [
    ['Codex', 'bearer_token_env_var = "GATEWAY_KEY"'],
    ['Gemini CLI', `"httpUrl": "${testbed.origin}/mcp/harbour"`],
    ['Cursor', '"Authorization": "Bearer ${env:GATEWAY_KEY}"'],
    ['A model, with the gateway making the calls', '"server_url": "gateway://harbour"'],
  ] as const) {
    await page.getByLabel('Program').selectOption(program);
    await page.getByLabel('Tools').selectOption('harbour');
    await settings.getByText(written).waitFor();
  }
  await page.getByRole('cell', { name: /sandbox__time/ }).waitFor();
  await page.evaluate(() => localStorage.setItem('console-language', 'ja'));
  await page.reload();
  await page.getByRole('heading', { name: 'プログラムを設定する' }).waitFor();
  assert.deepEqual(complaints, []);
});
