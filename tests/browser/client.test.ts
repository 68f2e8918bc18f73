/** What a client does in the console, by mouse and keyboard, in a real browser. */
import assert from 'node:assert/strict';
import { test } from './browser-test.ts';
import { shows } from './chromium.ts';
import { sharedStage } from './stage.ts';

const stage = sharedStage();

test('signing up ends at the home page', async () => {
  const page = await stage.stranger();
  await page.goto(`${stage.origin}/console/`);
  await page.waitForURL(/\/console\/sign-in/);
  await page.getByRole('link', { name: 'Create an account', exact: true }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ada');
  await page.getByRole('textbox', { name: 'E-mail address', exact: true }).fill(`ada-${Date.now()}@example.test`);
  const password = page.getByRole('textbox', { name: 'Password', exact: true });
  await password.fill('short');
  await page.getByRole('button', { name: 'Create account', exact: true }).click();
  await page.getByText('Needs at least 10 characters').waitFor();
  await password.fill('a password of a test');
  await page.getByRole('button', { name: 'Create account', exact: true }).click();
  await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await page.context().close();
});

test('a wrong password is reported, and a return address in the URL cannot lead to another site', async () => {
  const page = await stage.stranger();
  await page.goto(`${stage.origin}/console/sign-in?next=//evil.example/`);
  await page.getByRole('textbox', { name: 'E-mail address', exact: true }).fill('ada@example.test');
  await page.getByRole('textbox', { name: 'Password', exact: true }).fill('wrong password here');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('The address or the password is wrong.').waitFor();
  if (!stage.isReal) {
    await page.getByRole('textbox', { name: 'Password', exact: true }).fill('right password here');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
    assert.equal(new URL(page.url()).origin, stage.origin);
  }
  await page.context().close();
});

test('a program that waits with a code is shown, and gets a key on chosen terms or is denied', async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/connect`);
  const code = page.getByLabel('Code');
  await code.fill('ZZZZ-ZZZZ');
  await page.keyboard.press('Enter');
  await page.getByText('No program waits with this code.').waitFor();
  await page.getByRole('button', { name: 'Try again', exact: true }).click();
  await code.fill('wdjb mjht');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Claude Code asks for a key', exact: true }).waitFor();
  await page.getByText('203.0.113.9').waitFor();
  await shows(page.getByRole('textbox', { name: 'Name', exact: true }), 'Claude Code on a laptop');
  await page.getByRole('textbox', { name: 'Spending cap', exact: true }).fill('10');
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  await page.getByText('The program gets its key now').waitFor();
  await page.goto(`${stage.origin}/console/connect?code=WDJB-MJHT`);
  await page.getByRole('button', { name: 'Deny', exact: true }).click();
  await page.getByText('The program gets no key').waitFor();

  // Home says the one command of a program that it can set up, and the set-up by hand.
  await page.route('**/console/api/info', async (route) => {
    const answer = await route.fetch();
    const info = await answer.json();
    await route.fulfill({ response: answer, json: { ...info, brand: { ...info.brand, docs: '/docs/' } } });
  });
  await page.goto(`${stage.origin}/console/`);
  const home = page.getByRole('region').or(page.locator('section'));
  await home.getByText('Codex', { exact: true }).click();
  const fetched = `curl -fsS ${stage.origin}/docs/connect.cjs`;
  await page.getByText(`${fetched} | node - codex --gateway ${stage.origin}`, { exact: true }).waitFor();
  await page.getByText('model_provider = "gateway"').waitFor();
  await page.context().close();
});

test('a key is made, shown once, used in the snippets, changed, rotated and revoked', async () => {
  const page = await stage.page();
  const name = `browser ${Date.now()}`;
  await page.goto(`${stage.origin}/console/keys`);
  await page.getByRole('button', { name: 'Create key', exact: true }).first().click();
  const form = page.getByRole('dialog', { name: 'Create key', exact: true });
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await form.getByRole('textbox', { name: 'Spending cap', exact: true }).fill('2.50');
  await form.getByRole('button', { name: 'Create key', exact: true }).click();

  const once = page.getByRole('dialog', { name: 'Your new key', exact: true });
  const key = (await once.getByTestId('secret').textContent())!.trim();
  assert.match(key, /^sk-\S{10,}$/);
  await page.keyboard.press('Escape');
  await once.waitFor();
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Copy');
  await once.getByRole('button', { name: 'I have saved it', exact: true }).click();
  const setUp = page.getByRole('dialog', { name: 'Set up a client with this key', exact: true });
  assert.match((await setUp.locator('pre').first().textContent())!, new RegExp(`/v1/chat/completions[\\s\\S]*${key}`));
  await setUp.getByText('Claude Code', { exact: true }).click();
  await setUp.getByText(`ANTHROPIC_AUTH_TOKEN=${key}`).waitFor();
  await setUp.getByText('PowerShell', { exact: true }).click();
  await setUp.getByText(`$env:ANTHROPIC_AUTH_TOKEN = '${key}'`).waitFor();
  await page.keyboard.press('Escape');
  await setUp.waitFor({ state: 'hidden' });
  await page.waitForFunction(`document.activeElement.textContent === 'Create key'`);
  await page.reload();
  await page.getByText(name).waitFor();
  assert.equal((await page.content()).includes(key), false, 'nothing keeps the key');

  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByText('$2.50 each month').waitFor();
  await row.getByRole('button', { name: `More: ${name}`, exact: true }).click();
  await page.getByRole('menuitem', { name: 'Edit', exact: true }).click();
  const change = page.getByRole('dialog', { name: 'Change key', exact: true });
  await change.getByRole('textbox', { name: 'Requests a minute', exact: true }).fill('60');
  await change.getByRole('button', { name: 'Save', exact: true }).click();
  await row.getByText('own limits').waitFor();
  await row.getByRole('button', { name: `More: ${name}`, exact: true }).click();
  await page.getByRole('menuitem', { name: 'Rotate', exact: true }).click();
  const rotation = page.getByRole('dialog', { name: `Rotate ${name}?`, exact: true });
  assert.equal(await rotation.getByRole('combobox').inputValue(), 'one more day');
  await rotation.getByRole('button', { name: 'Rotate', exact: true }).click();
  const second = page.getByRole('dialog', { name: 'The new secret of your key', exact: true });
  const secret = (await second.getByTestId('secret').textContent())!.trim();
  assert.match(secret, /^sk-\S{10,}$/);
  assert.notEqual(secret, key);
  await second.getByRole('button', { name: 'I have saved it', exact: true }).click();
  await row.getByText(`Earlier secret ${key.slice(0, 11)}… works until`).waitFor();
  assert.equal((await page.content()).includes(secret), false, 'nothing keeps the secret');
  await row.getByRole('button', { name: `More: ${name}`, exact: true }).click();
  await page.getByRole('menuitem', { name: 'Revoke', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await row.getByText('revoked').waitFor();
  await page.context().close();
});

test('a code is redeemed once, and the balance in the header shows it', async () => {
  const page = await stage.page();
  const code = await stage.makeCode('7');
  await page.goto(`${stage.origin}/console/wallet`);
  const field = page.getByRole('textbox', { name: 'Code', exact: true });
  await field.fill(code);
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  await page.getByText('$7.00 was added to your balance.').waitFor();
  await field.fill(code);
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  await page
    .getByText(/used|already/i)
    .first()
    .waitFor();
  await page.context().close();
});

test('a plan is bought from the balance', async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/wallet`);
  const cards = page.getByRole('article');
  await page.getByRole('heading', { name: 'Ledger', exact: true }).waitFor();
  if (stage.isReal) {
    await page.getByRole('textbox', { name: 'Code', exact: true }).fill(await stage.makeCode('500'));
    await page.getByRole('button', { name: 'Redeem', exact: true }).click();
    await page.getByText('$500.00 was added').waitFor();
  }
  const card = cards.filter({ hasText: /\$[1-9]/ }).filter({ has: page.locator('button:enabled') });
  const plan = (await card.first().getByRole('heading').textContent())!;
  await card
    .first()
    .getByRole('button', { name: /^(Buy|Extend)$/ })
    .click();
  const dialog = page.getByRole('dialog', { name: new RegExp(`the plan ${RegExp.escape(plan)}\\??$`) });
  await dialog.getByRole('button', { name: /^(Buy|Extend)$/ }).click();
  await page.getByText(`You are on the plan ${plan}.`).waitFor();
  if (!stage.isReal) {
    const dear = cards.filter({ has: page.locator('button:disabled') });
    await dear.getByText(/^You need \$[\d.]+ more\.$/).waitFor();
  }
  await page.context().close();
});

test('the cost of a call opens its calculation, by keyboard', {
  skip: process.env['CONSOLE_URL'] !== undefined && 'a new client has no calls',
}, async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/usage?span=7d&result=ok`);
  const first = page
    .getByRole('region', { name: 'Usage', exact: true })
    .getByRole('row')
    .nth(1)
    .getByRole('button')
    .first();
  await first.focus();
  await page.keyboard.press('Enter');
  const formula = page.getByTestId('formula');
  await formula.waitFor();
  assert.match((await formula.textContent())!, /×.*= \$\d+\.\d+/);
  assert.match(page.url(), /open=/);
  await page.keyboard.press('Escape');
  await formula.waitFor({ state: 'hidden' });
  await page.goBack();
  await page.context().close();
});

test('tasks show their state, and a waiting task is cancelled', {
  skip: process.env['CONSOLE_URL'] !== undefined && 'a new client has no tasks',
}, async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/tasks`);
  const waiting = page.getByRole('article').filter({ hasText: 'waiting' });
  await waiting.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).last().click();
  await page.getByText('The task is cancelled.').waitFor();
  await page.getByRole('article').filter({ hasText: 'done' }).getByRole('button').first().click();
  await page.getByRole('dialog').getByText('Download').first().waitFor();
  await page.context().close();
});

test('the playground streams an answer, and reports a wrong key', {
  skip: process.env['CONSOLE_URL'] !== undefined && 'needs money and a model',
}, async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/playground`);
  const key = page.getByRole('textbox', { name: 'Key', exact: true });
  await key.fill('sk-wrong');
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Hello');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('This key is not known.').waitFor();
  await key.fill('sk-browser');
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Hello again');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Hello from the model.').waitFor();
  await page.getByText('7 / 4').waitFor();
  const curl = await page.locator('pre').first().textContent();
  assert.match(curl!, /Bearer YOUR_KEY/);
  await page.context().close();
});

test('the keyboard alone reaches the content, and a change of language changes every text', async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/`);
  await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('link', { name: 'Skip to the content', exact: true }).waitFor();
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('document.activeElement.id'), 'content');
  await page.getByRole('button', { name: 'Language', exact: true }).click();
  await page.getByRole('menuitem', { name: '中文', exact: true }).click();
  await page.getByRole('heading', { name: '首页', level: 1, exact: true }).waitFor();
  assert.equal(await page.evaluate('document.documentElement.lang'), 'zh');
  const look = page.getByRole('combobox', { name: '搜索', exact: true });
  await page.keyboard.press('Control+k');
  await look.fill('english');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('colours: dark');
  await page.keyboard.press('Enter');
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('credit');
  await page.getByText('Nothing fits.').waitFor();
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('create a k');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Create key', exact: true }).waitFor();
  await page.context().close();
});

test("errors are shown in the reader's language, and an unknown address keeps the frame of the page", async () => {
  const page = await stage.page({ locale: 'zh-CN' });
  await page.goto(`${stage.origin}/console/nowhere/at/all`);
  await page.getByText('这里什么都没有').waitFor();
  await page.getByRole('navigation').getByRole('link', { name: '钱包', exact: true }).click();
  await page.getByRole('textbox', { name: '兑换码', exact: true }).fill('no such code');
  await page.keyboard.press('Enter');
  await page.getByText(/没有这个兑换码|所指内容不存在/).waitFor();
  await page.context().close();
});

test('buttons below plans that come late can be clicked when the plans are there, and stay where they are', async () => {
  const page = await stage.page();
  const { promise: rowsHaveCome, resolve: answerPlans } = Promise.withResolvers<void>();
  await page.route('**/console/api/wallet/plans', async (route) => {
    await rowsHaveCome;
    await route.continue();
  });
  await page.goto(`${stage.origin}/console/wallet`);
  await page.locator('.data-table .amount, .data-table .number').first().waitFor();
  const views = page.getByRole('button', { name: 'Saved views', exact: true });
  assert.equal(await views.isVisible(), false);
  answerPlans();
  await views.waitFor();
  const place = await views.boundingBox();
  assert.ok(place!.y > (await page.getByRole('heading', { name: 'Plans', exact: true }).boundingBox())!.y);
  await page.waitForLoadState('networkidle');
  assert.deepEqual(await views.boundingBox(), place);
  await page.context().close();
});

test('invitations below members that come late can be clicked when the members are there, and headings come with their rows', async () => {
  const page = await stage.page();
  const { promise: membersAreAsked, resolve: answerMembers } = Promise.withResolvers<void>();
  await page.route('**/console/api/members', async (route) => {
    await membersAreAsked;
    await route.continue();
  });
  const waiting = { id: 'invited', email: 'eve@example.test', role: 'viewer', acceptedAt: null, invitedBy: 'Ada' };
  const times = { createdAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 86_400_000).toISOString() };
  await page.route('**/console/api/members/invitations', (route) =>
    route.fulfill({ json: { rows: [{ ...waiting, ...times }] } }),
  );
  await page.goto(`${stage.origin}/console/members`);
  await page.getByRole('cell', { name: 'eve@example.test', exact: true }).waitFor();
  const again = page.getByRole('button', { name: /eve@example\.test/ }).first();
  const heading = page.locator('.data-table th').first();
  assert.equal(await heading.isVisible(), false);
  await assert.rejects(again.click({ trial: true, timeout: 500 }), /intercepts pointer events/);
  answerMembers();
  await again.click({ trial: true });
  const places = async () => [await again.boundingBox(), await heading.boundingBox()];
  const seen = await places();
  await page.waitForLoadState('networkidle');
  assert.deepEqual(await places(), seen);
  await page.context().close();
});

test('the browser reports no error and no violation of the policy', () => {
  assert.deepEqual(stage.complaints, []);
});
