/** No pitfall is forgotten: each number is the name of a test, or listed with the reason why it is none. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const count = 240;
const sources = globSync('tests/**/*.test.ts').map((file) => readFileSync(file, 'utf8'));
const page = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const rows = [...page.matchAll(/^\| (\d{3}) \| (.+) \|$/gm)].map(([, number, text]) => ({
  number: number!,
  text: text!,
}));

/** Numbers in names such as `pitfall 139, 141: …` and `… and pitfall 071: …`. */
function tested(): Set<string> {
  const names = sources.flatMap((source) => [...source.matchAll(/pitfalls? ((?:\d{3}(?:, | and )?)+):/g)]);
  return new Set(names.flatMap(([, numbers]) => numbers!.match(/\d{3}/g)!));
}

test('each pitfall is the name of a test or listed with a reason, and none is both', () => {
  const names = tested();
  const listed = new Set(rows.map(({ number }) => number));
  const all = Array.from({ length: count }, (_, index) => String(index + 1).padStart(3, '0'));
  assert.deepEqual(
    all.filter((number) => !names.has(number) && !listed.has(number)),
    [],
  );
  assert.deepEqual(
    [...listed].filter((number) => names.has(number)),
    [],
  );
});

test('the tests that the list names are there', () => {
  const named = rows.flatMap(({ text }) => /^`(.+)`$/.exec(text)?.[1] ?? []);
  assert.ok(named.length > 0);
  for (const name of named)
    assert.ok(
      sources.some((source) => source.includes(`test('${name}'`) || source.includes(`test(\`${name}`)),
      name,
    );
});

test('the tests that the list names for public reports are there', () => {
  // A row of a table of cases has a part of the test's name.
  const files = globSync('tests/**/*.ts').map((file) => readFileSync(file, 'utf8'));
  const reported = [...page.matchAll(/^\| [\w.-]+\/[\w.-]+#\d+.* \| `(.+)` \|$/gm)].map(([, name]) => name!);
  assert.ok(reported.length > 0);
  for (const name of reported)
    assert.ok(
      files.some((source) => source.includes(name)),
      name,
    );
});
