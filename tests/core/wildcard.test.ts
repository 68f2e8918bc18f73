/** Patterns of settings with `*`, against regular expressions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLike } from '../../core/tools/wildcard.ts';
import { fc } from '../helpers/properties.ts';

const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.', '-'), maxLength: 12 });

test('a pattern names a text exactly where a regular expression does with .* for each star', () => {
  fc.assert(
    fc.property(text, text, (pattern, name) => {
      const parts = pattern.split('*').map((part) => part.replaceAll(/[.-]/g, String.raw`\$&`));
      assert.equal(isLike(pattern, name), new RegExp(`^${parts.join('.*')}$`, 's').test(name));
    }),
    {
      numRuns: 3_000,
      seed: 1,
      examples: [
        ['a*a', 'a'],
        ['a*b*a', 'aba'],
        ['*', ''],
        ['**', 'x'],
        ['', ''],
      ],
    },
  );
});

test('a pattern of many stars is compared with a long text at once', () => {
  const began = performance.now();
  assert.equal(isLike(`${'a*'.repeat(60)}b`, 'a'.repeat(20_000)), false);
  assert.ok(performance.now() - began < 10_000);
});
