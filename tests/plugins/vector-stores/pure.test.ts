/** Texts in pieces, text out of HTML, and the nearest vectors, for anything that may come. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalOf, verdictOf } from '../../../plugins/vector-stores/embed.ts';
import { chunksOf, tokensOf } from '../../../plugins/vector-stores/text/chunks.ts';
import { extract } from '../../../plugins/vector-stores/text/extract.ts';
import { readHtml } from '../../../plugins/vector-stores/text/html.ts';
import { Best, unitOf, vectorOf } from '../../../plugins/vector-stores/vectors.ts';
import { fc } from '../../helpers/properties.ts';

const word = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 400 }),
  fc.constantFrom(' ', '\n', '\n\n', '. ', 'a', 'é', '鯨', '🐋', 'word '),
);
const text = fc.array(word, { minLength: 1, maxLength: 400 }).map((words) => words.join('').trim());

test('the pieces of any text join to the text without what overlaps, and none has more tokens than it may', () => {
  fc.assert(
    fc.property(
      text,
      fc.integer({ min: 100, max: 400 }),
      fc.double({ min: 0, max: 0.5, noNaN: true }),
      (whole, maxTokens, part) => {
        const overlapTokens = Math.floor(maxTokens * part);
        const chunks = [...chunksOf(whole, { maxTokens, overlapTokens })];
        assert.equal(chunks.map((chunk) => chunk.text.slice(chunk.overlap)).join(''), whole);
        for (const [index, chunk] of chunks.entries()) {
          assert.equal(chunk.number, index);
          assert.ok(tokensOf(chunk.text) <= maxTokens, `${tokensOf(chunk.text)} tokens`);
          const before = chunks[index - 1]?.text ?? '';
          assert.ok(before.endsWith(chunk.text.slice(0, chunk.overlap)));
          assert.ok(tokensOf(chunk.text.slice(0, chunk.overlap)) <= overlapTokens);
          assert.ok(chunk.text.isWellFormed());
        }
      },
    ),
  );
});

test('pieces end where paragraphs and sentences do, and begin with whole words', () => {
  const sentence = 'A lighthouse shows ships the way. ';
  const whole = `${sentence.repeat(12)}\n\n${sentence.repeat(12)}`.trim();
  const chunks = [...chunksOf(whole, { maxTokens: 150, overlapTokens: 30 })];
  assert.ok(chunks[0]!.text.endsWith('\n\n'));
  assert.ok(
    chunks.every((chunk) => / $|\n$|\.$/.test(chunk.text)),
    JSON.stringify(chunks),
  );
  assert.ok(chunks.slice(1).every((chunk) => chunk.overlap > 0 && /^\S/.test(chunk.text)));
});

test('HTML gives what a reader sees, and a broken page its beginning', () => {
  const page = `<!doctype html><html><head><title>x</title></head><body><h1>Ships &amp; boats</h1><SCRIPT>if (a < b) { }</SCRIPT>
    <p>One&nbsp;two<br>three &#x1F40B; &#0; &unknown;</p><!-- <p>no</p> --><table><tr><td>1<td>2</table>a < b</body></html>`;
  assert.equal(
    readHtml(page)
      .trim()
      .replaceAll(/\s*\n\s*/g, '\n'),
    'Ships & boats\nOne two\nthree 🐋 &#0; &unknown;\n1 2\na < b',
  );
  assert.equal(readHtml('<p>begin<script>never closed'), '\nbegin');
  assert.equal(readHtml('begin<!-- never closed'), 'begin');
  const isHtml = { name: 'a', mediaType: 'text/html; charset=utf-8' };
  assert.deepEqual(extract(Buffer.from('<p>x</p>'), isHtml), { text: 'x' });
  assert.deepEqual(extract(Buffer.from('<p>x</p>'), { name: 'a.txt', mediaType: 'text/plain' }), { text: '<p>x</p>' });
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('späť', 'utf16le')]);
  assert.deepEqual(extract(utf16, { name: 'a.csv', mediaType: 'text/csv' }), { text: 'späť' });
});

test('any page, however broken, gives no more text than it has', () => {
  const parts = fc.constantFrom(
    '<script',
    '<script>',
    '</script',
    '<!--',
    '-->',
    '<',
    '>',
    '&',
    '&#',
    'text',
    '<p ',
    '\n',
    ' ',
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 60 }), (some) => {
      const page = some.join('');
      assert.ok(readHtml(page.repeat(3)).length <= 3 * page.length + 3 * some.length);
    }),
  );
});

test('the best of any scores are those of a sorted list', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 50 }),
      (scores, most) => {
        const all = scores.map((score, number) => ({ file: 'f', number, score }));
        const best = new Best(most);
        for (const one of all) best.add(one);
        assert.deepEqual(
          best.all,
          all.toSorted((one, other) => other.score - one.score || one.number - other.number).slice(0, most),
        );
      },
    ),
  );
});

test('a vector has length 1 once it is kept, and one without a direction is none', () => {
  const of = (...values: number[]) => Buffer.from(new Float32Array(values).buffer).toString('base64');
  assert.deepEqual(
    [...unitOf(of(3, 4))!].map((value) => value.toFixed(3)),
    ['0.600', '0.800'],
  );
  for (const none of [of(0, 0), of(Number.NaN), of(Number.POSITIVE_INFINITY), 'AAA=', '', 7, undefined])
    assert.equal(unitOf(none), undefined);
  assert.deepEqual([...vectorOf(of(1, 2, 3))!], [1, 2, 3]);
});

test('a call that was lost with its process is made again by another key, limits are waited for by the same key, and other refusals end the file', () => {
  const of = (status: number, code: string | null = null, headers: Record<string, string> = {}) =>
    refusalOf({ answer: { status, headers }, body: JSON.stringify({ error: { message: 'why', code } }) });
  const lost = of(409, 'idempotency_answer_lost', { 'x-should-retry': 'false' });
  assert.deepEqual(verdictOf(lost, 0), { laterMs: 0, again: true });
  assert.deepEqual(verdictOf(lost, 10), { message: 'why' });
  assert.deepEqual(verdictOf(of(409, 'idempotency_in_progress', { 'retry-after': '7' }), 9), {
    laterMs: 7_000,
    again: false,
  });
  assert.deepEqual(verdictOf(of(429, 'tpm', { 'retry-after': '999' }), 9), { laterMs: 60_000, again: false });
  assert.deepEqual(verdictOf(of(503), 9), { laterMs: 5_000, again: false });
  assert.deepEqual(verdictOf(of(502), 2), { laterMs: 5_000, again: true });
  for (const ended of [
    verdictOf(of(502), 3),
    verdictOf(of(402), 0),
    verdictOf(of(429, null, { 'x-should-retry': 'false' }), 0),
  ])
    assert.deepEqual(ended, { message: 'why' });
  const unread = refusalOf({ answer: { status: 200, headers: {} }, body: '{"data":[]}' });
  assert.deepEqual(
    [verdictOf(unread, 0), verdictOf(unread, 3)],
    [{ laterMs: 5_000, again: true }, { message: 'The model gave no vectors.' }],
  );
});
