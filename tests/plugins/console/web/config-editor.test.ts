/** What the config page suggests and marks while a gateway file is written. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { marksOf, offsetOf } from '../../../../plugins/console/web/src/pages/operator/config/lint.ts';
import { placeAt } from '../../../../plugins/console/web/src/pages/operator/config/place.ts';
import { listStep, type SchemaNode } from '../../../../plugins/console/web/src/pages/operator/config/schema.ts';
import { meaningAt, suggestionsAt } from '../../../../plugins/console/web/src/pages/operator/config/suggest.ts';
import { fc } from '../../../helpers/properties.ts';

const schema = JSON.parse(readFileSync('config/schema.json', 'utf8')) as SchemaNode;
const main = readFileSync('config/main.yaml', 'utf8');
const say = {
  unknown: (name: string, known: readonly string[]) => `unknown ${name}, known ${known.join(' ')}`,
  value: (value: string, allowed: readonly string[]) => `${value} is not ${allowed.join(' ')}`,
};

/** The text without its `|`, and where that stood. */
function marked(text: string): [string, number] {
  const offset = text.indexOf('|');
  return [text.slice(0, offset) + text.slice(offset + 1), offset];
}
const placed = (text: string) => placeAt(...marked(text));
const labels = (text: string) => suggestionsAt(schema, ...marked(text))?.options.map(({ label }) => label) ?? [];

test('at the left edge the sections of the file are suggested, except existing ones', () => {
  const found = labels('gateway: main\n|\nlisten: 1\n');
  assert.ok(found.includes('plugins') && found.includes('billing'));
  assert.ok(!found.includes('gateway') && !found.includes('listen'));
});

test('inside a section its own members are suggested with their sentence and default', () => {
  const found = suggestionsAt(schema, ...marked('auth:\n  public: []\n  |'))!;
  assert.deepEqual(
    found.options.map(({ label }) => label),
    ['carriers', 'secret', 'cache', 'jwt', 'failures'],
  );
  const carriers = found.options[0]!;
  assert.match(carriers.info, /Where a request may carry its key/);
  assert.equal(carriers.apply, 'carriers: ');
});

test('a half-written member is replaced from its first letter', () => {
  const [text, offset] = marked('auth:\n  car|');
  assert.equal(suggestionsAt(schema, text, offset)!.from, text.indexOf('car'));
});

test('values of a list of values are suggested after the colon, in lists and in braces', () => {
  assert.deepEqual(labels('log: |'), ['debug', 'info', 'warn', 'error', 'silent']);
  assert.ok(labels('auth:\n  carriers:\n    - |').includes('bearer'));
  assert.ok(labels('auth: { carriers: [bearer, |').includes('query'));
});

test('braces suggest the unused names of their level', () => {
  const found = labels('plans:\n  offers:\n    pro: { price: 20, |');
  assert.ok(found.includes('grant') && found.includes('limits'));
  assert.ok(!found.includes('price'));
  assert.ok(labels('plans:\n  offers:\n    pro: { grant: { amount: 1, |').includes('every'));
});

test('a list at the indent of its own name belongs to it', () => {
  assert.deepEqual(placed('plugins:\n- a\n- |')?.path, ['plugins', listStep]);
  assert.deepEqual(placed('plugins:\n- a\nau|')?.path, []);
  assert.deepEqual(placed('models:\n  a:\n    targets:\n      - provider: x\n        mo|')?.path, [
    'models',
    'a',
    'targets',
    listStep,
  ]);
});

test('nothing is suggested in a comment', () => {
  assert.equal(placed('log: info # |'), undefined);
});

test('a place is found at every offset of a real file, with any text cut after it', () => {
  fc.assert(
    fc.property(fc.nat(main.length), fc.nat(main.length), (offset, cut) => {
      const text = main.slice(0, Math.max(offset, cut));
      const place = placeAt(text, offset);
      if (place !== undefined) assert.ok(place.from <= offset && place.from >= 0);
    }),
  );
});

test("a member's description is shown at the pointer", () => {
  const text = 'billing:\n  journal: {}\n';
  assert.match(meaningAt(schema, text, text.indexOf('urnal'))!.text, /local file/);
  assert.equal(meaningAt(schema, text, text.indexOf('{}')), undefined);
});

test('the gateway files of this repository have no marks', () => {
  for (const name of ['main', 'alt', 'demo', 'demo-alt', 'shared', 'sandbox', 'passthrough']) {
    const text = readFileSync(`config/${name}.yaml`, 'utf8');
    assert.deepEqual(marksOf(schema, text, say), [], name);
  }
});

test('unknown members, wrong values and broken syntax are marked where they stand', () => {
  const text = 'log: loud\nauth:\n  carier: []\n';
  assert.deepEqual(
    marksOf(schema, text, say).map(({ from, to, message }) => [text.slice(from, to), message]),
    [
      ['loud', 'loud is not debug info warn error silent'],
      ['carier', 'unknown carier, known carriers cache'],
    ],
  );
  assert.equal(marksOf(schema, 'a: [1, 2\n', say).length > 0, true);
});

test('values from the environment are not judged', () => {
  assert.deepEqual(marksOf(schema, 'log: ${LOG:-info}\n', say), []);
});

test('a place in words becomes an offset, and one of another file none', () => {
  const text = 'a: 1\nb:\n  c: 2\n';
  assert.equal(offsetOf('main.yaml:3:3', '/etc/main.yaml', text), text.indexOf('c:'));
  assert.equal(offsetOf('main.yaml:1:1', 'main.yaml', text), 0);
  assert.equal(offsetOf('other.yaml:3:3', 'main.yaml', text), undefined);
  assert.equal(offsetOf('main.yaml:99:1', 'main.yaml', text), undefined);
});
