/** Embeddings in two protocols: relayed byte for byte, converted, metered and charged exactly, refused with the field. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fc } from '../../helpers/properties.ts';
import { openTestbed, type Testbed } from './setup.ts';

let testbed: Testbed;
before(async () => {
  testbed = await openTestbed(
    `
  embed: { owned_by: x, kind: embedding, targets: [first/their-embed, second/their-embed], price: { input: 0.02 } }
  google-like: { owned_by: x, kind: embedding, targets: [third/gem], price: { input: 0.15 } }
  talk: { owned_by: x, targets: [first], price: { input: 1, output: 1 } }
`,
    ['openai-embeddings', 'chat'],
  );
});
after(() => testbed.stop());

const json = { 'content-type': 'application/json' };
const openaiAnswer = (vectors: readonly (readonly number[] | string)[], tokens: number | undefined) =>
  `{ "object": "list",\n "data": ${JSON.stringify(vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })))},` +
  ` "model": "their-embed"${tokens === undefined ? '' : `, "usage": {"prompt_tokens": ${tokens}, "total_tokens": ${tokens}}`} }`;

test('a call is relayed byte for byte except for the model, and its reported tokens are charged', async () => {
  const answer = openaiAnswer(['AACAPwAAAEA='], 7);
  testbed.first.play({ headers: json, body: answer });
  const before = await testbed.balance();
  const count = testbed.first.requests.length;
  const got = await testbed.post('/v1/embeddings', {
    input: 'Hello',
    model: 'embed',
    encoding_format: 'base64',
    user: 'u-1',
    unknown_member: { a: 1.0 },
  });
  assert.equal(got.status, 200);
  assert.equal(got.text, answer);
  const sent = testbed.first.requests[count]!;
  assert.equal(sent.url, '/v1/embeddings');
  assert.equal(sent.headers.authorization, 'Bearer key-of-first');
  assert.equal(
    sent.body.toString(),
    '{"input":"Hello","model":"their-embed","encoding_format":"base64","user":"u-1","unknown_member":{"a":1}}',
  );
  const [charge] = await testbed.charges(1);
  assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [{ input: 7 }, false]);
  // 7 tokens at 0.02 a million are 140 nano-USD.
  assert.equal(before - (await testbed.balance()), 140n);
});

test('a vendor with one form of vectors is answered in the requested form, and charged as it reports', async () => {
  const [list, text] = [[0.5, -2, 3.25], Buffer.from(new Float32Array([0.5, -2, 3.25]).buffer).toString('base64')];
  const spaced = (answer: string) => answer.replaceAll('"embedding":', '"embedding" :\n ');
  const cases = [
    ['base64', openaiAnswer([list, list], 9), text],
    ['base64', spaced(openaiAnswer([list, list], 9)), text],
    ['float', openaiAnswer([text, text], 9), list],
    [undefined, openaiAnswer([text, text], 9), list],
  ] as const;
  for (const [encoding_format, body, wanted] of cases) {
    testbed.first.play({ headers: json, body });
    const charges = (await testbed.charges(0)).length;
    const got = await testbed.post('/v1/embeddings', { model: 'embed', input: ['a', 'b'], encoding_format });
    assert.deepEqual(
      got.json.data,
      [0, 1].map((index) => ({ object: 'embedding', index, embedding: wanted })),
    );
    assert.deepEqual([got.json.object, got.json.model, got.json.usage.total_tokens], ['list', 'their-embed', 9]);
    const [charge] = await testbed.charges(charges + 1);
    assert.deepEqual(charge!.detail.usage, { input: 9 });
  }
  for (const body of [openaiAnswer(['AAEC'], 3), '{"data":[],"usage":{"prompt_tokens":3}}']) {
    testbed.first.play({ headers: json, body });
    const got = await testbed.post('/v1/embeddings', { model: 'embed', input: 'a', output_dtype: 'int8' });
    assert.equal(got.text, body);
  }
});

test('any possible reported count is charged, in whole nano-USD', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8_000 }), fc.nat(3), async (tokens, more) => {
      const vectors = Array.from({ length: more + 1 }, () => [0.25, -1e-7]);
      testbed.first.play({ headers: json, body: openaiAnswer(vectors, tokens) });
      const [before, charges] = [await testbed.balance(), (await testbed.charges(0)).length];
      const { status } = await testbed.post('/v1/embeddings', { model: 'embed', input: vectors.map(() => 'x') });
      assert.equal(status, 200);
      const [charge] = await testbed.charges(charges + 1);
      assert.deepEqual(charge!.detail, { ...charge!.detail, usage: { input: tokens }, estimated: false });
      assert.equal(before - (await testbed.balance()), BigInt(tokens) * 20n);
    }),
    { numRuns: 12 },
  );
});

test('a large answer passes unchanged, and its usage is read without parsing it', async () => {
  const vector = Array.from({ length: 40_000 }, (_, index) => index / 7);
  for (const usageFirst of [false, true]) {
    const usage = '"usage":{"prompt_tokens":11,"total_tokens":11}';
    const data = `"data":[{"object":"embedding","index":0,"embedding":${JSON.stringify(vector)}}]`;
    const answer = usageFirst ? `{${usage},${data}}` : `{${data},${usage}}`;
    assert.ok(answer.length > 512 * 1024);
    testbed.first.play({ headers: json, body: answer });
    const charges = (await testbed.charges(0)).length;
    const got = await testbed.post('/v1/embeddings', { model: 'embed', input: 'x' });
    assert.equal(got.text, answer);
    const [charge] = await testbed.charges(charges + 1);
    assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [{ input: 11 }, false]);
  }
});

test('an answer without a usage is estimated from the request, and marked', async () => {
  testbed.first.play({ headers: json, body: openaiAnswer([[1]], undefined) });
  const charges = (await testbed.charges(0)).length;
  await testbed.post('/v1/embeddings', { model: 'embed', input: 'a text of 24 characters.' });
  const [charge] = await testbed.charges(charges + 1);
  assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [{ input: 12 }, true]);
});

test("a busy vendor's call goes to the next target; the refusal of a request is returned, and neither is charged", async () => {
  const charges = (await testbed.charges(0)).length;
  testbed.first.play({ status: 503, headers: json, body: '{"error":{"message":"busy"}}' });
  testbed.second.play({ headers: json, body: openaiAnswer([[1]], 3) });
  const got = await testbed.post('/v1/embeddings', { model: 'embed', input: 'x' });
  assert.equal(got.status, 200);
  assert.equal((await testbed.charges(charges + 1)).length, charges + 1);
  const refusal =
    '{"error":{"message":"bad dimensions","type":"invalid_request_error","param":"dimensions","code":null}}';
  testbed.first.play({ status: 400, headers: json, body: refusal });
  const refused = await testbed.post('/v1/embeddings', { model: 'embed', input: 'x', dimensions: 5 });
  assert.deepEqual([refused.status, refused.text], [400, refusal]);
  testbed.first.play({ headers: { 'content-type': 'text/html' }, body: '<html>' });
  testbed.second.play({ headers: json, body: '[]' });
  const odd = await testbed.post('/v1/embeddings', { model: 'embed', input: 'x' });
  assert.equal(odd.status, 502);
  assert.ok(!odd.text.includes('127.0.0.1'));
});

test('bad requests are refused with the field, before anything is sent', async () => {
  const [first, second] = [testbed.first.requests.length, testbed.second.requests.length];
  const cases: readonly [body: object, status: number, field: string | null][] = [
    [{ input: 'x' }, 400, 'model'],
    [{ model: 7, input: 'x' }, 400, 'model'],
    [{ model: 'embed' }, 400, 'input'],
    [{ model: 'embed', input: '' }, 400, 'input'],
    [{ model: 'embed', input: [] }, 400, 'input'],
    [{ model: 'embed', input: { a: 1 } }, 400, 'input'],
    [{ model: 'embed', input: ['x', 3] }, 400, 'input[1]'],
    [{ model: 'embed', input: ['x', ''] }, 400, 'input[1]'],
    [{ model: 'embed', input: [[1, 2], [1.5]] }, 400, 'input[1]'],
    [{ model: 'embed', input: Array.from({ length: 2_049 }, () => 'x') }, 400, 'input'],
    [{ model: 'embed', input: 'x', dimensions: 0 }, 400, 'dimensions'],
    [{ model: 'embed', input: 'x', dimensions: '9' }, 400, 'dimensions'],
    [{ model: 'embed', input: 'x', encoding_format: 'hex' }, 400, 'encoding_format'],
    [{ model: 'embed', input: 'x', fallbacks: [{ model: 'dear' }] }, 400, 'fallbacks[0].model'],
    [{ model: 'no-such-model', input: 'x' }, 404, 'model'],
    [{ model: 'talk', input: 'x' }, 400, 'model'],
  ];
  for (const [body, status, field] of cases) {
    const got = await testbed.post('/v1/embeddings', body);
    assert.deepEqual([got.status, got.json.error.param], [status, field], JSON.stringify(body).slice(0, 80));
    assert.equal(got.headers.get('x-should-retry'), 'false', JSON.stringify(body).slice(0, 80));
  }
  const kind = await testbed.post('/v1/embeddings', { model: 'talk', input: 'x' });
  assert.match(kind.json.error.message, /kind "chat"; this endpoint takes models of the kind "embedding"/);
  assert.deepEqual([testbed.first.requests.length, testbed.second.requests.length], [first, second]);
});

test('an account without money is refused before its body is read', async () => {
  const refused = await testbed.post('/v1/embeddings', new Uint8Array(300_000).fill(0x20), { key: testbed.poorKey });
  assert.deepEqual([refused.status, refused.json.error.code], [402, 'insufficient_balance']);
});
