/** A client from the first page to the last cent, on a gateway as it runs: money in, a call, its cost, an image, a revoked key. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { until } from '../helpers/until.ts';
import { after, before, test } from './browser-test.ts';
import { findingsOfPlainPage } from './looks.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let page: Page;
let key: string;
before(async () => {
  stage = await openStage('demo');
  page = await stage.page();
});
after(() => stage?.close());

const balance = async () => Number((await page.locator('.balance-chip').innerText()).replace(/[^\d.]/g, ''));

test('a redeemed code raises the balance, also in the header', async () => {
  await page.goto(`${stage.origin}/console/wallet`);
  await page.getByRole('textbox', { name: 'Code', exact: true }).fill(await stage.makeCode('5'));
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  await page.getByText('$5.00 was added to your balance.').waitFor();
  await page.locator('.balance-chip', { hasText: '$5.00' }).waitFor();
});

test('the playground makes its own key, streams an answer and shows its cost', async () => {
  await page.goto(`${stage.origin}/console/playground`);
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).click();
  const field = page.getByRole('textbox', { name: 'Key', exact: true });
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).waitFor({ state: 'hidden' });
  key = await field.inputValue();
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Tell me of lighthouses');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('link', { name: 'How the cost is made up', exact: true }).click();
  const formula = page.getByTestId('formula');
  await formula.waitFor();
  assert.match((await formula.textContent())!, /×.*= \$0\.\d+/);
  await page.keyboard.press('Escape');
});

test('the balance falls by what calls cost, without a reload', async () => {
  await page.goto(`${stage.origin}/console/`);
  await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await until('a header that shows less than before', async () => {
    const answer = await callWithKey();
    assert.equal(answer.status, 200, await answer.text());
    return (await balance()) < 5;
  });
});

test('the pages for clients show the balance, can be searched, and are accessible in light, in dark and narrow', async () => {
  const reader = await page.context().newPage();
  reader.on('console', (message) => void (message.type() === 'error' && stage.complaints.push(message.text())));
  const findings: string[] = [];
  for (const path of ['/docs/limits', '/docs/clients/codex', '/docs/'])
    findings.push(...(await findingsOfPlainPage(reader, stage.origin + path)));
  assert.deepEqual(findings, []);
  assert.match(await reader.locator('.reader').innerText(), /Balance: \$4\.\d+/);
  await reader.getByRole('searchbox').fill('model_not_found');
  await reader.locator('.results a').first().click();
  await reader.waitForURL('**/docs/errors#model_not_found');
  await reader.locator('tr:target').waitFor();
  await reader.close();
  assert.deepEqual(stage.complaints, []);
});

test('an image that was ordered by the API is in the gallery', async () => {
  const answer = await fetch(`${stage.origin}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-image-2', prompt: 'A lighthouse of paper', size: '1024x1024', quality: 'low' }),
  });
  assert.ok(answer.ok, await answer.text());
  await page.goto(`${stage.origin}/console/tasks`);
  const task = page.getByRole('article').filter({ hasText: 'A lighthouse of paper' }).first();
  await task.getByText('done').waitFor({ timeout: 30_000 });
  await task.getByRole('img', { name: 'A lighthouse of paper', exact: true }).waitFor();
  await page.waitForFunction('document.querySelector("article img").naturalWidth > 0');
});

test('a revoked key is refused', async () => {
  await page.goto(`${stage.origin}/console/keys`);
  const row = page.getByRole('row').filter({ hasText: 'Playground' });
  await row.getByRole('button', { name: 'More: Playground', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Revoke', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await row.getByText('revoked').waitFor();
  await until('a refusal', async () => (await callWithKey()).status === 401);
  assert.deepEqual(stage.complaints, []);
});

function callWithKey(): Promise<Response> {
  return fetch(`${stage.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello '.repeat(300) }] }),
  });
}

/** The guest's tab is in their own account; a second one, by a link, in the account that they have joined. */
async function eachTabStays(guest: Page): Promise<void> {
  const { accounts, account } = (await (await guest.request.get(`${stage.origin}/console/api/me`)).json()) as Me;
  const joined = accounts.find(({ id }) => id !== account.id)!;
  const second = await guest.context().newPage();
  await second.goto(`${stage.origin}/console/usage?account=${joined.id}`);
  await second.getByRole('link', { name: 'Usage' }).waitFor();
  assert.equal(await second.getByRole('link', { name: 'Wallet' }).count(), 0);
  await second.locator('.person-button').click();
  await second.getByRole('menuitem', { name: joined.name }).waitFor();
  assert.equal(await second.getByRole('menuitem', { name: joined.name }).getAttribute('aria-current'), 'true');
  await guest.reload();
  await guest.getByRole('link', { name: 'Wallet' }).waitFor();
  await second.reload();
  await second.getByRole('link', { name: 'Usage' }).waitFor();
  assert.equal(await second.getByRole('link', { name: 'Wallet' }).count(), 0);
  await second.close();
}

test('somebody joins an account by the link of an invitation, sees what their role includes, changes accounts and is removed', async () => {
  const guest = await stage.page();
  const me = async () => (await (await guest.request.get(`${stage.origin}/console/api/me`)).json()) as Me;
  const { person, account } = await me();
  await page.goto(`${stage.origin}/console/members`);
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const form = page.getByRole('dialog').first();
  await form.getByRole('textbox', { name: 'Address', exact: true }).fill(person.email);
  await form.getByRole('radio', { name: 'Viewer', exact: true }).check();
  await form.getByRole('button', { name: 'Invite', exact: true }).click();
  const link = (await form.getByText('/sign-up?join=').textContent())!;
  await form.getByRole('button', { name: 'Done', exact: true }).click();
  await guest.goto(link);
  await guest.getByRole('button', { name: /^Join / }).click();
  await guest.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await guest.getByRole('link', { name: 'Usage', exact: true }).waitFor();
  for (const hidden of ['Wallet', 'Keys', 'Files'])
    assert.equal(await guest.getByRole('link', { name: hidden, exact: true }).count(), 0);
  await guest.locator('.person-button').click();
  await guest.getByRole('menuitem', { name: new RegExp(`^${RegExp.escape(account.name)}`) }).click();
  await guest.getByRole('link', { name: 'Wallet', exact: true }).waitFor();
  assert.equal((await me()).account.id, account.id);
  await eachTabStays(guest);
  await page.reload();
  const row = page.getByRole('row').filter({ hasText: person.email }).filter({ hasText: 'Change role' });
  await row.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await row.waitFor({ state: 'detached' });
  assert.deepEqual((await me()).accounts.length, 1);
  await page.getByText('Who did what', { exact: true }).click();
  await page.getByRole('cell', { name: 'member.remove', exact: true }).waitFor();
});

interface Me {
  readonly person: { readonly email: string };
  readonly account: { readonly id: string; readonly name: string };
  readonly accounts: readonly { readonly id: string; readonly name: string }[];
}
