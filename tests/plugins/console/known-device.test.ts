/** Wrong passwords, from one address and from many, do not lock an account's owner out of the console. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from './browser.ts';
import { clientOf, signIn, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
before(async () => {
  testbed = await startConsole(
    'sign_up: open\nthrottle: { per_address: 1000, per_account: 3 }',
    'server: { trusted_proxies: [127.0.0.1] }\n',
  );
});
after(() => testbed.stop());

/** As configured above. */
const most = 3;
const password = 'another long password';
const wrong = 'not this password';

async function signInFrom(browser: Browser, address: string, email: string, tried: string): Promise<number> {
  const body = { email, password: tried };
  return (await browser.send('/auth/sign-in/email', { body, headers: { 'x-forwarded-for': address } })).status;
}

async function guess(email: string, address: string): Promise<void> {
  for (let attempt = 0; attempt < most; attempt++)
    assert.equal(await signInFrom(testbed.browser(), address, email, wrong), 401);
  assert.equal(await signInFrom(testbed.browser(), address, email, wrong), 429);
}

test('wrong passwords from elsewhere do not lock the owner out, on any device', async () => {
  const email = 'owner@example.test';
  await clientOf(testbed, email);
  await guess(email, '192.0.2.1');
  assert.equal(await signInFrom(testbed.browser(), '192.0.2.2', email, password), 200);
  assert.equal(await signInFrom(testbed.browser(), '192.0.2.1', email, password), 429);
});

test('behind one address a device on which the owner has signed in before is not locked out', async () => {
  const email = 'office@example.test';
  const known = await clientOf(testbed, email);
  assert.equal((await signIn(known, { email, password })).status, 200);
  assert.equal((await known.send('/auth/sign-out', { body: {} })).status, 200);
  await guess(email, '192.0.2.7');
  assert.equal(await signInFrom(known, '192.0.2.7', email, password), 200);
  // A cookie that was made up, or of another account, stands for nothing.
  const forger = testbed.browser();
  for (const [name, value] of known.cookies) forger.cookies.set(name, `${value.slice(1)}0`);
  assert.equal(await signInFrom(forger, '192.0.2.7', email, password), 429);
  const other = await clientOf(testbed, 'other@example.test');
  assert.equal(await signInFrom(other, '192.0.2.7', email, password), 429);
});

test('attempts of a known device are limited by themselves', async () => {
  const email = 'stolen@example.test';
  const known = await clientOf(testbed, email);
  for (let attempt = 0; attempt < most; attempt++)
    assert.equal(await signInFrom(known, `192.0.2.${attempt}`, email, wrong), 401);
  assert.equal(await signInFrom(known, '192.0.2.99', email, password), 429);
});
