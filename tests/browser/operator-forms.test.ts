/** Forms over the configuration in a real browser, at a gateway whose files are copies of the demo's. */
import assert from 'node:assert/strict';
import { configFiles } from '../../core/contract/config-files.ts';
import { alertAdmin } from '../../plugins/common/domain/admin/alerts.ts';
import { noticeAdmin } from '../../plugins/common/domain/admin/notices.ts';
import { startStrictVendor } from '../helpers/strict-vendor.ts';
import { test } from './browser-test.ts';
import { changedLines, openForm, saveForm, sharedForms } from './config-forms.ts';
import { findingsOf } from './looks.ts';

const forms = sharedForms();

test('a form changes the file, keeps its comments, and is applied at once', async () => {
  const { page } = forms;
  const files = forms.testbed.gateway.find(configFiles)!;
  const before = (await files.view()).files.map(({ text }) => text).join('\n');
  const comments = (text: string) => text.split('\n').filter((line) => line.includes('#'));
  await openForm(forms, 'plans', 'pro');
  await page.getByRole('textbox', { name: 'Price in USD', exact: true }).fill('24.50');
  await saveForm(forms, 'dearer', '24.50');
  await openForm(forms, 'vendors');
  await page.getByRole('button', { name: 'Add vendor', exact: true }).click();
  await page.getByRole('combobox', { name: 'Preset', exact: true }).fill('groq');
  await page.getByRole('option', { name: 'Groq', exact: true }).first().click();
  await page.getByLabel('Name', { exact: true }).fill('groq-two');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText('GROQ_API_KEY', { exact: true }).waitFor();
  await saveForm(forms, 'a second account there', 'groq-two');
  await openForm(forms, 'notices');
  await page
    .getByRole('group', { name: 'Low balance', exact: true })
    .getByRole('textbox', { name: 'Threshold in USD', exact: true })
    .fill('12.50');
  const prices = page.getByRole('group', { name: 'Prices change', exact: true });
  await prices.getByRole('combobox', { name: 'Sent by', exact: true }).click();
  await page.getByRole('option', { name: 'Not sent', exact: true }).click();
  await saveForm(forms, 'fewer mails', 'channels: []');
  const usual = await forms.testbed.gateway.find(noticeAdmin)!.settings('', 'en');
  const shown = (kind: string) => usual.kinds.find((one) => one.kind === kind);
  assert.deepEqual([shown('price_change')?.channels, shown('low_balance')?.usual], [[], '12.50']);
  const after = (await files.view()).files.map(({ text }) => text).join('\n');
  assert.deepEqual(comments(after), comments(before));
  assert.match(after, /price: 24\.50/);
  assert.match(after, /groq-two:\n {4}preset: groq\n {4}keys: \$\{GROQ_API_KEY:-secret:groq-two\}/);
  await page.goto('/console/admin/config?form=sinks&add=1');
  await page.getByLabel('Name', { exact: true }).fill('ops');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('combobox', { name: 'Mail addresses', exact: true }).fill('ops@example.test');
  await page.keyboard.press('Enter');
  await saveForm(forms, 'somebody must know', 'ops@example.test');
  await openForm(forms, 'alerts', 'model_success');
  await page.getByRole('textbox', { name: 'Threshold', exact: true }).fill('0.8');
  await saveForm(forms, 'less strict', 'threshold: 0.8');
  const admin = forms.testbed.gateway.find(alertAdmin)!;
  assert.deepEqual(
    (await admin.rules()).flatMap(({ name, threshold, sinks }) => (name === 'model_success' ? [threshold, sinks] : [])),
    [0.8, ['ops']],
  );
  await page.goto('/console/admin/plans');
  await page.getByText('$24.50').waitFor();
});

test('prices, own cost and ratio of a model, and a plan, are changed where they are shown; a price below cost is refused there', async () => {
  const { page } = forms;
  await page.goto('/console/admin/prices?open=gpt-5.4-mini');
  await page.getByRole('button', { name: 'Edit prices and cost', exact: true }).click();
  const drawer = page.getByRole('dialog', { name: 'Change gpt-5.4-mini', exact: true });
  const cost = drawer.getByRole('group', { name: /^Own cost/ });
  await cost.getByRole('textbox', { name: 'Input', exact: true }).fill('0.3');
  await cost.getByRole('textbox', { name: 'Output', exact: true }).fill('2');
  // Both are written before the page is drawn again.
  await page.evaluate('{ const until = Date.now() + 700; while (Date.now() < until); }');
  await drawer
    .getByText(/cache_read is sold at 0\.075, below its cost of 0\.30/)
    .first()
    .waitFor();
  await cost.getByRole('textbox', { name: 'Cached input', exact: true }).fill('0.03');
  await saveForm(forms, 'what we pay', '0.3');
  await page.getByRole('button', { name: 'Close', exact: true }).first().click();
  await page.getByRole('row', { name: /gpt-5\.4-mini.*\$0\.30 \/ \$2\.00/ }).waitFor();
  await page.goto('/console/admin/plans');
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'pro', exact: true }) });
  await card.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Price in USD', exact: true }).fill('26');
  await saveForm(forms, 'dearer still', '26');
  await page.getByText('$26.00').waitFor();
});

test('a wrong value is reported at its field, a secret is not accepted, and a file with a fault cannot be saved', async () => {
  const { page } = forms;
  await openForm(forms, 'plans', 'pro');
  const price = page.getByLabel('Price in USD');
  await price.fill('a lot');
  await page.getByTestId('config-problems').waitFor();
  assert.match((await price.getAttribute('aria-describedby')) ?? '', /error/);
  assert.equal(await page.getByRole('button', { name: 'Review and save', exact: true }).isDisabled(), true);
  await page.getByRole('tab', { name: 'main.yaml', exact: true }).click();
  await page.getByText('a lot').first().waitFor();
  await page.getByRole('tab', { name: 'Forms', exact: true }).click();
  await page.getByRole('button', { name: 'Discard changes', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard changes', exact: true }).click();
  await openForm(forms, 'vendors', 'groq-two');
  const keys = page.getByRole('combobox', { name: 'Keys', exact: true });
  await keys.fill('gsk-not-a-name');
  await keys.press('Enter');
  await page.getByText(/not the secret itself/).waitFor();
  assert.equal(await page.getByText('Review and save').count(), 0);
});

test('an address beside a preset stays open and in its place while it is written and cleared', async () => {
  const { page } = forms;
  await openForm(forms, 'vendors');
  await page.getByRole('button', { name: 'Add vendor', exact: true }).click();
  await page.getByRole('combobox', { name: 'Preset', exact: true }).fill('azure');
  await page.getByRole('option', { name: 'Azure OpenAI', exact: true }).click();
  await page.getByLabel('Name', { exact: true }).fill('rented');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.locator('.addresses summary').click();
  const address = page.getByRole('textbox', { name: 'Address (responses)', exact: true });
  const place = await address.boundingBox();
  for (const written of ['https://rented.example/v1', 'https://rented.example/v2']) {
    const checked = page.waitForResponse('**/console/api/admin/config/check');
    await address.fill('');
    await address.fill(written);
    await checked;
    assert.deepEqual(await address.boundingBox(), place);
  }
  await page.getByRole('button', { name: 'Discard changes', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard changes', exact: true }).click();
  await page.getByText('Review and save').waitFor({ state: 'detached' });
});

test('a new model is written as one entry, is marked as not sold without a price, and is sold once it is saved', async () => {
  const { page } = forms;
  await page.goto('/console/admin/config?form=prices');
  await page.getByRole('button', { name: 'Add model', exact: true }).click();
  const form = page.getByRole('form', { name: 'Add model', exact: true });
  await form.getByText(/model is not sold/).waitFor();
  await form.getByRole('button', { name: 'Create', exact: true }).click();
  const name = form.getByRole('textbox', { name: 'Name', exact: true });
  await form.getByText('Choose a vendor.').waitFor();
  assert.equal(await name.getAttribute('aria-invalid'), 'true');
  await name.fill('acme/new-one:1');
  await form.getByRole('combobox', { name: 'Vendor', exact: true }).first().fill('openai');
  await page.getByRole('option', { name: 'openai', exact: true }).click();
  await form.getByRole('textbox', { name: 'Name there', exact: true }).fill('new-one');
  await form.getByRole('button', { name: 'Add vendor of this model', exact: true }).click();
  await form.getByRole('combobox', { name: 'Vendor', exact: true }).last().fill('groq-two');
  await page.getByRole('option', { name: 'groq-two', exact: true }).click();
  await form.getByText(/GROQ_API_KEY/).waitFor();
  await form.getByRole('textbox', { name: 'Context, in tokens', exact: true }).fill('200k');
  const price = form.getByRole('group', { name: 'Price in USD', exact: true });
  await price.getByRole('textbox', { name: 'Input', exact: true }).fill('1.25');
  await form.getByText(/model is not sold/).waitFor({ state: 'detached' });
  const lines = await changedLines(forms, async () => {
    await form.getByRole('button', { name: 'Create', exact: true }).click();
    // The gateway's own check names what is missing, at the price.
    await page
      .getByRole('group', { name: /^Price/ })
      .getByRole('alert')
      .getByText(/must name output/)
      .waitFor();
    await page
      .getByRole('group', { name: /^Price/ })
      .getByRole('textbox', { name: 'Output', exact: true })
      .fill('10');
    await saveForm(forms, 'a new one', 'acme/new-one:1');
  });
  assert.deepEqual(lines.gone, []);
  assert.deepEqual(
    lines.come.map((line) => line.trim()),
    [
      'models:',
      'acme/new-one:1:',
      'owned_by: openai',
      'targets: [openai/new-one, groq-two]',
      'context: 200k',
      'price:',
      'input: 1.25',
      'output: 10',
    ],
  );
  await page.goto('/console/admin/prices?search=acme');
  await page.getByText('acme/new-one:1').first().waitFor();
});

test('an added tier changes the example charge exactly, and leaves no trace when it is removed', async () => {
  const { page } = forms;
  await openForm(forms, 'prices', 'gpt-5.4-mini');
  const charge = page.getByTestId('price-example');
  await page.getByRole('textbox', { name: 'Input, count', exact: true }).fill('300000');
  await charge.getByText('(300,000 input × 0.75 + 1,000 output × 4.50) / 1M').waitFor();
  await page.getByRole('button', { name: 'Add tier', exact: true }).first().click();
  await page.getByRole('menuitem', { name: 'Long prompts', exact: true }).click();
  const form = page.getByRole('form', { name: 'Long prompts', exact: true });
  await form.getByRole('textbox', { name: 'Prompts of more tokens than', exact: true }).fill('100k');
  await form.getByRole('textbox', { name: 'Input', exact: true }).fill('1.500000001');
  await form.getByRole('button', { name: 'Add tier', exact: true }).click();
  // Half of it, for the service flex, is no whole number of nano-dollars.
  await page
    .getByRole('group', { name: /^Price/ })
    .getByRole('alert')
    .getByText(/not exact/)
    .waitFor();
  const tier = page.getByTestId('tier 100k');
  await tier.getByRole('textbox', { name: 'Input', exact: true }).fill('1.50000001');
  await charge.getByText('>100k').waitFor();
  // (300,000 × 1.50000001 + 1,000 × 4.50) / 1M
  await charge.getByText('$0.454500003', { exact: true }).waitFor();
  await tier.getByRole('textbox', { name: 'Prompts of more tokens than', exact: true }).fill('400k');
  await tier.getByRole('textbox', { name: 'Prompts of more tokens than', exact: true }).press('Enter');
  await charge.getByText('$0.2295', { exact: true }).waitFor();
  await page.getByRole('combobox', { name: 'Service asked for', exact: true }).click();
  await page.getByRole('option', { name: 'flex', exact: true }).click();
  await charge.getByText('$0.11475', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Remove >400k', exact: true }).click();
  await page.getByText('Review and save').waitFor({ state: 'detached' });
});

test('an auditor reads prices, tiers and the example, and has no controls to change them', async () => {
  const { page } = forms;
  await page.route('**/console/api/me', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), role: 'auditor' } });
  });
  await openForm(forms, 'prices', 'gpt-5.4');
  await page.getByTestId('price-example').getByText('$').first().waitFor();
  const price = page.getByRole('group', { name: /^Price/ });
  assert.ok((await price.getByRole('textbox').count()) > 4);
  for (const field of await price.getByRole('textbox').all()) assert.equal(await field.isDisabled(), true);
  for (const name of [/^Add model$/, /^Add tier$/, /^Remove/])
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, String(name));
  await page.goto('/console/admin/config?form=prices&add=1');
  await page.getByTestId('price-example').waitFor();
  assert.equal(await page.getByRole('form').count(), 0);
  await page.unroute('**/console/api/me');
});

test('every form is accessible', async () => {
  const { page } = forms;
  const findings: string[] = [];
  await openForm(forms, 'plans');
  for (const form of ['vendors', 'prices', 'plans', 'ratios', 'signUp', 'notices'])
    findings.push(...(await findingsOf(page, `${forms.testbed.origin}/console/admin/config?form=${form}`)));
  findings.push(...(await findingsOf(page, `${forms.testbed.origin}/console/admin/config?form=prices&add=1`)));
  assert.deepEqual(findings, []);
});

test('a vendor is added from nothing to its first answer by clicks: pasted key, test, ticked models, a call', async () => {
  const { page } = forms;
  const rightKey = 'sk-strict-0123456789abcdefXYZ1';
  await using vendor = await startStrictVendor(rightKey, ['gpt-5.4-mini', 'tiny-1']);
  await openForm(forms, 'vendors');
  await page.getByRole('button', { name: 'Add vendor', exact: true }).click();
  await page.getByLabel('Name', { exact: true }).fill('strict');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('textbox', { name: 'Address (chat)', exact: true }).fill(vendor.baseUrl);
  const [paste, tried] = [page.getByLabel('Paste a key'), page.getByRole('button', { name: 'Test', exact: true })];
  await paste.fill('sk-wrong-0123456789abcdef');
  await tried.click();
  await page.getByText('The address is private').waitFor();
  assert.deepEqual(vendor.seen, []);
  await saveForm(forms, 'a new vendor', 'strict');
  await tried.click();
  await page.getByText('status 401: Incorrect API key provided: ***').waitFor();
  await paste.fill(rightKey);
  await tried.click();
  await page.getByText('The vendor answered with 2 models.').waitFor();
  await page.getByRole('combobox', { name: 'Models to add', exact: true }).click();
  await page.getByRole('option', { name: 'gpt-5.4-mini (at one more vendor)', exact: true }).click();
  await page.getByRole('option', { name: /^tiny-1 \(no price/ }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Add chosen models', exact: true }).click();
  await page.getByRole('button', { name: 'Store key', exact: true }).click();
  await page.getByText('Ends in …XYZ1').waitFor();
  assert.equal(await paste.inputValue(), '');
  await saveForm(forms, 'its models', 'tiny-1');
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('The settings of strict name it').waitFor();
  await dialog.getByRole('textbox', { name: 'Why?', exact: true }).fill('by mistake');
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await dialog.getByText(/The settings of strict name "secret:strict"/).waitFor();
  await page.keyboard.press('Escape');
  await openForm(forms, 'prices', 'tiny-1');
  const price = page.getByRole('group', { name: /^Price/ });
  await price.getByRole('textbox', { name: 'Input', exact: true }).fill('1');
  await price.getByRole('textbox', { name: 'Output', exact: true }).fill('2');
  await saveForm(forms, 'its price', 'input: 1');
  const { account } = (await (await page.request.get('/console/api/me')).json()) as { account: { id: string } };
  const credited = await page.request.post(`/console/api/admin/accounts/${account.id}/credit`, {
    headers: { origin: forms.testbed.origin, 'x-console': '1', 'idempotency-key': crypto.randomUUID() },
    data: { amount: '1', reason: 'a test' },
  });
  assert.equal(credited.status(), 200, await credited.text());
  await page.goto('/console/playground');
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).click();
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).waitFor({ state: 'hidden' });
  await page.getByRole('combobox', { name: 'Model', exact: true }).click();
  await page.getByRole('option', { name: 'tiny-1', exact: true }).click();
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Hello');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Hello from the strict vendor').waitFor();
  const calls = vendor.seen.filter(({ path }) => path !== 'GET /strict/v1/models');
  assert.deepEqual(calls, [{ path: 'POST /strict/v1/chat/completions', key: rightKey }]);
  assert.deepEqual(
    await findingsOf(page, `${forms.testbed.origin}/console/admin/config?form=vendors&entry=strict`),
    [],
  );
});
