/** Masking: no secret comes through, however it stands there, and all else does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextExcerpt } from '../../../../plugins/request-log/bodies/excerpt.ts';
import { maskBody } from '../../../../plugins/request-log/bodies/mask.ts';
import { Secrets } from '../../../../plugins/request-log/bodies/secrets.ts';
import { fc } from '../../../helpers/properties.ts';

const usual = new Secrets({ names: ['pet name'], emails: true, cards: true });

function kept(
  body: string | Uint8Array,
  options: { cuts?: readonly number[]; largest?: number; secrets?: Secrets } = {},
): string {
  const bytes = Buffer.from(body);
  const excerpt = new TextExcerpt(options.largest ?? 64 * 1024, () => true);
  let at = 0;
  for (const cut of [...(options.cuts ?? [])].sort((one, other) => one - other)) {
    const end = Math.min(bytes.length, Math.max(at, cut));
    excerpt.add(bytes.subarray(at, end));
    at = end;
  }
  excerpt.add(bytes.subarray(at));
  const reported = excerpt.end();
  return reported === undefined ? '' : maskBody(reported, options.secrets ?? usual);
}

const letters = fc.constantFrom(...'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789');
const random = (length: number) =>
  fc.array(letters, { minLength: length, maxLength: length + 30 }).map((all) => `aZ4${all.join('')}7Kq`);

/** What gives itself away by its form. */
const planted = fc.oneof(
  random(20).map((tail) => `sk-${tail}`),
  random(20).map((tail) => `sk_live_${tail}`),
  random(30).map((tail) => `AIza${tail}`),
  random(24),
  random(24).map((tail) => `xoxb-${tail}`),
  fc.tuple(random(20), random(30), random(20)).map(([head, claims, sign]) => `eyJ${head}.eyJ${claims}.${sign}`),
);
const words = fc.array(
  fc.constantFrom(
    'the',
    'prompt',
    'says',
    'naïve',
    '"quoted"',
    'C:\\new',
    '新しい',
    '{"a":1}',
    'line\nbreak',
    '[x]',
    '😀',
    ':',
    ',',
  ),
  { maxLength: 6 },
);
const name = fc.constantFrom('content', 'text', 'messages', 'input', 'q', 'names', 'x"y', '');

type Tree = string | number | boolean | null | Tree[] | { [name: string]: Tree };

/** JSON with the secret in one place at least: in a value, in a name, in words, in JSON inside of a string. */
const grown = planted.chain((secret) => {
  const leaf: fc.Arbitrary<Tree> = fc.oneof(
    words.map((all) => all.join(' ')),
    fc.tuple(words, words).map(([before, behind]) => [...before, secret, ...behind].join(' ')),
    fc.constantFrom<Tree>(secret, `Authorization: Bearer ${secret}`, `https://host.example/path?key=${secret}&b=1`),
    fc.constantFrom<Tree>(JSON.stringify({ nested: secret }), JSON.stringify({ deep: JSON.stringify([secret]) })),
    fc.constantFrom<Tree>({ [secret]: 1 }, null, true, 12.5),
  );
  const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(name, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  return fc.record({ secret: fc.constant(secret), body: tree.map((rest): Tree => ({ rest, last: secret })) });
});
const cuts = fc.array(fc.nat(3_000), { maxLength: 6 });
const writer = fc.constantFrom(
  (body: Tree) => JSON.stringify(body),
  (body: Tree) => JSON.stringify(body, undefined, 2),
  // As some encoders write letters.
  (body: Tree) => JSON.stringify(body).replace(/k/g, '\\u006b'),
);

test('a secret anywhere in any JSON, split anywhere, is not in the kept body, which stays JSON', () => {
  fc.assert(
    fc.property(grown, writer, cuts, ({ secret, body }, write, at) => {
      const reported = kept(write(body), { cuts: at });
      assert.equal(reported.includes(secret), false, reported);
      assert.equal(JSON.stringify(JSON.parse(reported)).includes(secret), false);
    }),
    { numRuns: 400 },
  );
});

test('in a body cut anywhere, no piece of a secret with a known form is left', () => {
  fc.assert(
    fc.property(grown, writer, fc.integer({ min: 20, max: 1_500 }), cuts, ({ secret, body }, write, largest, at) => {
      const reported = kept(write(body), { largest, cuts: at });
      for (let start = 0; start + 12 <= secret.length; start++)
        assert.equal(
          reported.includes(secret.slice(start, start + 12)),
          false,
          `${secret.slice(start, start + 12)} in ${reported}`,
        );
    }),
    { numRuns: 400 },
  );
});

test('a secret streamed by the syllable is masked in each event', () => {
  const stream = (pieces: readonly string[], index: number) =>
    pieces.map((content) => `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`);
  fc.assert(
    fc.property(planted, words, fc.array(fc.nat(80), { maxLength: 20 }), cuts, (secret, before, places, at) => {
      const text = `${before.join(' ')} ${secret} and more`;
      const ends = [...new Set([...places.map((place) => Math.min(place, text.length)), text.length])].sort(
        (a, b) => a - b,
      );
      const pieces = ends.map((end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end));
      const [one, other] = [
        stream(pieces, 0),
        stream(
          pieces.map(() => 'other'),
          1,
        ),
      ];
      const reported = kept(`${one.map((event, index) => event + other[index]).join('')}data: [DONE]\n\n`, {
        cuts: at,
      });
      const contents = [...reported.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!).choices[0]);
      const joined = contents
        .filter(({ index }) => index === 0)
        .map(({ delta }) => delta.content)
        .join('');
      for (let start = 0; start + 8 <= secret.length; start++)
        assert.equal(joined.includes(secret.slice(start, start + 8)), false, joined);
      assert.ok(joined.endsWith(' and more'));
      assert.match(reported, /data: \[DONE\]/);
    }),
  );
});

test('a cut stream does not keep the beginning of a secret', () => {
  fc.assert(
    fc.property(
      planted,
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 150, max: 2_500 }),
      (secret, size, largest) => {
        const text = `so the thing is ${secret} `.repeat(3);
        const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
        const reported = kept(pieces.map((delta) => `data: ${JSON.stringify({ type: 'd', delta })}\n\n`).join(''), {
          largest,
        });
        const joined = [...reported.matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta).join('');
        for (let start = 0; start + 10 <= secret.length; start++)
          assert.equal(joined.includes(secret.slice(start, start + 10)), false, `${joined} of ${secret}`);
      },
    ),
    { numRuns: 300 },
  );
});

test('values are masked by their names, in JSON, in JSON inside of it, in words and in pieces', () => {
  for (const [body, hidden] of [
    ['{"password":"hunter2"}', 'hunter2'],
    ['{"db_password" : "hunter2"}', 'hunter2'],
    ['{"Authorization":["Basic abc"]}', 'abc'],
    ['{"client_secret":{"a":["hunter2",4711]}}', 'hunter2'],
    ['{"client_secret":{"a":["x",4711]}}', '4711'],
    ['{"token":12345}', '12345'],
    ['{"pet-name":"Rex"}', 'Rex'],
    ['{"petName":"Rex"}', 'Rex'],
    ['{"arguments":"{\\"password\\":\\"hun\\\\\\"ter2\\"}"}', 'ter2'],
    ['{"arguments":"{\\"credentials\\":{\\"id\\":\\"hunter2\\"}}"}', 'hunter2'],
    ['{"arguments":"{\\"password\\":\\"hunter2"', 'hunter2'],
    ['{"a":"b" "password":"hunter2"}', 'hunter2'],
    ["{password: 'hunter2 and more'}", 'and more'],
    ['password=hunter2&x=1', 'hunter2'],
    ['X-Api-Key: hunter2', 'hunter2'],
    ['Authorization: Basic aHVudGVyMg==', 'aHVudGVyMg'],
    ['{"content":"my password: hunter2 is weak"}', 'hunter2'],
    ['{"u":"https://user:hunter2@host.example/"}', 'hunter2'],
    ['[x] password: "hunter2"', 'hunter2'],
    [
      'data: {"partial_json":"{\\"pass"}\n\ndata: {"partial_json":"word\\": \\"hun"}\n\ndata: {"partial_json":"ter2\\"}"}\n\n',
      'ter2',
    ],
    ['data: {"d":"password: "}\n\ndata: {"d":"hunter2"}\n\n', 'hunter2'],
    ['{"c":"sk\\u002dabcdefgh"}', 'abcdefgh'],
    ['{"p\\u0061ssword":"hunter2"}', 'hunter2'],
    ['{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}', 'hunter2'],
    ['{"headers":[{"key":"Authorization","value":["x","hunter2"]}]}', 'hunter2'],
    ['Cookie: a=b; session=hunter2; c=d\nx', 'hunter2'],
    ['Authorization: Digest username="x", response=hunter2', 'username'],
    ['{"mail":"ada@example.test"}', 'ada'],
    ['{"card":"4111 1111 1111 1111","n":4111111111111111}', '1111'],
    ['{"k":"-----BEGIN PRIVATE KEY-----\\nMIIabc\\n"}', 'MIIabc'],
  ] as const)
    assert.equal(kept(body).includes(hidden), false, `${body} became ${kept(body)}`);
});

test('a text without a secret stays byte for byte', () => {
  for (const body of [
    '{"model": "a-model-4.1-mini-2026-04-14", "max_tokens": 4096,\n "messages":[{"role":"user","content":"naïve 😀 \\u00e9 C:\\\\new"}]}',
    'data: {"id":"chatcmpl-AbCdEf0123456789GhIjKlMnOpQrS","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n',
    '{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","usage":{"input_tokens":12,"cached_tokens":0}}',
    '{"error":{"message":"There is no model \\"x\\".","code":"model_not_found","request_id":"0190f3c2-0000-7000-8000-0123456789ab"}}',
    '{"n":1234567890123,"t":1763735000.5,"e":-1e10,"list":[[],{},""]}',
    '',
  ])
    assert.equal(kept(body), body);
});

test('media are replaced by type, length and digest, whole or in pieces, and texts after them are kept', () => {
  const image = `iVBORw0KGgo${'QUJD'.repeat(40_000)}`;
  const body = JSON.stringify({ a: { url: `data:image/png;base64,${image}` }, b: image, c: 'after all' });
  const whole = kept(body, { largest: 2_000 });
  assert.match(whole, /"data:image\/png;base64,\[image\/png: 160011 characters, sha256 [0-9a-f]{16}\]"/);
  assert.match(whole, /"b":"\[image\/png: 160011 characters/);
  assert.ok(whole.endsWith('"c":"after all"}'));
  fc.assert(
    fc.property(fc.array(fc.nat(body.length), { maxLength: 8 }), (at) => {
      assert.equal(kept(body, { largest: 2_000, cuts: at }), whole);
    }),
    { numRuns: 50 },
  );
  assert.match(kept('{"u":"x data:audio/wav;base64,UklGRg=="}'), /x \[audio\/wav: \d+ characters/);
});

test('hostile texts are masked quickly', () => {
  const begin = process.hrtime.bigint();
  for (const part of [
    'eyJ-',
    'a@',
    'sk-',
    '"',
    '\\"',
    'password:',
    '://a:',
    '4 ',
    '{"a":',
    'aB3',
    '-----BEGIN PRIVATE KEY-----',
    '[{',
  ])
    kept(part.repeat(Math.ceil(65_536 / part.length)));
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  assert.ok(seconds < 20, `${seconds} s`);
});
