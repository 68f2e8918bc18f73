/** Reranks in three shapes: relayed, converted among each other, charged by searches or tokens; moderations beside them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fc } from '../../helpers/properties.ts';
import { openTestbed, type Testbed } from './setup.ts';

let testbeds: Record<'cohere' | 'jina' | 'voyage', Testbed>;
const more = 'endpoints: { default_models: { moderations: judge }, documents: 5 }';
const models = `
  ranker: { owned_by: x, kind: rerank, targets: [first/their-ranker], price: { search: 0.002 } }
  counted: { owned_by: x, kind: rerank, targets: [first/their-counted], price: { input: 0.05 } }
  judge: { owned_by: x, kind: moderation, targets: [first/their-judge], price: free }
`;
before(async () => {
  const open = (shape: string) => openTestbed(models, [`${shape}-rerank`, 'openai-moderations'], more);
  const [cohere, jina, voyage] = await Promise.all(['cohere', 'jina', 'voyage'].map(open));
  testbeds = { cohere: cohere!, jina: jina!, voyage: voyage! };
});
after(() => Promise.all(Object.values(testbeds).map((testbed) => testbed.stop())));

const headers = { 'content-type': 'application/json' };
const question = { query: 'q', documents: ['a', 'b', 'c'] };
const entries = [
  { index: 2, relevance_score: 0.9 },
  { index: 0, relevance_score: 0.25 },
];
/** Each vendor's answer; its own counters. */
const answers = {
  cohere: { id: 'c-1', results: entries, meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } } },
  jina: { model: 'their-ranker', object: 'list', usage: { total_tokens: 40 }, results: entries },
  voyage: { object: 'list', data: entries, model: 'their-ranker', usage: { total_tokens: 40 } },
};
const bodies = {
  cohere: { model: 'their-ranker', ...question, top_n: 2 },
  jina: { model: 'their-ranker', ...question, top_n: 2, return_documents: false },
  voyage: { model: 'their-ranker', ...question, top_k: 2, return_documents: false },
};

for (const upstream of ['cohere', 'jina', 'voyage'] as const) {
  test(`clients of all shapes are answered by a ${upstream} upstream in their own`, async () => {
    const testbed = testbeds[upstream];
    const text = JSON.stringify(answers[upstream], null, 1);
    testbed.first.play({ headers, body: text });
    const send = async (path: string, body: object) => {
      const sentBefore = testbed.first.requests.length;
      const got = await testbed.post(path, { model: 'ranker', ...question, ...body });
      assert.equal(got.status, 200, got.text);
      return { got, sent: JSON.parse(testbed.first.requests[sentBefore]!.body.toString()) as unknown };
    };
    const cohere = await send('/v2/rerank', { top_n: 2 });
    const jina = await send('/v1/rerank', { top_n: 2 });
    const voyage = await send('/v1/rerank', { top_k: 2 });
    const native = { cohere, jina, voyage }[upstream];
    assert.equal(native.got.text, text);
    for (const [shape, { got, sent }] of Object.entries({ cohere, jina, voyage })) {
      if (shape === upstream) continue;
      assert.deepEqual(sent, bodies[upstream], shape);
      const results = got.json[shape === 'voyage' ? 'data' : 'results'];
      assert.deepEqual(
        results.map(({ index, relevance_score }: (typeof entries)[number]) => ({ index, relevance_score })),
        entries,
      );
      if (shape === 'jina') assert.deepEqual(results[0].document, { text: 'c' });
      if (shape === 'voyage') assert.equal(results[0].document, 'c');
      if (shape !== 'cohere') assert.equal(got.json.usage.total_tokens, upstream === 'cohere' ? 0 : 40);
    }
    const [charge] = await testbed.charges(3);
    // Sold by the search: a vendor that counts tokens is charged one search, and the row says that it is an estimate.
    const expected = upstream === 'cohere' ? { search: 1 } : { input: 40, search: 1 };
    assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [expected, upstream !== 'cohere']);
    assert.equal(await testbed.balance(), 10_000_000_000_000n - 3n * 2_000_000n);
  });
}

test('any reported usage is charged exactly, by the search and by the token', async () => {
  const testbed = testbeds.voyage;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8_000 }), async (tokens) => {
      testbed.first.play({ headers, body: JSON.stringify({ ...answers.voyage, usage: { total_tokens: tokens } }) });
      const [before, count] = [await testbed.balance(), (await testbed.charges(0)).length];
      await testbed.post('/v1/rerank', { model: 'counted', ...question, top_k: 2 });
      const [charge] = await testbed.charges(count + 1);
      assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [{ input: tokens }, false]);
      assert.equal(before - (await testbed.balance()), BigInt(tokens) * 50n);
    }),
    { numRuns: 10 },
  );
});

test('an answer that names an unknown document is refused', async () => {
  const testbed = testbeds.cohere;
  for (const results of [[{ index: 3, relevance_score: 1 }], [entries[0], entries[0]], [{ index: 0 }]]) {
    testbed.first.play({ headers, body: JSON.stringify({ results }) });
    const got = await testbed.post('/v1/rerank', { model: 'ranker', ...question });
    assert.equal(got.status, 502);
  }
});

test('bad requests are refused with the field, in the members that each client reads', async () => {
  const testbed = testbeds.jina;
  const sent = testbed.first.requests.length;
  const cases: readonly [body: object, field: string][] = [
    [{ query: 'q', documents: ['a'] }, 'model'],
    [{ model: 'ranker', documents: ['a'] }, 'query'],
    [{ model: 'ranker', query: 5, documents: ['a'] }, 'query'],
    [{ model: 'ranker', query: 'q' }, 'documents'],
    [{ model: 'ranker', query: 'q', documents: 'a' }, 'documents'],
    [{ model: 'ranker', query: 'q', documents: [] }, 'documents'],
    [{ model: 'ranker', query: 'q', documents: ['1', '2', '3', '4', '5', '6'] }, 'documents'],
    [{ model: 'ranker', query: 'q', documents: ['a', 7] }, 'documents[1]'],
    [{ model: 'ranker', query: 'q', documents: ['a'], top_n: 0 }, 'top_n'],
    [{ model: 'ranker', query: 'q', documents: ['a'], top_k: 'x' }, 'top_k'],
    [{ model: 'ranker', query: 'q', documents: ['a'], return_documents: 'yes' }, 'return_documents'],
    [{ model: 'judge', query: 'q', documents: ['a'] }, 'model'],
  ];
  for (const [body, field] of cases) {
    const { status, json, headers: head } = await testbed.post('/v2/rerank', body);
    const seen = [status, json.error.param, head.get('x-should-retry')];
    assert.deepEqual(seen, [400, field, 'false'], JSON.stringify(body));
    assert.ok(json.message === json.detail && json.message.length > 0);
  }
  assert.equal(testbed.first.requests.length, sent);
});

test('a moderation is free for an account without money, and uses the default model where none is named', async () => {
  const testbed = testbeds.cohere;
  const answer = '{"id":"modr-1","model":"their-judge","results":[{"flagged":false}]}';
  testbed.first.play({ headers, body: answer });
  for (const body of [{ input: 'hello' }, { model: null, input: ['a', 'b'] }, { model: 'judge', input: 'hello' }]) {
    const count = testbed.first.requests.length;
    const got = await testbed.post('/v1/moderations', body, { key: testbed.poorKey });
    assert.deepEqual([got.status, got.text], [200, answer]);
    const sent = JSON.parse(testbed.first.requests[count]!.body.toString());
    assert.deepEqual(sent, { ...body, model: 'their-judge' });
  }
  for (const [body, field] of [
    [{}, 'input'],
    [{ input: 7 }, 'input'],
    [{ input: ['a', 7] }, 'input[1]'],
    [{ input: 'x', model: 'ranker' }, 'model'],
  ] as const) {
    const got = await testbed.post('/v1/moderations', body);
    assert.deepEqual([got.status, got.json.error.param], [400, field]);
  }
});
