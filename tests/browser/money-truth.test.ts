/**
 * Money as people read it, in a real browser at the whole demo gateway with a ratio of 1.2 and every kind of movement: the
 * statement adds up, a running call is set aside, a credit line pays calls, prices have their units, days are the viewer's.
 * `PICTURES=DIR` keeps pictures.
 */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { ledger, pool } from '../../plugins/common/domain/ledger.ts';
import { formatUsd, parseUsd } from '../../plugins/common/domain/money.ts';
import { moneyText } from '../../plugins/console/web/src/parts/format.ts';
import type { Browser as Client } from '../plugins/console/browser.ts';
import { clientOf, operator, operatorOf, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';

/** A row of a table, in the browser. */
interface Cells {
  querySelectorAll(selector: string): Iterable<{ readonly textContent: string | null }>;
}

const who = { email: 'ada@example.test', password: 'another long password', name: 'Ada' };
const zone = 'Australia/Adelaide';
const pictures = process.env['PICTURES'];

let testbed: TestConsole;
let browser: Browser;
let ada: Client;
let key: string;
let accountId: string;
let running: Promise<unknown>;

before(async () => {
  buildPages();
  testbed = await startDemo();
  browser = await launchBrowser();
  await fill();
});
after(async () => {
  await running;
  await browser?.close();
  await testbed?.stop();
});

function call(content: string, model = 'gpt-5.4-mini', by = key) {
  return post('/chat/completions', { model, messages: [{ role: 'user', content }] }, by);
}

function post(path: string, body: object, by = key) {
  return fetch(`${testbed.origin}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).then((answer) => answer.text());
}

/** Every kind of movement that does not take days. */
async function fill(): Promise<void> {
  const boss = await operatorOf(testbed);
  ada = testbed.browser();
  await ada.send('/auth/sign-up/email', { body: who });
  accountId = (await ada.send('/me')).json.account.id;
  key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
  const change = (path: string, body: object) =>
    boss.send(path, { body: { reason: 'test', ...body }, headers: { 'idempotency-key': crypto.randomUUID() } });
  await change(`/admin/accounts/${accountId}/multiplier`, { multiplier: '1.2' });
  await change(`/admin/accounts/${accountId}/credit`, { amount: '50', reason: 'top-up by bank' });
  const bank = { kind: 'top-up', reason: 'top-up by card', reference: 'card-1' };
  await testbed.gateway.find(ledger)!.credit(accountId, parseUsd('9.99'), bank);
  await testbed.gateway
    .find(pool)!
    .refundCredit(accountId, 'card-1', parseUsd('4.99'), { reason: 'dispute', reference: 'dispute-1' });
  await change(`/admin/accounts/${accountId}/debit`, { amount: '0.5', reason: 'a correction' });
  await Promise.all([call('Hello'), call('Write a poem'), call('And another one')]);
  await call('Hello', 'claude-opus-4-7');
  await post('/images/generations', { model: 'gpt-image-2', prompt: 'a paper lighthouse' });
  const charged = await eventually(
    () => ada.send('/wallet/ledger?kind=CHARGE'),
    ({ json }) => json.rows.length >= 4,
  );
  const [newest] = charged.json.rows;
  await change(`/admin/requests/${newest.requestId}/refund`, { amount: newest.change.slice(1), reason: 'it was slow' });
  running = call('Slow [[sandbox: delay=45s]]');
  await eventually(
    () => ada.send('/wallet'),
    ({ json }) => json.held !== '0.00',
  );
}

async function eventually<Reply>(send: () => Promise<Reply>, isRight: (reply: Reply) => boolean): Promise<Reply> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const reply = await send();
    if (isRight(reply)) return reply;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('it did not come to that within ten seconds');
}

async function pageOf(person: { email: string; password: string }): Promise<Page> {
  const context = await browser.newContext({
    baseURL: testbed.origin,
    locale: 'en-US',
    timezoneId: zone,
    viewport: { width: 1280, height: 900 },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(40_000);
  await signIn(page, person);
  return page;
}

async function picture(page: Page, name: string): Promise<void> {
  if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

/** The dollars that a cell shows. */
const shown = (text: string) =>
  parseUsd(text.replaceAll(',', '').replace('$', '').replace('−', '-').replace('+', '').trim());

test('the wallet lists movements like a bank statement, with reserved money beside the balance', async () => {
  const page = await pageOf(who);
  await page.goto('/console/wallet');
  const table = page.getByRole('region', { name: 'Ledger', exact: true });
  await table.getByText('dispute').waitFor();
  await picture(page, 'wallet');
  const cells = await table
    .getByRole('row')
    .evaluateAll((rows) =>
      (rows.slice(1) as unknown as Cells[]).map((row) =>
        Array.from(row.querySelectorAll('td, th'), ({ textContent }) => String(textContent)),
      ),
    );
  const lines = cells.map((row) => ({ kind: row[1]!, change: shown(row.at(-2)!), after: shown(row.at(-1)!) }));
  assert.equal(new Set(lines.map(({ kind }) => kind)).size, 5, lines.map(({ kind }) => kind).join());
  for (const [index, { kind, change, after }] of lines.entries()) {
    assert.equal(after - change, lines[index + 1]?.after ?? 0n, kind);
    if (kind === 'Call charged') assert.ok(change < 0n, `${change}`);
  }
  const { balance, held } = (await ada.send('/wallet')).json;
  assert.equal(formatUsd(lines[0]!.after), balance);
  assert.ok(parseUsd(held) > 0n);
  const bars = await page.locator('.share').allTextContents();
  assert.ok(bars.length > 0 && bars.every((words) => /^\$[\d.,]+ of \$[\d.,]+ left$/.test(words)), bars.join('; '));
  const line = table.getByRole('row', { name: /Call charged/ }).last();
  assert.match(await line.innerText(), /gpt-\S+ · key laptop · [\d,]+ tokens in, [\d,]+ out/);
  await page.getByRole('button', { name: 'Custom', exact: true }).click();
  await page.getByRole('button', { name: 'Yesterday', exact: true }).click();
  await table.getByText('Call charged').first().waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Yesterday', exact: true }).click();
  await picture(page, 'wallet-span');
  await page.getByRole('button', { name: 'This month', exact: true }).click();
  await table.getByText('Call charged').first().waitFor();
  await page
    .getByText(/Set aside for running calls \$0\.0/)
    .first()
    .waitFor();
  await page.close();
});

test('a credit line set by an operator on the page of an account pays its calls, and both pages show the used and the remaining amount', async () => {
  const email = 'cy@example.test';
  const cy = await clientOf(testbed, email);
  const { id } = (await cy.send('/me')).json.account;
  const own = (await cy.send('/keys', { body: { name: 'laptop' } })).json.key;
  assert.equal((await cy.send('/wallet')).json.balance, '0.00');
  const account = `/console/admin/accounts/${id}`;
  const boss = await pageOf(operator);
  await boss.goto(account);
  await boss.getByText('This account pays before it calls.').waitFor();
  await boss.getByRole('button', { name: 'Set the credit line', exact: true }).click();
  const dialog = boss.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Each month', exact: true }).fill('20');
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('pays by invoice');
  await dialog.getByRole('button', { name: 'Set the credit line', exact: true }).click();
  await boss.getByText('Left this month $20.00', { exact: true }).waitFor();
  await call('Hello', 'gpt-5.4-mini', own);
  const { line } = (
    await eventually(
      () => cy.send('/credit-line'),
      ({ json }) => json.line.months[0]?.used !== '0.00',
    )
  ).json;
  const { month, used, due } = line.months[0];
  const [{ change }] = (await cy.send('/wallet/ledger?kind=CHARGE')).json.rows;
  assert.deepEqual([used, due, parseUsd(line.left)], [change.slice(1), used, parseUsd('20') - parseUsd(used)]);
  await boss.reload();
  const client = await pageOf({ email, password: who.password });
  await client.goto('/console/wallet');
  for (const page of [boss, client]) {
    await page.getByText(`Left this month ${moneyText(line.left, 'en')}`, { exact: true }).waitFor();
    const row = page
      .getByRole('table', { name: 'Credit line', exact: true })
      .getByRole('row')
      .filter({ hasText: month });
    const amount = moneyText(used, 'en');
    await row
      .filter({ hasText: `${month}${amount}$0.00${amount}` })
      .getByText('running', { exact: true })
      .waitFor();
    await page.close();
  }
});

test('images and videos are listed with the charged price and its unit', async () => {
  const page = await pageOf(who);
  await page.goto('/console/models?kind=image');
  const priceOf = (id: string) => page.getByRole('row').filter({ hasText: id });
  await priceOf('gemini-3-pro-image-preview').getByText('$0.1608 per image').waitFor();
  await priceOf('gpt-image-2').getByText('$0.2532 per image').waitFor();
  await priceOf('gpt-image-2').getByText('$0.006 to $0.8544 by size and quality').waitFor();
  await picture(page, 'models-image');
  await priceOf('gpt-image-2').click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText('Longest prompt (characters)').waitFor();
  for (const fact of ['32,000', '3840 × 2160']) await drawer.getByText(fact, { exact: true }).waitFor();
  await page.goto('/console/models?kind=video');
  await priceOf('grok-imagine-video').first().getByText('$0.06 per second + $0.0024 per request').waitFor();
  await page.goto('/console/models?kind=chat');
  await page
    .getByText(/ \/ \$[\d.]+ per 1M tokens/)
    .first()
    .waitFor();
  await picture(page, 'models-chat');
  await page.close();
});

test("the money of today is in the rows, by the viewer's days, and agrees with the sums", async () => {
  const page = await pageOf(operator);
  await page.goto('/console/admin/money');
  await page.getByText(`Times in ${zone}`).first().waitFor();
  const table = page.getByRole('region', { name: 'By day', exact: true });
  const today = new Intl.DateTimeFormat('en-US', { day: 'numeric', month: 'short', timeZone: zone }).format(Date.now());
  const row = table.getByRole('row').filter({ hasText: today }).first();
  await row.waitFor();
  await table.getByRole('row').filter({ hasText: 'Sum of these rows' }).waitFor();
  for (const title of ['Cash in', 'Given', 'Used', 'Owed to clients', 'Written off (estimate)'])
    await page.getByText(title, { exact: true }).first().waitFor();
  await page.getByText('by hand $59.99 · less paid back $4.99').waitFor();
  await page.getByRole('region', { name: 'Models without own cost', exact: true }).getByText('gpt-5.4-mini').waitFor();
  await picture(page, 'money');
  await page.goto('/console/admin/monitor?span=24h');
  await page.getByText('By model').waitFor();
  await picture(page, 'monitor');
  await page.goto('/console/admin/prices');
  await page.getByRole('row').nth(3).waitFor();
  await picture(page, 'prices');
  await page.goto('/console/admin/requests');
  await page.getByRole('row').nth(3).waitFor();
  await picture(page, 'requests');
  await page.close();
});

test("the client's pages name the time zone, and results show when they expire", async () => {
  const page = await pageOf(who);
  await page.goto('/console/');
  await page.getByText(`Times in ${zone}`).first().waitFor();
  await picture(page, 'home');
  await page.goto('/console/usage');
  await page.getByText(`Times in ${zone}`).first().waitFor();
  await picture(page, 'usage');
  await page.goto('/console/tasks');
  await page
    .getByText(/The file is deleted in/)
    .first()
    .waitFor();
  await picture(page, 'tasks');
  await page.close();
});
