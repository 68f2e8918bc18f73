/** Counting attempts: never more than allowed in a window, never without a bound. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Devices, SignInAttempts } from '../../../plugins/console/people/devices.ts';
import { Throttle } from '../../../plugins/console/people/throttle.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

test('within a window no more than the allowed attempts pass, at any times', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      (gaps, most) => {
        const host = fakeHost();
        const throttle = new Throttle(host.clock);
        const passed: number[] = [];
        for (const gap of gaps) {
          host.advance(gap);
          if (throttle.take('who', most, 1_000) === 0) passed.push(host.clock.monotonic());
        }
        // A window begins with the first that passes in it.
        let begins = Number.NEGATIVE_INFINITY;
        let count = 0;
        for (const at of passed) {
          if (at - begins >= 1_000) {
            begins = at;
            count = 0;
          }
          count++;
          assert.ok(count <= most);
        }
      },
    ),
  );
});

test('a refusal has the wait, and that wait is enough', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  assert.equal(throttle.take('who', 1, 1_000), 0);
  host.advance(300);
  const waitMs = throttle.take('who', 1, 1_000);
  assert.equal(waitMs, 700);
  host.advance(waitMs);
  assert.equal(throttle.take('who', 1, 1_000), 0);
});

test('an attempt at the end of a window begins the next one', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  throttle.take('who', 2, 1_000);
  host.advance(1_000);
  assert.equal(throttle.take('who', 2, 1_000), 0);
  host.advance(1);
  assert.equal(throttle.take('who', 2, 1_000), 0, 'the second of its window');
  assert.equal(throttle.take('who', 2, 1_000), 999);
});

test('attempts from one address lock the account for that address alone; a known device never waits for others', () => {
  const host = fakeHost();
  const attempts = new SignInAttempts(new Throttle(host.clock), 10, 1_000);
  const from = (address: string, isKnown = false) => attempts.take({ email: 'owner@example.test', address, isKnown });
  for (let attempt = 0; attempt < 10; attempt++) assert.equal(from('192.0.2.1'), 0);
  assert.ok(from('192.0.2.1') > 0);
  assert.equal(from('192.0.2.2'), 0);
  // Many addresses together come to the account's own bound.
  let passed = 0;
  for (let address = 0; address < 300; address++) passed += from(`198.51.100.${address}`) === 0 ? 1 : 0;
  assert.ok(passed < 100, `${passed}`);
  assert.ok(from('192.0.2.3') > 0);
  assert.equal(from('192.0.2.1', true), 0);
  for (let attempt = 0; attempt < 9; attempt++) assert.equal(from('192.0.2.4', true), 0);
  assert.ok(from('192.0.2.5', true) > 0);
  host.advance(1_000);
  assert.equal(from('192.0.2.1'), 0);
});

test('the cookie of a device is valid for its account and secret alone', () => {
  const names = { prefix: 'gw', secure: true };
  const devices = new Devices(names, 'secret');
  const { name, value, options } = devices.cookieFor('Owner@example.test');
  assert.ok(options.secure && options.httpOnly && name.startsWith('__Secure-gw.'));
  assert.ok(devices.knows('owner@example.test', `a=b; ${name}=${value}`));
  assert.ok(!devices.knows('other@example.test', `${name}=${value}`));
  assert.ok(!devices.knows('owner@example.test', `${name}=${value.slice(1)}`));
  assert.ok(!devices.knows('owner@example.test', null));
  assert.ok(!new Devices(names, 'another').knows('owner@example.test', `${name}=${value}`));
});

test('a flood of names keeps a bounded number of them', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  for (let name = 0; name < 50_000; name++) throttle.take(`name ${name}`, 1, 1_000);
  assert.ok(throttle.size <= 20_000);
  assert.equal(throttle.take('name 49999', 1, 1_000) > 0, true);
});

test('a lock stays while others make many attempts, of its kind and of another, and applies to an IPv6 network', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  const attempts = new SignInAttempts(throttle, 10, 60_000);
  const from = (address: string) => attempts.take({ email: 'owner@example.test', address, isKnown: false });
  for (let attempt = 0; attempt < 10; attempt++) assert.equal(from(`2001:db8:1:2::${attempt + 1}`), 0);
  for (let other = 0; other < 25_000; other++) {
    throttle.take(`address:${other}`, 20, 60_000);
    attempts.take({ email: `${other}@example.test`, address: '192.0.2.1', isKnown: false });
  }
  assert.ok(from('2001:db8:1:2:3::1') > 0);
  assert.equal(from('2001:db8:1:3::1'), 0);
});
