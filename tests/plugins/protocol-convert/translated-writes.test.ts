/** How many writes a translated stream costs: never more than its upstream took. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { names, type ProtocolName, wordsOf } from '../../bench/words.ts';
import { fc } from '../../helpers/properties.ts';
import { cutAt, relay, Source } from './harness.ts';

interface Written {
  readonly text: string;
  /** How many chunks had been pulled from the upstream when it came. */
  readonly pulled: number;
}

async function written(
  client: ProtocolName,
  upstream: ProtocolName,
  chunks: readonly Uint8Array[],
): Promise<Written[]> {
  const { path, body } = wordsOf(client).request('Say something.');
  const source = new Source(chunks);
  const request = { path, body, target: { protocol: upstream } };
  const { answer } = await relay(request, { status: 200, headers: {}, body: source });
  const all: Written[] = [];
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>)
    all.push({ text: Buffer.from(chunk).toString(), pulled: source.pulled });
  return all;
}

/** An answer of which the middle is three frames in one chunk. */
function answerOf(upstream: ProtocolName): Buffer[] {
  const { head, delta, tail } = wordsOf(upstream);
  const texts = (...words: string[]) => words.map((word) => delta('text', word)).join('');
  return [
    head('text') + texts('one '),
    texts('two ', 'three ', 'four '),
    texts('five'),
    tail('one two three four five'),
  ].map((text) => Buffer.from(text));
}

const pairs = names.flatMap((client) =>
  names.filter((name) => name !== client).map((upstream) => [client, upstream] as const),
);

for (const [client, upstream] of pairs) {
  test(`${client} from ${upstream}: several frames in one chunk are written at once, each chunk as it comes`, async () => {
    const all = await written(client, upstream, answerOf(upstream));
    // One protocol tells all of the text again at its end.
    const middle = all.filter(({ text }) => /two |three |four /.test(text) && !text.includes('five'));
    assert.deepEqual(
      middle.map(({ pulled }) => pulled),
      [2],
    );
    assert.match(middle[0]!.text, /two .*three .*four /s);
  });

  test(`${client} from ${upstream}: no chunk of the upstream leads to more than one write, however it was cut`, async () => {
    const bytes = Buffer.concat(answerOf(upstream));
    const whole = (await written(client, upstream, [bytes])).map(({ text }) => text).join('');
    const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(cuts, async (offsets) => {
        const all = await written(client, upstream, cutAt(bytes, offsets));
        const pulls = all.map(({ pulled }) => pulled);
        assert.equal(new Set(pulls).size, pulls.length);
        assert.equal(all.map(({ text }) => text).join(''), whole);
      }),
      { numRuns: 50 },
    );
  });
}
