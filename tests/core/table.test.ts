/** Names from outside that plain objects have are in no table, and reach nothing where names are looked up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { table } from '../../core/contract/table.ts';
import { mediaTypeOfName, plainMediaType } from '../../plugins/common/kit/media-types.ts';
import { limitHeaders } from '../../plugins/rate-limit/headers.ts';

const names = ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

test('a table has only its own members', () => {
  const known = table({ one: 1, two: 2 }) as Record<string, number>;
  assert.equal(known['one'], 1);
  assert.deepEqual(Object.keys(known), ['one', 'two']);
  for (const name of names) {
    assert.equal(known[name], undefined, name);
    assert.equal(name in known, false, name);
  }
});

test('media types, file names and protocols named like members of objects are unknown', () => {
  for (const name of names) {
    assert.equal(plainMediaType(name), undefined, name);
    assert.equal(mediaTypeOfName(`picture.${name}`), undefined, name);
    assert.deepEqual(limitHeaders(name, [{ dimension: 'rpm', limit: 1, remaining: 1, resetMs: 0 }], 0), {}, name);
  }
});
