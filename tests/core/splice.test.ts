import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  applyEdits,
  type Changes,
  DepthError,
  editsFor,
  findMember,
  isObjectAt,
  scanObject,
} from '../../core/json/splice.ts';
import { fc } from '../helpers/properties.ts';

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const key = fc.oneof(
  fc.constantFrom('model', 'stream', 'n', 'metadata', '__proto__', ''),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

/** JSON text with odd white space, escapes and numbers that no parser keeps. */
const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('null', 'true', 'false', '1e400', '-0.10', '12345678901234567890', '"\\u0022\\\\"', '"a\\"]}{["'),
    fc.string({ unit: 'binary', maxLength: 60 }).map((text) => JSON.stringify(text)),
    tie('object'),
    fc.tuple(space, fc.array(tie('value'), { maxLength: 3 })).map(([gap, items]) => `[${gap}${items.join(`${gap},`)}]`),
  ),
  object: objectText(tie('value')),
})).object;

function objectText(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const member = fc
    .tuple(key, fc.boolean(), space, space, space, value, space)
    .map(
      ([name, escapes, a, b, c, text, d]) =>
        `${a}${escapes ? escaped(name) : JSON.stringify(name)}${b}:${c}${text}${d}`,
    );
  return fc
    .tuple(space, fc.array(member, { maxLength: 5 }))
    .map(([gap, members]) => `{${gap}${members.join(',')}${gap}}`);
}

/** Each character as `\uXXXX`. */
function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index).toString(16).padStart(4, '0'));
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`;
}

function change(text: string, changes: Changes): string {
  const bytes = Buffer.from(text);
  return Buffer.from(applyEdits(bytes, editsFor(scanObject(bytes), changes))).toString();
}

/** Members in order, duplicates included, with their values as text. */
function members(text: string): [string, string][] {
  const bytes = Buffer.from(text);
  return scanObject(bytes).members.map((member) => [member.key, bytes.toString('utf8', member.valueStart, member.end)]);
}

test('the scan finds the members that JSON.parse finds', () => {
  fc.assert(
    fc.property(jsonText, (text) => {
      const bytes = Buffer.from(text);
      const scan = scanObject(bytes);
      assert.equal(scan.end, bytes.length);
      const parsed = JSON.parse(text);
      assert.deepEqual(new Set(scan.members.map((member) => member.key)), new Set(Object.keys(parsed)));
      for (const name of Object.keys(parsed)) {
        const member = findMember(scan, name)!;
        assert.deepEqual(JSON.parse(bytes.toString('utf8', member.valueStart, member.end)), parsed[name]);
        assert.deepEqual(JSON.parse(`{${bytes.toString('utf8', member.start, member.end)}}`), { [name]: parsed[name] });
      }
    }),
    { numRuns: 1500 },
  );
});

test('replacing a value changes no other byte', () => {
  fc.assert(
    fc.property(jsonText, fc.string({ unit: 'binary' }), (text, model) => {
      const value = JSON.stringify(model);
      const result = change(text, { replace: { model: value } });
      const expected = members(text).map(([name, old]) => [name, name === 'model' ? value : old]);
      assert.deepEqual(members(result), expected);
      assert.equal(withoutValues(result, 'model'), withoutValues(text, 'model'));
    }),
    { numRuns: 1500 },
  );
});

/** The text with the values of one member cut out: what must not change. */
function withoutValues(text: string, name: string): string {
  const bytes = Buffer.from(text);
  const named = scanObject(bytes).members.filter((member) => member.key === name);
  return applyEdits(
    bytes,
    named.map((member) => ({ start: member.valueStart, end: member.end, text: '' })),
  ).toString();
}

test('removing and inserting members keeps all others byte for byte, in order', () => {
  fc.assert(
    fc.property(jsonText, fc.subarray(['model', 'stream', 'n', '']), (text, removed) => {
      const insert = { stream_options: '{"include_usage":true}' };
      const result = change(text, { remove: new Set(removed), insert, replace: { metadata: '1.50' } });
      const kept = members(text).filter(([name]) => !removed.includes(name));
      const expected = kept.map(([name, value]) => [name, name === 'metadata' ? '1.50' : value]);
      assert.deepEqual(members(result), [...expected, ['stream_options', '{"include_usage":true}']]);
      JSON.parse(result);
    }),
    { numRuns: 1500 },
  );
});

test('without changes the bytes are the same', () => {
  const bytes = Buffer.from('{"a":1}');
  assert.equal(applyEdits(bytes, editsFor(scanObject(bytes), { remove: new Set(['b']), replace: { c: '1' } })), bytes);
});

test('inserting an option into a nested object keeps all other bytes', () => {
  const text = '{ "model" : "a",\n "stream_options" : { "x" : 1e400 } , "n":01e0 }'.replace('01e0', '1');
  const bytes = Buffer.from(text);
  const options = findMember(scanObject(bytes), 'stream_options')!;
  assert.ok(isObjectAt(bytes, options));
  const edits = editsFor(scanObject(bytes, options.valueStart), { insert: { include_usage: 'true' } });
  assert.equal(
    Buffer.from(applyEdits(bytes, edits)).toString(),
    '{ "model" : "a",\n "stream_options" : { "x" : 1e400,"include_usage":true } , "n":1 }',
  );
});

test('a key is found when escaped, and each duplicate of it is replaced', () => {
  assert.equal(
    change('{"mod\\u0065l":"a","model":"b"}', { replace: { model: '"c"' } }),
    '{"mod\\u0065l":"c","model":"c"}',
  );
});

test('nesting is counted and bounded without recursion', () => {
  const nested = (depth: number) => Buffer.from(`{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`);
  assert.equal(scanObject(nested(128)).members.length, 1);
  assert.throws(() => scanObject(nested(129)), DepthError);
  assert.throws(() => scanObject(Buffer.from(`{"a":${'['.repeat(500_000)}`)), DepthError);
  assert.equal(scanObject(Buffer.from(`{"a":"${'['.repeat(500)}"}`)).members.length, 1);
});

test('text that is no object is a syntax error, wherever it ends', () => {
  const whole = '{"a" : "x\\"y" , "b" : [1, {"c": null}] }';
  for (let length = 0; length < whole.length; length++)
    assert.throws(() => scanObject(Buffer.from(whole.slice(0, length))), SyntaxError, whole.slice(0, length));
  for (const text of ['[]', '"x"', '{a:1}', '{"a" 1}', '{"a":1 "b":2}', '{"a":}', '{,}'])
    assert.throws(() => scanObject(Buffer.from(text)), SyntaxError, text);
});

test('long strings with many escapes are scanned to their end', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('\\', '"', 'a', '/'), minLength: 40, maxLength: 200 }), (text) => {
      const bytes = Buffer.from(`{"k":${JSON.stringify(text)},"model":"m"}`);
      assert.deepEqual(
        scanObject(bytes).members.map((member) => member.key),
        ['k', 'model'],
      );
    }),
    { numRuns: 1000 },
  );
});
