/** Addresses of files cannot be forged, changed, or used after they expire. */
import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import { checkedExpiry, isFileId, newFileId, originFor, signedPath } from '../../../plugins/files/address.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

const hex = (length: number) =>
  fc.array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length }).map((all) => all.join(''));
const fileId = hex(32).map((digits) => `file_${digits}`);
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => createSecretKey(bytes));
const instant = fc.integer({ min: 1_000_000_000_000, max: 9_000_000_000_000 });

function partsOf(path: string) {
  const url = new URL(path, 'http://x');
  const [, id] = /^\/v1\/files\/([^/]+)\/content$/.exec(url.pathname)!;
  return { fileId: id!, expires: url.searchParams.get('expires')!, signature: url.searchParams.get('signature')! };
}

test('an address is valid until it expires and never after, for any id, key and time', () => {
  fc.assert(
    fc.property(secret, fileId, instant, fc.integer({ min: 1, max: 10 ** 9 }), (key, id, now, lifetime) => {
      const parts = partsOf(signedPath(key, 'main', id, now + lifetime));
      const expiresAt = checkedExpiry(key, 'main', parts, now);
      assert.ok(expiresAt !== undefined && expiresAt >= now + lifetime && expiresAt < now + lifetime + 1000);
      assert.equal(checkedExpiry(key, 'main', parts, expiresAt - 1), expiresAt);
      assert.equal(checkedExpiry(key, 'main', parts, expiresAt), undefined);
    }),
  );
});

test('another id, time, signature, key or gateway is refused', () => {
  const other = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fileId, instant.map(String), hex(43));
  const part = fc.constantFrom('fileId' as const, 'expires' as const, 'signature' as const);
  fc.assert(
    fc.property(secret, secret, fileId, instant, part, other, (key, stranger, id, now, name, value) => {
      const parts = partsOf(signedPath(key, 'main', id, now + 60_000));
      fc.pre(parts[name] !== value && !key.equals(stranger));
      assert.equal(checkedExpiry(key, 'main', { ...parts, [name]: value }, now), undefined);
      assert.equal(checkedExpiry(stranger, 'main', parts, now), undefined);
      assert.equal(checkedExpiry(key, 'alt', parts, now), undefined);
    }),
  );
});

test('each single character of an address counts, also those that a decoder ignores', () => {
  const key = createSecretKey(Buffer.alloc(32, 7));
  const now = 1_800_000_000_000;
  const parts = partsOf(signedPath(key, 'main', `file_${'ab'.repeat(16)}`, now + 60_000));
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  for (const name of ['fileId', 'expires', 'signature'] as const) {
    for (let index = 0; index < parts[name].length; index++) {
      for (const letter of alphabet) {
        if (letter === parts[name][index]) continue;
        const changed = parts[name].slice(0, index) + letter + parts[name].slice(index + 1);
        assert.equal(checkedExpiry(key, 'main', { ...parts, [name]: changed }, now), undefined, changed);
      }
    }
    for (const changed of ['', `${parts[name]} `, ` ${parts[name]}`, `0${parts[name]}`, `${parts[name]}=`])
      assert.equal(checkedExpiry(key, 'main', { ...parts, [name]: changed }, now), undefined, changed);
  }
  assert.notEqual(checkedExpiry(key, 'main', parts, now), undefined);
});

test('ids are 128 random bits and do not repeat', () => {
  const { random } = fakeHost();
  const ids = new Set(Array.from({ length: 1000 }, () => newFileId(random)));
  assert.equal(ids.size, 1000);
  for (const id of ids) assert.ok(isFileId(id));
  for (const wrong of ['', 'file_', 'file_../../etc/passwd', `file_${'A'.repeat(32)}`, `file_${'a'.repeat(33)}`])
    assert.equal(isFileId(wrong), false, wrong);
});

test('a Host header is used only where it names this machine or network', () => {
  const listening = 'http://127.0.0.1:8080';
  const local = [
    'localhost',
    'localhost:8080',
    '127.0.0.1:1',
    '192.168.1.5:8080',
    '10.0.0.1',
    '[::1]:8080',
    'LOCALHOST',
  ];
  for (const host of local) assert.equal(originFor(host, listening), `http://${host.toLowerCase()}`, host);
  const foreign = [
    ...['evil.example', 'gateway.example:8080', '8.8.8.8', '[2606:4700::1111]', 'localhost.evil.example', ''],
    ...['localhost/x', 'localhost?x', 'localhost#x', 'user@localhost', 'localhost:x', 'localhost:99999', '0x7f.1'],
    ...['localhost\\evil', 'local host', 'localhost\r\nx: y', 'evil.example#.localhost', '127.1'],
  ];
  for (const host of [undefined, ...foreign]) assert.equal(originFor(host, listening), listening, host ?? 'none');
});
