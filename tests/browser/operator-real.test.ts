/** An operator's day in a real browser at the whole demo gateway, with everything that is really behind the pages. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { parse } from 'yaml';
import { until } from '../helpers/until.ts';
import type { Browser as Client } from '../plugins/console/browser.ts';
import { firstToken, operator, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, openPage, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';

let testbed: TestConsole;
let browser: Browser;
let page: Page;
let ada: Client;
let key: string;
const complaints: string[] = [];

before(async () => {
  buildPages();
  testbed = await startDemo('demo', checkedAndKept());
  browser = await launchBrowser();
  page = await openPage(browser, complaints, { baseURL: testbed.origin });
  ada = testbed.browser();
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  await ada.send('/auth/sign-up/email', {
    body: { email: 'ada@example.test', password: 'another long password', name: 'Ada' },
  });
  key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
});
after(async () => {
  await browser?.close();
  await testbed?.stop();
});

/** Calls of one vendor's models are checked, and their answers kept. */
function checkedAndKept(): string {
  const { plugins } = parse(readFileSync('config/demo.yaml', 'utf8')) as { plugins: string[] };
  const guarded = plugins.flatMap((name) => (name === 'idempotency' ? ['guardrails', 'prompts', name] : [name]));
  return `
plugins: [${guarded.join(', ')}]
guardrails:
  checks: { mails: { type: patterns, find: [email], on: [prompt], do: mask, restore: true } }
  policies: { base: [mails] }
  apply: [{ policy: base, models: [claude-*] }]
cache: { of: [{ models: [claude-*], keep: 10m, price: 0.1 }] }
`;
}

const call = (model = 'gpt-5.4-mini', content = 'Hello') =>
  fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  });

/** Fills the reason of the dialog in front, presses its button, and waits until it is gone. */
async function confirm(button: string, reason = 'a test'): Promise<void> {
  const dialog = page.getByRole('dialog').last();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill(reason);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await page.getByLabel('Why?').waitFor({ state: 'detached' });
}

test('the operator signs in and credits an account, and its ledger has the row', async () => {
  await signIn(page, operator);
  await page.getByRole('link', { name: 'Accounts', exact: true }).click();
  await page.getByRole('textbox', { name: 'Name, mail address or id', exact: true }).fill('ada');
  await page.getByRole('button', { name: /^ada/i }).click();
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('20');
  await confirm('Credit', 'an invoice');
  await page.getByRole('tab', { name: 'Ledger', exact: true }).click();
  await page.getByRole('row', { name: /an invoice.*\+\$20\.00/ }).waitFor();
});

test('the monitor shows a new call at once, and opens it', async () => {
  await page.goto('/console/admin/monitor');
  await page.getByText('Live', { exact: true }).waitFor();
  for (let count = 0; count < 3; count++) assert.equal((await call()).status, 200);
  await page.getByRole('link', { name: /Success\s*100/ }).waitFor();
  await page.getByRole('row', { name: /gpt-5\.4-mini/ }).waitFor();
  await page.getByRole('link', { name: 'Requests', exact: true }).last().click();
  await page
    .getByRole('row', { name: /gpt-5\.4-mini.* 200 / })
    .first()
    .getByRole('button')
    .click();
  const timeline = page.getByRole('dialog', { name: 'Request', exact: true });
  await timeline
    .getByText(/^Attempt 1/)
    .first()
    .waitFor();
  await timeline.getByText('Answer complete').waitFor();
  assert.match((await timeline.getByTestId('formula').textContent())!, /input/);
});

test('a request is refunded in full, once', async () => {
  const timeline = page.getByRole('dialog', { name: 'Request', exact: true });
  await timeline.getByRole('button', { name: 'Refund', exact: true }).click();
  await confirm('Refund', 'it was slow');
  await timeline.getByText('All of it was given back.').waitFor();
});

test('the model of a disabled vendor fails, and is served again when the vendor is enabled', async () => {
  const reply = (await ada.send('/models')).json.rows.length;
  assert.ok(reply > 10);
  await page.goto('/console/admin/prices?text=gpt-5.4-mini&open=gpt-5.4-mini');
  const provider = (await page.getByRole('dialog').getByRole('link').first().textContent())!;
  await page.goto(`/console/admin/upstreams?provider=${provider}`);
  const card = page.getByTestId(`upstream-${provider}`);
  await card.getByRole('button', { name: 'Disable', exact: true }).click();
  await confirm('Disable', 'an outage');
  await card.getByText('Disabled', { exact: true }).first().waitFor();
  await until('a failure', async () => (await call()).status >= 500);
  await card.getByRole('button', { name: 'Enable', exact: true }).click();
  await confirm('Enable', 'it is over');
  await until('an answer', async () => (await call()).status === 200);
});

test('one of several codes is redeemed, and its use is counted', async () => {
  await page.goto('/console/admin/codes?make=balance');
  const form = page.getByRole('dialog', { name: 'Make codes', exact: true });
  await form.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('5');
  await form.getByRole('textbox', { name: 'How many', exact: true }).fill('2');
  await form.getByRole('textbox', { name: 'Name of the batch', exact: true }).fill('fair');
  await form.getByRole('textbox', { name: 'Why?', exact: true }).fill('the fair');
  await form.getByRole('button', { name: 'Make codes', exact: true }).click();
  const [code] = (await page.getByTestId('codes').textContent())!.split('\n');
  await page.getByRole('button', { name: 'I have saved them', exact: true }).click();
  assert.equal((await ada.send('/wallet/redeem', { body: { code } })).json.amount, '5.00');
  await page.goto('/console/admin/codes?batch=fair');
  await page.getByRole('row', { name: /fair.*1 of 1.*Used up/ }).waitFor();
});

test('the file is edited, compared and applied while the gateway serves', async () => {
  await page.goto('/console/admin/plans');
  await page.getByRole('link', { name: 'Edit in the configuration', exact: true }).click();
  await page
    .getByRole('tab', { name: /\.yaml/ })
    .first()
    .click();
  await page.getByRole('textbox', { name: /Gateway file/ }).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('\nplans: { offers: { gold: { price: 40, grant: { amount: 55, every: month } } } }\n');
  await page.getByText('No faults').waitFor();
  await page.getByRole('button', { name: 'Review and save', exact: true }).click();
  await page.getByTestId('config-diff').getByText('gold').waitFor();
  // However late the saved file is loaded, leaving the page at once loses nothing, and the plans are not those of before.
  await page.route('**/console/api/admin/config', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await route.continue();
  });
  await confirm('Save and apply', 'a new plan');
  await page.getByRole('link', { name: 'Plans', exact: true }).click();
  await page.getByRole('heading', { name: 'gold', exact: true }).waitFor();
  await page.getByText('$55.00 to spend a month').waitFor();
});

test('a fault in the file is marked at its line and cannot be saved', async () => {
  await page.goto('/console/admin/config?file=text');
  await page.getByRole('textbox', { name: /Gateway file/ }).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('\nbilling: { hold: { output_tokens: "many" } }\n');
  await page.getByTestId('config-problems').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Review and save', exact: true }).isDisabled(), true);
  await page.getByRole('button', { name: 'Discard changes', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard changes', exact: true }).click();
  await page.getByText(/^Unchanged/).waitFor();
});

test('the ledger reconciles, this node is listed, and the audit log has every change', async () => {
  await page.goto('/console/admin/money');
  await page.getByRole('button', { name: 'Reconcile', exact: true }).click();
  await page.getByRole('status').getByText('The ledger is consistent').waitFor();
  await page.getByRole('link', { name: 'Nodes', exact: true }).click();
  await page.getByText('this one').waitFor();
  await page.getByRole('link', { name: 'Audit log', exact: true }).click();
  for (const row of [
    /account\.credit.*an invoice.*Done/,
    /request\.refund.*it was slow.*Done/,
    /upstream\.disable.*an outage.*Done/,
    /codes\.create.*fair.*Done/,
    /config\.save.*a new plan.*Done/,
    /money\.reconcile.*Done/,
  ])
    await page.getByRole('row', { name: row, exact: true }).first().waitFor();
});

test('requests are narrowed by what a check has said and by its name, and one that the cache has answered says so', async () => {
  const content = 'Write to ada@example.test.';
  for (const from of ['miss', 'hit']) {
    const answer = await call('claude-sonnet-5', content);
    assert.deepEqual([answer.status, answer.headers.get('x-cache')], [200, from]);
    await answer.text();
  }
  await page.goto('/console/admin/requests');
  const rows = page.getByRole('row').filter({ has: page.getByRole('cell') });
  await rows.filter({ hasText: 'gpt-5.4-mini' }).first().waitFor();
  await page.getByRole('combobox', { name: 'Any verdict', exact: true }).click();
  await page.getByRole('option', { name: 'Masked', exact: true }).click();
  await rows.filter({ hasText: 'gpt-5.4-mini' }).first().waitFor({ state: 'detached' });
  await rows.nth(1).waitFor();
  assert.equal(await rows.count(), 2);
  await page.getByLabel('Any check', { exact: true }).fill('nothing');
  await rows.first().waitFor({ state: 'detached' });
  await page.getByLabel('Any check', { exact: true }).fill('mails');
  await rows.nth(1).waitFor();
  assert.match(page.url(), /(?=.*verdict=masked).*check=mails/);
  await rows.first().getByRole('button').first().click();
  const story = page.getByRole('dialog', { name: 'Request', exact: true });
  await story.getByText(/^answered from the cache: the answer to an equal request, (?:< 1|\d+) s old$/).waitFor();
  await story.getByText('5 input, 18 output').waitFor();
  await story
    .getByTestId('formula')
    .getByText(/× 1\/10$/)
    .waitFor();
  // The line of the timeline and the fact have the same digits.
  const [, held] = /(\$[\d.]+) set aside for/.exec(await story.innerText()) ?? [];
  assert.equal(await story.getByRole('definition').filter({ hasText: held! }).count(), 1);
});

test('the page of tools shows the servers as they are reached, and each tool with its price', async () => {
  await page.goto('/console/admin/tools');
  await page.getByRole('row', { name: /^sandbox reached \(3\) 0 0/ }).waitFor();
  await page.getByRole('row', { name: /^sandbox__weather 0\.001 0/ }).waitFor();
  await page.getByRole('heading', { name: 'Search engine', exact: true }).waitFor();
  await page.getByRole('row', { name: /^tavily 0 0/ }).waitFor();
});

test("the clients' page of tools writes the settings of each program for the chosen tools", async () => {
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
});

test('the browser reports no error', () => {
  assert.deepEqual(complaints, []);
});
