/** The known patterns: what they find, and what only looks like it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localChecks } from '../../../plugins/guardrails/checks/local.ts';
import { Regular } from '../../../plugins/guardrails/checks/regular.ts';
import { known, knownPatterns } from '../../../plugins/guardrails/checks/validated.ts';
import { fc } from '../../helpers/properties.ts';

const signal = new AbortController().signal;

async function found(type: string, config: object, text: string): Promise<string[]> {
  const check = localChecks.find(({ name }) => name === type)!;
  const parsed = (check.config as unknown as { parse(value: unknown): unknown }).parse(config);
  const open = await check.open(parsed, { read: async () => 'banana\n# a remark\ngreen  tea\n' } as never);
  const given = { stage: 'prompt', operation: 'chat', unread: 0, schema: undefined, signal, ask: undefined } as const;
  const { found: places = [] } = await open.judge({ ...given, texts: [{ role: 'user', text }] });
  return places.map(({ start, end, kind }) => `${kind} ${text.slice(start, end)}`);
}

const cases: readonly (readonly [pattern: string, text: string, ...found: string[]])[] = [
  ['email', 'to ada.l+x@mail.example.com, please', 'EMAIL ada.l+x@mail.example.com'],
  ['email', 'müller@exämple.de.', 'EMAIL müller@exämple.de'],
  ['email', 'a@b, @home, x@localhost'],
  ['card', 'card 4111 1111 1111 1111 and', 'CARD 4111 1111 1111 1111'],
  ['card', '5500-0000-0000-0004', 'CARD 5500-0000-0000-0004'],
  ['card', 'no card: 4111 1111 1111 1112, 1234567890123456'],
  ['iban', 'DE89 3704 0044 0532 0130 00 today', 'IBAN DE89 3704 0044 0532 0130 00'],
  ['iban', 'gb82west12345698765432', 'IBAN gb82west12345698765432'],
  ['iban', 'DE88 3704 0044 0532 0130 00'],
  ['phone', 'call +41 44 668 18 00 or (030) 1234567', 'PHONE +41 44 668 18 00', 'PHONE (030) 1234567'],
  ['phone', 'on 2026-11-28 of 1234567 in 3.14159265'],
  ['ip', 'from 192.168.1.7 and 2001:db8::1', 'IP 192.168.1.7', 'IP 2001:db8::1'],
  ['ip', 'version 1.2.3, 300.1.1.1, at 12:30:45'],
];
for (const [pattern, text, ...expected] of cases)
  test(`${pattern} in "${text}": ${expected.length === 0 ? 'nothing' : expected.join(', ')}`, async () => {
    assert.deepEqual(await found('patterns', { find: [pattern] }, text), expected);
  });

test('own expressions are RE2: one that would hang elsewhere ends at once, and one with a look-behind is refused', async () => {
  const start = performance.now();
  assert.deepEqual(await found('patterns', { own: { bad: '(a+)+$' } }, `${'a'.repeat(20_000)}!`), []);
  assert.ok(performance.now() - start < 10_000);
  await assert.rejects(found('patterns', { own: { bad: '(?<=x)y' } }, 'xy'), /no regular expression of RE2/);
});

const disguises = [
  ['a zero-width space', 'ba\u200bna\u200bna', 'ba\u200bna\u200bna'],
  ['a zero-width no-break space', 'ba\ufeffnana', 'ba\ufeffnana'],
  ['a soft hyphen and a tag sign', 'bana\u00adn\u{e0061}a', 'bana\u00adn\u{e0061}a'],
  ['full-width letters', '\uff42\uff41\uff4e\uff41\uff4e\uff41', '\uff42\uff41\uff4e\uff41\uff4e\uff41'],
  ['mathematical letters', '𝐛𝐚𝐧𝐚𝐧𝐚', '𝐛𝐚𝐧𝐚𝐧𝐚'],
  ['letters of other scripts', 'bаnаnа', 'bаnаnа'],
] as const;
for (const [what, text, expected] of disguises)
  test(`a word with ${what} is found, and its place is that of the text as written`, async () => {
    assert.deepEqual(await found('words', { list: ['banana'] }, `one ${text}, eaten`), [`WORD ${expected}`]);
    assert.deepEqual(await found('words', { list: ['b\uff41nana'] }, 'one banana'), ['WORD banana']);
  });

test('a number with signs that are not seen is found, and a letter with its accent apart is the letter', async () => {
  assert.deepEqual(await found('patterns', { find: ['card'] }, 'x 4111\u200b1111\u20601111 1111 y'), [
    'CARD 4111\u200b1111\u20601111 1111',
  ]);
  assert.deepEqual(await found('words', { list: ['café'] }, 'a cafe\u0301!'), ['WORD cafe\u0301']);
});

test('words are found in any case, as whole words, and from a file', async () => {
  assert.deepEqual(await found('words', { list: ['banana', 'green tea'] }, 'Banana, bananas, GREEN\ntea'), [
    'WORD Banana',
    'WORD GREEN\ntea',
  ]);
  assert.deepEqual(await found('words', { list: ['banana'], inside: true }, 'bananas'), ['WORD banana']);
  assert.deepEqual(await found('words', { list: './blocked.txt' }, 'a banana'), ['WORD banana']);
  assert.deepEqual(await found('words', { list: ['毒品'] }, '他们卖毒品吗'), ['WORD 毒品']);
});

test('a known pattern is found in no text without its hint', () => {
  const signs = fc.constantFrom(...'0123456789', ...' ./-()+:@', 'a', 'f', 'DE', '2001', '::', '192.168.', '+49 ', 'é');
  const native = Object.entries(knownPatterns).filter(([, { pattern }]) => pattern instanceof RegExp);
  fc.assert(
    fc.property(fc.string({ unit: signs, maxLength: 40 }), (text) => {
      for (const [name, { pattern, hint }] of native)
        if (text.search(pattern as RegExp) !== -1)
          assert.ok(known.test(text) && hint.test(text), `${name} in "${text}"`);
    }),
    { numRuns: 3_000 },
  );
});

test('own expressions find in a text in parts what they find in it at once, and leave turns of the event loop to others', async () => {
  const unit = fc.constantFrom('ab', 'b', ' ', 'x1', '1', '-', 'é', '😀', '\n');
  await fc.assert(
    fc.asyncProperty(fc.array(unit, { minLength: 20, maxLength: 60 }), fc.nat(200), async (pieces, shift) => {
      const text = 'y'.repeat(shift) + pieces.join('').repeat(Math.ceil(30_000 / pieces.join('').length));
      for (const pattern of ['a?b+', String.raw`\b1+\b`, '[^ ]{3,9}', 'b$', '(?m)^.', '😀.']) {
        const regular = new Regular(pattern, true);
        assert.deepEqual([...regular.parts(text)].flat(), [...regular.matches(text)], pattern);
      }
    }),
    { numRuns: 20 },
  );
  const filled = new Regular('(x+)+$', true);
  assert.deepEqual([...filled.parts(`${'x'.repeat(40_000)}!`)].flat(), []);
  assert.throws(() => [...filled.parts(`${'x'.repeat(200_000)}!`)], /too long/);
  const runs = new Regular('x+|y', true);
  const sizes = [...runs.parts(`${'x'.repeat(20_000)} ${'y '.repeat(30_000)}`)].map(({ length }) => length);
  // The long match has a turn for each length that is tried, and the rest is read in short parts again.
  assert.deepEqual(sizes.slice(0, 3), [0, 0, 1]);
  assert.ok(Math.max(...sizes) <= 8_192 / 2, String(sizes));
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    30_001,
  );
  const parts = [...new Regular('a(b|c)*d', true).parts('ab'.repeat(100_000))];
  assert.ok(parts.length >= 200_000 / 8_192, String(parts.length));
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const text = `${'word '.repeat(40_000)}order-4711 ${'word '.repeat(40_000)}`;
  assert.deepEqual(await found('patterns', { own: { order: 'order-[0-9]+' } }, text), ['ORDER order-4711']);
  isOver = true;
  assert.ok(turns >= text.length / 8_192, String(turns));
});
