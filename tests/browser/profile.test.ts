/** What a person does about themselves: the second factor, the name, the sessions. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { until } from '../helpers/until.ts';
import { test } from './browser-test.ts';
import { password, sharedStage } from './stage.ts';

const stage = sharedStage();

test('the second factor is enabled with a code, and its backup codes are shown once', async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/profile`);
  await page.getByRole('button', { name: 'Turn on', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Second factor', exact: true });
  await dialog.getByRole('textbox', { name: 'Current password', exact: true }).fill(password);
  await dialog.getByRole('button', { name: 'Turn on', exact: true }).click();
  await dialog.getByRole('img', { name: 'QR code for the authenticator app', exact: true }).waitFor();
  const secret = (await dialog.locator('code').textContent())!;
  await dialog.getByRole('textbox', { name: 'Code', exact: true }).fill(totp(secret));
  await dialog.getByRole('button', { name: 'Confirm', exact: true }).click();
  const codes = page.getByRole('dialog', { name: 'Backup codes', exact: true });
  const backup = (await codes.getByTestId('secret').textContent())!.trim().split('\n');
  assert.ok(backup.length >= 2, 'each code on a line of its own');
  await codes.getByRole('button', { name: 'I have saved it', exact: true }).click();
  await codes.waitFor({ state: 'hidden' });
  if (stage.isReal) {
    await page.getByText('on', { exact: true }).waitFor();
    const email = (await page
      .getByText(/@example\.test/)
      .first()
      .textContent())!;
    await page.getByRole('button', { name: 'Ada', exact: true }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByRole('textbox', { name: 'E-mail address', exact: true }).fill(email);
    await page.getByRole('textbox', { name: 'Password', exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const second = page.getByRole('textbox', { name: 'Code', exact: true });
    await second.fill('000000');
    await page.getByRole('button', { name: 'Confirm', exact: true }).click();
    await page.getByText('That code is not right').waitFor();
    await second.fill(backup[0]!);
    await page.getByRole('button', { name: 'Confirm', exact: true }).click();
    await page.getByRole('heading', { name: 'Home', level: 1, exact: true }).waitFor();
  }
  await page.context().close();
});

test('a new name is in the header at once, sessions are listed, and notices are chosen and tried', async () => {
  const page = await stage.page();
  await page.goto(`${stage.origin}/console/profile`);
  const name = `Ada ${Date.now()}`;
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name, exact: true }).waitFor();
  await page.getByText('this one').waitFor();
  const balance = page.getByRole('textbox', { name: 'Low balance: threshold', exact: true });
  const webhook = page.getByRole('checkbox', { name: 'Low balance: Webhook', exact: true });
  const address = page.getByRole('textbox', { name: 'Address of the webhook', exact: true });
  const save = page.getByRole('button', { name: 'Save notices', exact: true });
  await balance.fill('12.5');
  await webhook.check();
  await address.fill('http://127.0.0.1:9/x');
  await save.click();
  await page.getByText('The address of the webhook cannot be called').waitFor();
  await address.fill('https://hooks.example.test/x');
  await save.click();
  await page.getByRole('button', { name: 'Test: Webhook', exact: true }).click();
  await page.getByRole('status').filter({ hasText: /\w/ }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Test: Webhook', exact: true }).waitFor();
  await until('the threshold that was saved', async () => Number(await balance.inputValue()) === 12.5);
  assert.ok(await webhook.isChecked());
  assert.equal(await address.inputValue(), 'https://hooks.example.test/x');
  await page.context().close();
});

test('without a session, every page leads to the sign-in and back', async () => {
  const page = await stage.stranger();
  await page.goto(`${stage.origin}/console/usage?span=7d`);
  await page.waitForURL(/sign-in\?next=/);
  assert.equal(new URL(page.url()).searchParams.get('next'), '/usage?span=7d');
  await page.context().close();
  assert.deepEqual(stage.complaints, []);
});

/** RFC 6238 with the usual terms: SHA-1, 30 seconds, six digits. */
function totp(base32: string): string {
  const bits = [...base32.replace(/=+$/, '')].map((letter) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter.toUpperCase()).toString(2).padStart(5, '0'),
  );
  const bytes = bits
    .join('')
    .match(/[01]{8}/g)!
    .map((byte) => Number.parseInt(byte, 2));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const digest = createHmac('sha1', Buffer.from(bytes)).update(counter).digest();
  const offset = digest.at(-1)! & 15;
  const number = digest.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, '0');
}
