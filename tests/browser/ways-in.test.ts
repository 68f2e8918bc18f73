/** What a browser and others outside must do together: passkeys, a provider that vouches for people, money that is paid in; and an upstream's test. */
import assert from 'node:assert/strict';
import type { Browser, Locator, Page } from 'playwright-core';
import { configFiles } from '../../core/contract/config-files.ts';
import { type FakeProvider, startProvider } from '../helpers/fake-oidc.ts';
import { type FakeStripe, secretKey, startFakeStripe, webhookSecret } from '../helpers/fake-stripe.ts';
import { freePort } from '../helpers/free-port.ts';
import { firstToken, operator, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, openPage } from './chromium.ts';
import { findingsOf } from './looks.ts';
import { buildPages } from './operator-stage.ts';

const password = 'a long enough password';
let testbed: TestConsole;
let origin: string;
let provider: FakeProvider;
let stripe: FakeStripe;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

before(async () => {
  buildPages();
  const port = await freePort();
  origin = `http://localhost:${port}`;
  [provider, stripe] = await Promise.all([startProvider(), startFakeStripe(Date.now)]);
  testbed = await startDemo('demo', sections(), port);
  const link = { token: firstToken(testbed), ...operator };
  assert.equal((await testbed.browser().send('/first-operator', { body: link })).status, 200);
  browser = await launchBrowser();
  page = await openPage(browser, complaints, { baseURL: origin });
});
after(async () => {
  await browser?.close();
  await testbed?.stop();
  await stripe?.close();
  provider?.close();
});

/** Payments, and one address that passkeys, the provider and payers come back to. */
const sections = () => `
plugins: [storage, request-log, files, auth, plans, rate-limit, sandbox, providers, models, idempotency, billing, shop, route, protocol-convert, task-store, payments, console]
payments: { secret_key: ${secretKey}, webhook_secret: ${webhookSecret}, api_base: "${stripe.origin}" }
console:
  origin: ${origin}
  oidc: { acme: { name: Acme, issuer: "${provider.issuer}", client_id: gateway, client_secret: shared } }
`;

async function signUp(as: Page, name: string): Promise<void> {
  const answer = await as.request.post(`${origin}/console/api/auth/sign-up/email`, {
    headers: { origin, 'x-console': '1' },
    data: { name, email: `${name.toLowerCase()}@example.test`, password },
  });
  assert.ok(answer.ok(), await answer.text());
}

async function signOut(name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
  await page.getByRole('button', { name: 'Use a passkey', exact: true }).waitFor();
}

/** Where the page says that the browser gave its ceremony up, it is tried again, as a person would. */
async function addPasskey(listed: Locator): Promise<void> {
  const givenUp = page.getByText('The passkey was not used.');
  for (let tries = 0; tries < 3; tries++) {
    await page.getByRole('button', { name: 'Add a passkey', exact: true }).click();
    await listed.or(givenUp).first().waitFor();
    if (await listed.isVisible()) return;
  }
  assert.fail('the browser gave it up three times');
}

/** Keeps the first answer of the list, which is asked for while the page opens, until a passkey has been added. */
async function delayFirstList(): Promise<void> {
  const added = page.waitForResponse(/verify-registration/);
  let requestCount = 0;
  await page.route('**/list-user-passkeys', async (route) => {
    requestCount += 1;
    if (requestCount > 1) return route.continue();
    const answer = await route.fetch();
    await added;
    await route.fulfill({ response: answer });
  });
}

test('a registered passkey signs its owner in without a password', async () => {
  const devices = await page.context().newCDPSession(page);
  await devices.send('WebAuthn.enable');
  const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await signUp(page, 'Ada');
  await delayFirstList();
  await page.goto('/console/profile');
  await page.getByRole('textbox', { name: 'Name of the passkey', exact: true }).fill('Laptop');
  await addPasskey(page.getByText('Laptop', { exact: true }));
  const { credentials } = await devices.send('WebAuthn.getCredentials', { authenticatorId });
  assert.deepEqual(
    credentials.map(({ rpId, isResidentCredential }) => [rpId, isResidentCredential]),
    [['localhost', true]],
  );
  await signOut('Ada');
  await page.getByRole('button', { name: 'Use a passkey', exact: true }).click();
  await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  await page.getByRole('button', { name: 'Ada', exact: true }).waitFor();

  await page.goto('/console/profile');
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByText('Laptop', { exact: true }).waitFor({ state: 'detached' });
  await signOut('Ada');
  await page.getByRole('button', { name: 'Use a passkey', exact: true }).click();
  await page.getByText('This passkey is not known here any more.').waitFor();
});

test('a person signed in by an identity provider returns to the page that they wanted', async () => {
  provider.claims = { sub: '7', email: 'pat@example.test', email_verified: true, name: 'Pat' };
  await page.goto('/console/wallet');
  await page.getByRole('button', { name: 'Continue with Acme', exact: true }).click();
  await page.getByRole('link', { name: 'Continue as Pat', exact: true }).click();
  await page.getByRole('heading', { name: 'Wallet', level: 1, exact: true }).waitFor();
  await page.getByRole('button', { name: 'Pat', exact: true }).waitFor();
  assert.equal(new URL(page.url()).origin, origin);
});

test('a person whom a provider may not sign in reads why, in their language, and nothing of what the address says', async () => {
  const stranger = await openPage(browser, complaints, { baseURL: origin, locale: 'de-DE' });
  provider.claims = { sub: '8', email: 'quin@example.test', email_verified: false, name: 'Quin' };
  await stranger.goto('/console/sign-in');
  await stranger.getByRole('button', { name: 'Weiter mit Acme', exact: true }).click();
  await stranger.getByRole('link', { name: 'Continue as Quin', exact: true }).click();
  const problem = stranger.getByTestId('provider-problem');
  await problem.getByText('Der Anbieter hat Ihre E-Mail-Adresse nicht bestätigt.').waitFor();
  assert.deepEqual(await findingsOf(stranger, '/console/sign-in?error=account_not_linked'), []);
  await picture(stranger, 'refused');
  await stranger.goto('/console/sign-in?error=%3Cb%3Ecall%200900&error_description=call+0900+now');
  await problem.getByText('Betreiber von').waitFor();
  assert.ok(!(await stranger.locator('body').innerText()).includes('0900'));
  await stranger.context().close();
});

/** Kept where `PICTURES` names a directory. */
async function picture(of: Page, name: string): Promise<void> {
  const directory = process.env['PICTURES'];
  if (directory !== undefined) await of.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
}

test('a top-up is paid on the page of the payment service, and the open page shows the risen balance', async () => {
  const chip = page.locator('.balance-chip');
  await chip.getByText('$0.00').waitFor();
  await page.route('https://pay.example/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>Payment service</title><link rel=icon href=data:,>' }),
  );
  await page.getByRole('button', { name: '$10.00', exact: true }).click();
  assert.equal(await page.getByRole('textbox', { name: 'Amount in USD', exact: true }).inputValue(), '10.00');
  await page.getByRole('textbox', { name: 'Amount in USD', exact: true }).fill('12.50');
  await page.getByRole('button', { name: 'Go to payment', exact: true }).click();
  await page.waitForURL('https://pay.example/**');
  const [session] = stripe.sessions.values();
  assert.deepEqual([session!.amount_total, session!.currency], [1_250, 'usd']);
  await page.goto(session!.success_url);
  await chip.getByText('$0.00').waitFor();
  const paid = stripe.pay(session!.id);
  const reply = await fetch(`${origin}/payments/webhook`, { method: 'POST', body: paid.body, headers: paid.headers });
  assert.equal(reply.status, 200);
  await chip.getByText('$12.50').waitFor();
  const again = await fetch(`${origin}/payments/webhook`, { method: 'POST', body: paid.body, headers: paid.headers });
  assert.equal(again.status, 200);
  await page.reload();
  await page.getByRole('row', { name: /Credit.*\+\$12\.50/ }).waitFor();
  await chip.getByText('$12.50').waitFor();
});

test('an operator tests a model of an upstream and sees how it answered', async () => {
  await signOut('Pat');
  await page.getByRole('textbox', { name: 'E-mail address', exact: true }).fill(operator.email);
  await page.getByRole('textbox', { name: 'Password', exact: true }).fill(operator.password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('link', { name: 'Upstreams', exact: true }).click();
  await page.getByRole('button', { name: 'anthropic', exact: true }).click();
  await page.getByTestId('upstream-anthropic').getByRole('button', { name: 'Test a model', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Test anthropic', exact: true });
  await dialog.getByRole('button', { name: 'Send the test', exact: true }).click();
  const outcome = dialog.getByTestId('test-outcome');
  await outcome.getByText('It answers').waitFor();
  assert.match(await outcome.innerText(), /Status\s+200[\s\S]+ ms[\s\S]+messages/);
  await page.keyboard.press('Escape');
  assert.deepEqual(await findingsOf(page, '/console/admin/config?tab=forms&form=signOn'), []);
  const acme = page.getByTestId('provider-acme');
  await acme.getByText(`${origin}/console/api/auth/callback/acme`).waitFor();
  await acme.getByRole('button', { name: 'Test', exact: true }).click();
  await acme.getByText('It answers as it should.').waitFor();
  await picture(page, 'providers');
  assert.deepEqual(complaints, []);
});

test('an operator adds a provider by its form, with a pasted secret that no file has', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('button', { name: 'Add provider', exact: true }).click();
  await page.getByLabel('Name', { exact: true }).fill('two');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText(`${origin}/console/api/auth/callback/two`).waitFor();
  await page.getByRole('textbox', { name: 'Issuer', exact: true }).fill(provider.issuer);
  await page.getByRole('textbox', { name: 'Client ID', exact: true }).fill('gateway');
  await page.getByRole('combobox', { name: 'Mail domains of its people', exact: true }).fill('two.example');
  await page.keyboard.press('Enter');
  const own = page.getByRole('group', { name: 'two.example', exact: true });
  await own.getByRole('combobox', { name: 'Passwords', exact: true }).click();
  await page.getByRole('option', { name: 'none: by the provider alone', exact: true }).click();
  await page.getByRole('textbox', { name: 'Paste a key', exact: true }).fill('shared-with-two');
  await page.getByRole('button', { name: 'Store key', exact: true }).click();
  const rules = page.getByRole('group', { name: 'Roles by claims', exact: true });
  await rules.getByRole('button', { name: 'Add rule', exact: true }).click();
  await rules.getByRole('textbox', { name: 'Has the value', exact: true }).fill('gateway-auditors');
  await rules.getByRole('combobox', { name: 'Role', exact: true }).click();
  await page.getByRole('option', { name: 'Operator', exact: true }).click();
  await page.getByText('No faults').waitFor();
  await page.getByRole('button', { name: 'Review and save', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Why?', exact: true }).fill('a second provider');
  await page.getByRole('button', { name: 'Save and apply', exact: true }).click();
  const two = page.getByTestId('provider-two');
  await two.getByText('Without passwords: two.example.').waitFor();
  await two.getByRole('button', { name: 'Test', exact: true }).click();
  await two.getByText('It answers as it should.').waitFor();
  const files = (await testbed.gateway.find(configFiles)!.view()).files.map(({ text }) => text).join('\n');
  assert.match(files, /client_secret: ["']?\$\{secret:sign-in-two\}/);
  assert.doesNotMatch(files, /shared-with-two/);
  assert.match(files, /roles: \[\{ claim: groups, value: gateway-auditors, role: operator \}\]/);
  await page.goto('/console/admin/config?tab=forms&form=signOn&entry=two');
  await rules.getByRole('button', { name: /groups gateway-auditors/ }).waitFor();
  assert.equal(await rules.getByLabel('Has the value').inputValue(), 'gateway-auditors');
});

test('an ended session is renewed in front of the page, which keeps the typed text', async () => {
  await page.goto('/console/wallet');
  await page.getByRole('textbox', { name: 'Code', exact: true }).fill('A code that was typed');
  await page.context().clearCookies();
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Your session has ended', exact: true });
  await dialog.getByRole('textbox', { name: 'E-mail address', exact: true }).fill(operator.email);
  await dialog.getByRole('textbox', { name: 'Password', exact: true }).fill(operator.password);
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  assert.equal(await page.getByRole('textbox', { name: 'Code', exact: true }).inputValue(), 'A code that was typed');
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  await page.getByText('There is no such code.').waitFor();
  assert.deepEqual(complaints, []);
});
