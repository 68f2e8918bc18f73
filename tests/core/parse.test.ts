/** Names with escape sequences are read rightly, whatever names were read before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../core/json/parse.ts';
import { readBody } from '../../core/json/request-body.ts';
import { parseInSlices } from '../../core/json/slices.ts';
import { fc } from '../helpers/properties.ts';

const quotable = new Set(['"', '\\']);

/** The JSON text of a string; characters whose number the mask has are written as escape sequences. */
function written(text: string, mask: number): string {
  const parts = Array.from({ length: text.length }, (_, index) => {
    const isEscaped = ((mask >> (index % 30)) & 1) === 1 || text.charCodeAt(index) < 0x20;
    if (isEscaped && !quotable.has(text[index]!)) return `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`;
    return quotable.has(text[index]!) ? `\\${text[index]}` : text[index];
  });
  return `"${parts.join('')}"`;
}

function writtenValue(value: unknown, mask: number): string {
  if (typeof value === 'string') return written(value, mask);
  if (Array.isArray(value)) return `[ ${value.map((entry) => writtenValue(entry, mask)).join(' ,')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${written(key, mask)} :${writtenValue(member, mask)}`);
  return `{${members.join(', ')}}`;
}

test('a text with any escapes after any names parses to the original', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '\\', '"', '\n', ':', '~', '{', ',', '0', 'é') });
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      name,
      fc.integer(),
      fc.array(tie('value')),
      fc.dictionary(name, tie('value'), { noNullPrototype: true }),
    ),
  }));
  fc.assert(
    fc.property(fc.dictionary(name, value, { noNullPrototype: true }), fc.nat(), (object, mask) => {
      const text = writtenValue(object, mask);
      assert.deepEqual(parseJson(text), object);
      assert.deepEqual(Object.keys(parseJson(text) as object), Object.keys(object));
    }),
    { numRuns: 2_000 },
  );
});

test('a name that ends in a backslash does not change how the escaped name of another body is read', async () => {
  const before = '{"type":"file","file_i\\\\":1}';
  const body = Buffer.from('{"input":[{"type":"file","file_i\\u0064":"file-1"}],"mode\\u006c":"a"}');
  JSON.parse(before);
  JSON.parse('{"input":1,"mode\\\\":1}');
  const expected = { input: [{ type: 'file', file_id: 'file-1' }], model: 'a' };
  assert.deepEqual(readBody(body, new Set()).json, expected);
  const options = { maxValues: 100, maxDepth: 10, pause: async () => {} };
  assert.deepEqual((await parseInSlices(body, options)).json, expected);
});

test('a name that unescapes to __proto__ is an ordinary member', () => {
  const read = parseJson('{"a":{"__prot\\u006f__":{"isAdmin":true}}}') as { a: object };
  assert.deepEqual(Object.keys(read.a), ['__proto__']);
  assert.equal(Object.getPrototypeOf(read.a), Object.prototype);
});

for (const text of ['{"\\u00":1}', '{"a\\n":}', '{"a\\n":1', '{"~\\n":1,}', '\\":'])
  test(`${text} is refused`, () => {
    assert.throws(() => parseJson(text), SyntaxError);
  });
