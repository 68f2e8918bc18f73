/** The form of keys, where requests carry them, and who counts as one address. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { Random } from '../../../core/contract/host-tools.ts';
import { displayPrefix, hashKey, isWellFormed, makeKey } from '../../../plugins/auth/key.ts';
import { networkOf } from '../../../plugins/common/kit/network-of.ts';
import { fc } from '../../helpers/properties.ts';

const random: Random = { bytes: randomBytes, fraction: Math.random };
const fixed = (bytes: Uint8Array): Random => ({ bytes: () => Buffer.from(bytes), fraction: () => 0 });

test('every key is well formed, and different secrets make different keys', () => {
  const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(secret, secret, (one, other) => {
      const key = makeKey(fixed(one));
      assert.match(key, /^sk-gw-[0-9A-Za-z]{49}$/);
      assert.ok(isWellFormed(key));
      assert.equal(makeKey(fixed(other)) === key, Buffer.compare(one, other) === 0);
    }),
  );
  assert.ok(isWellFormed(makeKey(fixed(new Uint8Array(32).fill(255)))));
  assert.ok(isWellFormed(makeKey(fixed(new Uint8Array(32)))));
});

test('a key with any one character changed is not well formed', () => {
  const character = fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_ ');
  fc.assert(
    fc.property(fc.nat({ max: 54 }), character, (index, replacement) => {
      const key = makeKey(random);
      const changed = key.slice(0, index) + replacement + key.slice(index + 1);
      assert.equal(isWellFormed(changed), changed === key);
    }),
    { numRuns: 500 },
  );
});

test('no other text is well formed', () => {
  fc.assert(fc.property(fc.string({ maxLength: 80 }), (text) => assert.equal(isWellFormed(text), false)));
});

test('the display prefix has eight characters of the secret', () => {
  const key = makeKey(random);
  assert.equal(displayPrefix(key), key.slice(0, 14));
});

test('the hash depends on the key and on the pepper', () => {
  const [pepper, other] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))];
  const key = makeKey(random);
  assert.equal(hashKey(key, pepper), hashKey(key, pepper));
  assert.notEqual(hashKey(key, pepper), hashKey(key, other));
  assert.notEqual(hashKey(key, pepper), hashKey(makeKey(random), pepper));
  assert.match(hashKey(key, pepper), /^[\w-]{43}$/);
});

test('an address counts as an IPv4 address or the first half of an IPv6 address', () => {
  const cases: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['1::3:4:5:6:7:8', '1:0:3:4'],
    ['::1', '0:0:0:0'],
    ['', ''],
  ];
  for (const [address, network] of cases) assert.equal(networkOf(address), network, address);
});
