/**
 * The main journeys of clients and operators in Firefox, at the whole demo gateway: light, dark and on 380 pixels. Screenshots
 * of all pages are written into the directory `SHOTS`.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { Browser as Client } from '../../plugins/console/browser.ts';
import { firstToken, operator, startFile, type TestConsole } from '../../plugins/console/start-console.ts';
import { signIn } from '../chromium.ts';
import { buildPages } from '../operator-stage.ts';
import { isOfPages, launchFirefox, noFirefox, openFirefoxPage, type Scheme } from './launch.ts';

const skip = noFirefox;
const client = { email: 'ada@example.test', password: 'another long password', name: 'Ada' };
const wide = { width: 1280, height: 900 };
const small = { width: 380, height: 780 };
const shots = process.env['SHOTS'] ?? mkdtempSync(join(tmpdir(), 'firefox-shots-'));

let testbed: TestConsole;
let boss: Client;
let key: string;

before(async () => {
  if (skip !== false) return;
  mkdirSync(shots, { recursive: true });
  buildPages();
  const directory = mkdtempSync(join(tmpdir(), 'console-firefox-'));
  cpSync('config', join(directory, 'config'), { recursive: true });
  testbed = await startFile(`# plugins: storage, and others\ninclude:\n  - ${directory}/config/demo.yaml\n`, directory);
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  boss = testbed.browser();
  await boss.send('/auth/sign-in/email', { body: operator });
  const ada = testbed.browser();
  await ada.send('/auth/sign-up/email', { body: client });
  await ada.send('/wallet/redeem', { body: { code: await makeCode('20') } });
  key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
  for (const model of ['gpt-5.4-mini', 'claude-opus-5', 'gpt-5.4-mini']) assert.equal((await call(model)).status, 200);
});
after(() => testbed?.stop());

async function makeCode(amount: string): Promise<string> {
  const body = { gift: { kind: 'balance', amount }, count: 1, maxUses: 1, reason: 'a test' };
  return (await boss.send('/admin/codes', { body })).json.codes[0];
}

function call(model: string): Promise<Response> {
  return fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });
}

for (const scheme of ['light', 'dark'] as const) {
  test(`a client and an operator complete their journeys in ${scheme}`, { skip }, async (t) => {
    const browser = await launchFirefox(scheme);
    t.after(() => browser.close());
    await t.test('a client', () => walk(browser, scheme, client, clientPages));
    await t.test('an operator', () => walk(browser, scheme, operator, operatorPages));
  });
}

/** Does something on a page, and looks at it afterwards. */
type Step = (page: Page, scheme: Scheme) => Promise<unknown>;
type Journey = Readonly<Record<string, Step>>;

async function walk(browser: Browser, scheme: Scheme, who: typeof client, journey: Journey): Promise<void> {
  const complaints: string[] = [];
  const page = await openFirefoxPage(browser, complaints, testbed.origin);
  await page.goto('/console/sign-in');
  await look(page, scheme, `sign-in-${who.name}`);
  await signIn(page, who);
  await page.getByRole('heading', { level: 1 }).waitFor();
  for (const [name, step] of Object.entries(journey)) {
    await step(page, scheme);
    await look(page, scheme, name);
  }
  assert.deepEqual(complaints.filter(isOfPages), []);
  await page.context().close();
}

/** Takes the page in its two widths; it is in the right scheme, and nothing is wider than the window. */
async function look(page: Page, scheme: Scheme, name: string): Promise<void> {
  await page.locator(`html[data-mantine-color-scheme='${scheme}']`).waitFor();
  for (const [width, viewport] of Object.entries({ wide, small })) {
    await page.setViewportSize(viewport);
    await page.waitForTimeout(500);
    const over = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    // Hiding the caret would take a style element that our policy blocks.
    await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), caret: 'initial' });
    assert.equal(over, 0, `${name} at ${width}`);
  }
  await page.setViewportSize(wide);
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor();

const clientPages: Journey = {
  async home(page) {
    await heading(page, 'Home');
    await page.locator('.balance-chip', { hasText: '$' }).waitFor();
    await page
      .getByRole('link', { name: /gpt-5\.4-mini/ })
      .or(page.getByText('gpt-5.4-mini'))
      .first()
      .waitFor();
  },
  async keys(page, scheme) {
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await heading(page, 'Keys');
    await page.getByRole('button', { name: 'Create key' }).first().click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill(`firefox ${scheme}`);
    await form.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page
      .getByRole('row')
      .filter({ hasText: `firefox ${scheme}` })
      .waitFor();
  },
  async usage(page) {
    await page.goto('/console/usage');
    await page.getByRole('row').filter({ hasText: 'claude-opus-5' }).getByRole('button').first().click();
    await page.getByRole('dialog').getByTestId('formula').waitFor();
  },
  async wallet(page) {
    await page.goto('/console/wallet');
    await page.getByRole('textbox', { name: 'Code' }).fill(await makeCode('5'));
    await page.getByRole('button', { name: 'Redeem' }).click();
    await page.getByText('$5.00 was added to your balance.').waitFor();
  },
  async models(page) {
    await page.goto('/console/models');
    await heading(page, 'Models');
    await page.getByText('claude-opus-5').first().waitFor();
  },
  async playground(page) {
    await page.goto('/console/playground');
    await page.getByRole('button', { name: 'Make a key for this session' }).click();
    await page.getByRole('button', { name: 'Make a key for this session' }).waitFor({ state: 'hidden' });
    await page.getByRole('textbox', { name: 'Message' }).fill('Tell me of lighthouses');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('link', { name: 'How the cost is made up' }).waitFor();
  },
};

const operatorPages: Journey = {
  async overview(page) {
    await page.goto('/console/admin/overview');
    await page.getByRole('heading', { level: 1 }).waitFor();
  },
  async monitor(page) {
    await page.goto('/console/admin/monitor');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('row', { name: /gpt-5\.4-mini/ }).waitFor();
  },
  async requests(page) {
    await page.goto('/console/admin/requests');
    await page
      .getByRole('row', { name: /gpt-5\.4-mini.* 200 / })
      .first()
      .getByRole('button')
      .first()
      .click();
    const timeline = page.getByRole('dialog', { name: 'Request' });
    await timeline.getByText(/^Attempt 1/).waitFor();
    await timeline.getByTestId('formula').waitFor();
  },
  async configuration(page) {
    await page.goto('/console/admin/config?form=prices&entry=gpt-5.4');
    await page.getByTestId('price-example').getByText('$').first().waitFor();
  },
  async 'new-model'(page) {
    await page.getByRole('button', { name: 'Add model' }).click();
    await page.getByRole('form', { name: 'Add model' }).waitFor();
  },
  async 'configuration-text'(page) {
    await page.goto('/console/admin/config');
    await page.getByRole('tab', { name: 'models.yaml' }).click();
    await page.locator('.cm-content').getByText('models:').first().waitFor();
  },
};
