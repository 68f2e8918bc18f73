/** Large JSON in slices: the same as in one go, never more work in one slice than stated, and an end at the bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../core/contract/errors.ts';
import { parseAhead, readBody } from '../../core/json/request-body.ts';
import { BoundError } from '../../core/json/scanner.ts';
import { defaultSizes, parseInSlices, type SliceOptions } from '../../core/json/slices.ts';
import { DepthError, scanObject } from '../../core/json/splice.ts';
import { fc } from '../helpers/properties.ts';

const mebi = 2 ** 20;
const none = async () => {};
const options: SliceOptions = { maxValues: 100_000, maxDepth: 128, pause: none };
/** So small that short texts are taken apart everywhere. */
const tiny = { scan: 7, run: 9, parse: 5, piece: 3 };

test('an object in tiny slices parses as with JSON.parse, with its members where scanObject finds them', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('\\', '"', '\\u0041', '__proto__', 'a'),
  );
  // Names have no escapes: V8's JSON.parse takes some of them for others, in the order in which it has met them.
  const key = text.filter((name) => !JSON.stringify(name).includes('\\'));
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      fc.constantFrom('\ud83d', '\ude00x', null, true, false, 0, -0.5, 1e21, '', {}, []),
      text,
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.array(tie('value'), { maxLength: 6 }),
      fc.dictionary(key, tie('value'), { maxKeys: 6 }),
    ),
  })).value;
  const space = fc.constantFrom('', ' ', '\n\t  ', '  \r\n                    ');
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(key, value, { maxKeys: 6 }),
      space,
      fc.constantFrom(0, 1, 9),
      async (object, around, indent) => {
        const bytes = Buffer.from(`${around}${JSON.stringify(object, undefined, indent)}${around}`);
        const sliced = await parseInSlices(bytes, { ...options, sizes: tiny });
        assert.deepEqual(sliced.json, JSON.parse(bytes.toString()));
        assert.deepEqual(Object.keys(sliced.json), Object.keys(JSON.parse(bytes.toString()) as object));
        assert.deepEqual(sliced.scan, scanObject(bytes));
      },
    ),
    { numRuns: 300 },
  );
});

test('any bytes are accepted or refused as by JSON.parse', async () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\"',
    '"',
    '1',
    '-',
    'tru',
    'true',
    'null',
    ' ',
    '\\',
    '01',
    '"\n"',
    'é',
    '"b":',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 14 }), async (tokens) => {
      const bytes = Buffer.from(`{${tokens.join('')}`);
      const expected = attempt(() => JSON.parse(bytes.toString()));
      const sliced = await parseInSlices(bytes, { ...options, sizes: tiny }).then(
        ({ json }) => ({ json }),
        () => undefined,
      );
      assert.deepEqual(sliced, expected && { json: expected.value }, bytes.toString());
    }),
    { numRuns: 3_000 },
  );
});

function attempt(parse: () => unknown): { value: unknown } | undefined {
  try {
    return { value: parse() };
  } catch {
    return undefined;
  }
}

test('a repeated member has its last value, and "__proto__" is an ordinary member', async () => {
  const bytes = Buffer.from('{"a":{"x":[1,2,3,4,5,6]},"__proto__":{"y":"long enough to be alone"},"a":2}');
  const { json, scan } = await parseInSlices(bytes, { ...options, sizes: tiny });
  assert.deepEqual(json, JSON.parse(bytes.toString()));
  assert.equal(Object.getPrototypeOf(json), Object.prototype);
  assert.deepEqual(
    scan.members.map(({ key }) => key),
    ['a', '__proto__', 'a'],
  );
  await parseAhead(bytes, 1_000, none);
  assert.throws(() => readBody(bytes, new Set()), /__proto__/);
});

const hostile: Record<string, string> = {
  'a million members': `{"model":"m","messages":[],${Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`).join(',')}}`,
  'empty lists': `{"model":"m","messages":[${'[],'.repeat(10 * mebi)}[]]}`,
  'one list of numbers': `{"model":"m","messages":[${'1,'.repeat(4 * mebi)}1]}`,
};

for (const [name, text] of Object.entries(hostile)) {
  test(`${name}: the scan stops at the bound, long before the end`, async () => {
    const bytes = Buffer.from(text);
    let worked = 0;
    const pause = async (slice: number) => {
      worked += slice;
    };
    await assert.rejects(parseInSlices(bytes, { ...options, pause }), BoundError);
    assert.ok(worked < 2 * mebi && worked < bytes.length / 4, `${worked} of ${bytes.length} bytes`);
    await assert.rejects(parseAhead(bytes, 100_000, none), (error) => {
      return error instanceof GatewayError && error.status === 400 && /100000 members/.test(error.message);
    });
  });
}

test('too deep nesting ends the scan at its place', async () => {
  const bytes = Buffer.from(`{"a":${'['.repeat(5 * mebi)}${']'.repeat(5 * mebi)}}`);
  let pauses = 0;
  const pause = async () => {
    pauses += 1;
  };
  await assert.rejects(parseInSlices(bytes, { ...options, pause }), DepthError);
  assert.equal(pauses, 0);
});

/** What is within the bounds, but would take long in one go. */
const heavy: Record<string, string> = {
  'an image of 10 MB': `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,${'A'.repeat(10 * mebi)}"}}]}]}`,
  'a text of escapes': `{"model":"m","text":"${'\\"\\u00e9'.repeat(mebi)}"}`,
  'a text of many bytes for each character': `{"model":"m","text":"${'語'.repeat(2 * mebi)}"}`,
  'white space': `{"model":"m",${' '.repeat(8 * mebi)}"messages":[1,${'\n'.repeat(8 * mebi)}2]}`,
  'as many values as may be': `{"model":"m","messages":[${'{"a":[1,"b"]},'.repeat(24_990)}1]}`,
  'few members with long names': `{${Array.from({ length: 60 }, (_, index) => `"${index}${'n'.repeat(60_000)}":1`).join(',')}}`,
};

for (const [name, text] of Object.entries(heavy)) {
  test(`${name}: reading in slices gives the result of one go, and yields after each bounded slice`, async () => {
    const bytes = Buffer.from(text);
    let longest = 0;
    let total = 0;
    let pauses = 0;
    const pause = async (slice: number) => {
      longest = Math.max(longest, slice);
      total += slice;
      pauses += 1;
    };
    const { json, scan } = await parseInSlices(bytes, { ...options, pause });
    assert.deepEqual(json, JSON.parse(text));
    assert.deepEqual(scan, scanObject(bytes));
    // A scan may run over a long string's end, which costs a native search alone.
    if (!/image|many bytes/.test(name))
      assert.ok(longest <= defaultSizes.parse + defaultSizes.scan, `${longest} bytes`);
    assert.ok(pauses >= 3 || bytes.length < mebi, `${pauses} pauses in ${total} bytes`);
  });
}
