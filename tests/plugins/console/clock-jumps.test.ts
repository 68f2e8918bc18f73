/** Signing in to the console while the machine's clock jumps by hours and days, in both directions. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { base32 } from '@better-auth/utils/base32';
import { createOTP } from '@better-auth/utils/otp';
import { clientOf, signIn, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
before(async () => {
  testbed = await startConsole('sign_up: open\nsession: 12h');
});
after(() => testbed.stop());

const hour = 3_600_000;
const day = 24 * hour;
const jumps = [-40 * day, -day, -hour, -31_000, 31_000, hour, day, 40 * day];

test('a session lasts until its end by the clock, and signing in works, wherever the clock jumps', async (context) => {
  const start = Date.now();
  context.mock.timers.enable({ apis: ['Date'], now: start });
  const who = { email: 'clock@example.test', password: 'another long password' };
  const first = await clientOf(testbed, who.email);
  for (const by of jumps) {
    context.mock.timers.setTime(start + by);
    const isOver = by > 12 * hour;
    assert.equal((await first.send('/me')).status, isOver ? 401 : 200, String(by));
    const again = testbed.browser();
    assert.equal((await signIn(again, who)).status, 200, String(by));
    assert.equal((await again.send('/me')).status, 200, String(by));
    context.mock.timers.setTime(start);
    // A session that was made ahead of time is one; one from long ago is over.
    assert.equal((await again.send('/me')).status, by < -12 * hour ? 401 : 200, `back from ${by}`);
  }
  assert.equal((await first.send('/me')).status, 200, 'it is the right time again');
});

test('a code of a second factor is valid once, also when the clock returns to its time', async (context) => {
  // The middle of a period of 30 s.
  const start = Math.floor(Date.now() / 30_000) * 30_000 + 15_000;
  context.mock.timers.enable({ apis: ['Date'], now: start });
  const who = { email: 'code@example.test', password: 'another long password' };
  const browser = await clientOf(testbed, who.email);
  const begun = await browser.send('/auth/two-factor/enable', { body: { password: who.password } });
  const secret = Buffer.from(base32.decode(new URL(begun.json.totpURI).searchParams.get('secret')!)).toString();
  const codeNow = () => createOTP(secret).hotp(Math.floor(Date.now() / 30_000));
  const verify = async (code: string) => {
    const one = testbed.browser();
    assert.equal((await signIn(one, who)).json.twoFactorRedirect, true);
    return (await one.send('/auth/two-factor/verify-totp', { body: { code } })).status;
  };
  const used = await codeNow();
  assert.equal((await browser.send('/auth/two-factor/verify-totp', { body: { code: used } })).status, 200);
  for (const by of jumps) {
    context.mock.timers.setTime(start + by);
    const code = await codeNow();
    if (Math.abs(by) > 60_000) {
      assert.equal(await verify(code), 200, `at ${by}`);
      assert.equal(await verify(used), 401, `the code of another time, at ${by}`);
    }
    assert.equal(await verify(code), by === 31_000 || by === -31_000 ? 200 : 401, `the same code again, at ${by}`);
    context.mock.timers.setTime(start);
    // It is remembered for two days.
    if (by <= day) assert.equal(await verify(used), 401, `back from ${by}`);
  }
});
