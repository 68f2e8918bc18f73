/** What a request names beside its own model is metered, or refused by the field's name, wherever it stands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { cost } from '../../../plugins/common/domain/money.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { refuseUnmetered } from '../../../plugins/common/wire/named.ts';
import { fc } from '../../helpers/properties.ts';
import { relay, wholeAnswer } from './harness.ts';

const own = new Set(['cheap', 'vendor-cheap']);

/** The field for which a request is refused; undefined: it is relayed. */
function refusedFor(protocol: string, json: object, left?: readonly string[]): string | undefined {
  try {
    refuseUnmetered(protocol, json as Record<string, unknown>, own, left);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.kind === 'invalid_request');
    return error.field;
  }
}

test('a model beside the own one is refused by its field, in each protocol', () => {
  const cases: readonly (readonly [protocol: string, json: object, field: string])[] = [
    ['messages', { fallbacks: [{ model: 'cheap' }, { model: 'claude-opus-5' }] }, 'fallbacks[1].model'],
    ['messages', { tools: [{ type: 'advisor_20260301', name: 'a', model: 'claude-opus-5' }] }, 'tools[0].model'],
    ['messages', { fallbacks: [{ model: 'cheap', speed: 'fast' }] }, 'fallbacks[0].speed'],
    [
      'messages',
      {
        messages: [
          {
            role: 'system',
            content: [{ type: 'tool_addition', tool: { type: 'advisor_20260301', model: 'claude-opus-5' } }],
          },
        ],
      },
      'messages[0].content[0].tool.model',
    ],
    ['chat', { models: ['cheap', 'dear'] }, 'models[1]'],
    ['chat', { fallback_models: ['dear'] }, 'fallback_models[0]'],
    ['chat', { extra: { deep: [{ model: 'dear' }] } }, 'extra.deep[0].model'],
    ['chat', { tools: [{ type: 'image_generation', model: 'dear' }] }, 'tools[0].model'],
    ['responses', { models: ['dear'] }, 'models[0]'],
    ['responses', { tools: [{ type: 'image_generation', model: 'gpt-image-9' }] }, 'tools[0].model'],
    [
      'responses',
      { tools: [{ type: 'namespace', tools: [{ type: 'image_generation', model: 'dear' }] }] },
      'tools[0].tools[0].model',
    ],
    [
      'responses',
      { input: [{ type: 'tool_search_output', tools: [{ type: 'image_generation', model: 'dear' }] }] },
      'input[0].tools[0].model',
    ],
    [
      'gemini',
      { generationConfig: { routingConfig: { manualMode: { modelName: 'dear' } } } },
      'generationConfig.routingConfig',
    ],
  ];
  for (const [protocol, json, field] of cases) assert.equal(refusedFor(protocol, json), field, JSON.stringify(json));
});

test('another model is found under any name of such a member, in settings of the request and of tools', () => {
  const named = { model: 'dear' };
  const cases: readonly (readonly [protocol: string, json: object, field: string])[] = [
    ['chat', { model_fallbacks: ['dear'] }, 'model_fallbacks[0]'],
    ['chat', { Model: 'dear' }, 'Model'],
    ['chat', { compound_custom: { models: { answering_model: 'dear' } } }, 'compound_custom.models.answering_model'],
    ['chat', { speculative: { draft_model: 'dear' } }, 'speculative.draft_model'],
    ['chat', { prediction: named }, 'prediction.model'],
    ['chat', { reasoning: named }, 'reasoning.model'],
    ['chat', { moderation: named }, 'moderation.model'],
    ['chat', { tools: [{ type: 'web_search', web_search: named }] }, 'tools[0].web_search.model'],
    ['messages', { thinking: named }, 'thinking.model'],
    ['messages', { advisor_model: 'dear' }, 'advisor_model'],
    ['messages', { context_management: { edits: [named] } }, 'context_management.edits[0].model'],
    ['messages', { tools: [{ type: 'advisor_1', advisor: named }] }, 'tools[0].advisor.model'],
    ['responses', { conversation: named }, 'conversation.model'],
    ['responses', { context_management: [named] }, 'context_management[0].model'],
    ['responses', { tools: [{ type: 'code_interpreter', container: named }] }, 'tools[0].container.model'],
    ['responses', { tools: [{ type: 'image_generation', a: [named] }] }, 'tools[0].a[0].model'],
    ['gemini', { toolConfig: named }, 'toolConfig.model'],
    ['gemini', { tools: [{ retrieval: { ranking: { modelName: 'dear' } } }] }, 'tools[0].retrieval.ranking.modelName'],
    ['gemini', { tools: { fileSearch: named } }, 'tools.fileSearch.model'],
  ];
  for (const [protocol, json, field] of cases) assert.equal(refusedFor(protocol, json), field, JSON.stringify(json));
  const described = { name: 'f', parameters: { properties: { model: 'dear' } } };
  for (const [protocol, tool] of [
    ['gemini', { functionDeclarations: [described] }],
    ['responses', { type: 'namespace', tools: [{ type: 'function', ...described }] }],
    ['responses', { type: 'mcp', server_url: 'https://x.example', headers: { model: 'dear' } }],
  ] as const)
    assert.equal(refusedFor(protocol, { tools: [tool] }), undefined);
});

test('routes, plugins and unknown tools of the vendor are refused by their field', () => {
  for (const protocol of ['chat', 'responses']) {
    for (const [member, value] of [
      ['route', 'fallback'],
      ['plugins', [{ id: 'web' }]],
      ['provider', { order: ['dear'] }],
      ['provider', { sort: 'throughput', zdr: true }],
      ['provider', { order: ['one', 'two'], allow_fallbacks: false }],
      ['preset', 'p'],
    ] as const)
      assert.equal(refusedFor(protocol, { [member]: value }), member);
    assert.equal(refusedFor(protocol, { tools: [{ type: 'openrouter:advisor' }] }), 'tools[0].type');
  }
  assert.equal(refusedFor('messages', { tools: [{ type: 'tomorrows_tool_2027' }] }), 'tools[0].type');
  assert.equal(refusedFor('gemini', { tools: [{ googleSearch: {}, tomorrowsTool: {} }] }), 'tools[0].tomorrowsTool');
});

test('a member that names no other stored thing passes', () => {
  const harmless: readonly (readonly [protocol: string, json: object])[] = [
    ['messages', { model: 'cheap', fallbacks: [{ model: 'vendor-cheap' }], messages: [{ content: 'model: dear' }] }],
    ['messages', { tools: [{ name: 'f', input_schema: { properties: { model: { enum: ['dear'] } } } }] }],
    ['messages', { tools: [{ type: 'advisor_20260301', model: 'cheap' }, { type: 'web_search_20260318' }] }],
    ['chat', { models: ['cheap'], plugins: [], route: null, provider: { data_collection: 'deny', zdr: true } }],
    ['chat', { provider: { order: ['one'], allow_fallbacks: false } }],
    ['chat', { metadata: { model: 'dear' }, messages: [{ role: 'user', content: 'x', model: 'dear' }] }],
    ['chat', { tools: [{ type: 'function', function: { name: 'f', parameters: { model: 'dear' } } }] }],
    ['responses', { input: [{ type: 'mcp_list_tools', tools: [{ type: 'anything' }] }], tools: [{ type: 'shell' }] }],
    ['gemini', { generationConfig: { responseSchema: { model: 'dear' }, temperature: 1 } }],
    ['chat', { enable_thinking: true, seed: 4, logit_bias: { 5: 1 }, stream_options: { include_usage: true } }],
  ];
  for (const [protocol, json] of harmless) assert.equal(refusedFor(protocol, json), undefined, JSON.stringify(json));
  assert.equal(refusedFor('chat', { models: ['dear'], tools: [{ type: 'odd' }] }, ['models', 'tools']), undefined);
});

test('at any depth of any unknown member, a model of another name is found', () => {
  const key = fc.constantFrom('options', 'extra_body', 'settings', 'a');
  fc.assert(
    fc.property(fc.array(fc.oneof(key, fc.constant(0)), { maxLength: 8 }), key, fc.boolean(), (path, top, isOwn) => {
      const named = { fallbacks: [isOwn ? 'cheap' : { model: 'dear' }] };
      const value = path.reduceRight<unknown>((inner, step) => (step === 0 ? [inner] : { [step]: inner }), named);
      const field = refusedFor('chat', { [top]: value });
      assert.equal(field !== undefined, !isOwn);
      assert.ok(isOwn || field!.endsWith('fallbacks[0].model'));
    }),
  );
});

test('nothing is sent of a relayed request that names another model; a count of its tokens is', async () => {
  const body = { model: 'm', max_tokens: 9, messages: [], fallbacks: [{ model: 'claude-opus-5' }] };
  const answer = () => wholeAnswer('{"content":[],"usage":{"input_tokens":1,"output_tokens":1}}');
  await assert.rejects(relay({ path: '/v1/messages', body }, answer()), { field: 'fallbacks[0].model' });
  const own = { ...body, fallbacks: [{ model: 'm' }] };
  assert.equal((await relay({ path: '/v1/messages', body: own }, answer())).answer.status, 200);
  const dropped = { upstream: { dropFields: { messages: ['fallbacks'] } } };
  assert.equal((await relay({ path: '/v1/messages', body, target: dropped }, answer())).answer.status, 200);
});

const usage = { input_tokens: 10, output_tokens: 5 };

test("calls of a vendor's own tools are counted, in the places where vendors report them", async () => {
  const counted = async (path: string, body: object, answer: object) =>
    (await relay({ path, body: { model: 'm', ...body } }, wholeAnswer(JSON.stringify(answer)))).report!.usage;
  const responses = (answer: object) => counted('/v1/responses', { input: 'x' }, { output: [], usage, ...answer });
  const pictures = ['completed', 'completed', 'failed'].map((status) => ({ type: 'image_generation_call', status }));
  assert.equal((await responses({ output: pictures })).image, 2);
  const drawn = { type: 'image_generation_call', status: 'completed' };
  const author = { model: 'a', input_tokens: 900, output_tokens: 300, reasoning_tokens: 100, total_tokens: 1_200 };
  const svg = await responses({ output: [{ ...drawn, svg_usage: author }, drawn, { ...drawn, svg_usage: author }] });
  assert.deepEqual([svg.input, svg.output, svg.image], [1_810, 605, 3]);
  const reported = { image_gen: { input_tokens: 50, output_tokens: 4_160, total_tokens: 4_210 } };
  assert.equal((await responses({ tool_usage: reported })).image, 1);
  const shell = (container_id: string) => ({
    type: 'shell_call',
    environment: { type: 'container_reference', container_id },
  });
  const local = { type: 'shell_call', environment: { type: 'local' } };
  const code = { type: 'code_interpreter_call', container_id: 'c' };
  assert.equal((await responses({ output: [shell('a'), shell('a'), shell('b'), local] })).code_execution, 2);
  assert.equal((await responses({ output: [shell('c'), code] })).code_execution, 1);
  const details = { image_generation_calls: 2, mcp_calls: 3, x_search_calls: 1, document_search_calls: 4 };
  const grok = await responses({ usage: { ...usage, server_side_tool_usage_details: details } });
  assert.deepEqual([grok.image, grok.call, grok.file_search], [2, 4, 4]);

  const chat = (more: object, requested: object = {}) =>
    counted('/v1/chat/completions', { messages: [], ...requested }, { choices: [{}], ...more });
  const tokens = { prompt_tokens: 10, completion_tokens: 5 };
  assert.equal((await chat({ usage: { ...tokens, num_search_queries: 3 } })).web_search, 3);
  assert.equal((await chat({ usage: { ...tokens, plugins: { search: { count: 2 } } } })).web_search, 2);
  assert.equal((await chat({ usage: { ...tokens, server_tool_use: { web_search_requests: 4 } } })).web_search, 4);
  const zhipu = { usage: tokens, web_search: [{ title: 't' }] };
  assert.equal((await chat(zhipu, { tools: [{ type: 'web_search', web_search: {} }] })).web_search, 1);
  assert.equal((await chat({ usage: tokens })).web_search, undefined);

  const gemini = (candidate: object) =>
    counted(
      '/v1beta/models/m:generateContent',
      { contents: [] },
      { candidates: [candidate], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } },
    );
  assert.equal((await gemini({ groundingMetadata: { groundingChunks: [{ maps: { uri: 'u' } }] } })).call, 1);
  const parts = [
    { toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: '1', args: { queries: ['a', 'b'] } } },
    { toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: '2' } },
    { toolCall: { toolType: 'GOOGLE_MAPS', id: '3' } },
    { toolCall: { toolType: 'FILE_SEARCH', id: '4' } },
  ];
  const reported2 = await gemini({ content: { parts } });
  assert.deepEqual([reported2.web_search, reported2.call, reported2.file_search], [3, 1, 1]);
});

const catalogued = (price: Readonly<Record<string, bigint>>): Model => ({
  id: 'm',
  ownedBy: 'vendor',
  created: 0,
  displayName: 'm',
  kind: 'chat',
  targets: [],
  contextTokens: undefined,
  maxOutputTokens: undefined,
  prices: flatBook(price, 'test'),
});

test('pictures of a chat model are charged by piece where it has such a price, else by their tokens, never both', async () => {
  const answer = {
    usage,
    output: [{ type: 'image_generation_call', status: 'completed' }],
    tool_usage: {
      image_gen: {
        input_tokens: 80,
        input_tokens_details: { image_tokens: 30, text_tokens: 50 },
        output_tokens: 4_000,
        output_tokens_details: { image_tokens: 3_990, text_tokens: 10 },
        total_tokens: 4_080,
      },
    },
  };
  const body = { model: 'm', input: 'x', tools: [{ type: 'image_generation', size: '1024x1024', quality: 'HIGH' }] };
  const used = async (price: Readonly<Record<string, bigint>>) => {
    const upstream = wholeAnswer(JSON.stringify(answer));
    const { exchange, report } = await relay({ path: '/v1/responses', body, sold: catalogued(price) }, upstream);
    const { images, media } = exchange.get(call);
    assert.deepEqual([images, media], [2, ['1024x1024', 'high']]);
    return report!.usage;
  };
  const million = 1_000_000n;
  const byPiece = { input: million, output: million, image: 40_000_000n };
  assert.deepEqual(await used(byPiece), { input: 10, output: 5, image: 1 });
  assert.equal(cost(await used(byPiece), byPiece), 40_000_015n);
  const byToken = { input: million, output: million, output_image: 30n * million };
  const tokens = await used(byToken);
  assert.deepEqual(tokens, { input: 60, input_image: 30, output: 15, output_image: 3_990, image: 1 });
  assert.equal(cost(tokens, byToken), 60n + 30n + 15n + 3_990n * 30n);
});

test('runs at random: the cost is that of each run once, whatever else is reported', async () => {
  const count = fc.nat(20);
  const run = fc.record({
    web: count,
    code: count,
    files: count,
    documents: count,
    x: count,
    mcp: count,
    pictures: count,
  });
  await fc.assert(
    fc.asyncProperty(run, async ({ web, code, files, documents, x, mcp, pictures }) => {
      const details = {
        ...{ web_search_calls: web, code_interpreter_calls: code, file_search_calls: files },
        ...{ document_search_calls: documents, x_search_calls: x, mcp_calls: mcp, image_generation_calls: pictures },
      };
      const answer = { output: [], usage: { ...usage, server_side_tool_usage_details: details } };
      const price = { web_search: 7n, code_execution: 11n, file_search: 13n, call: 17n, image: 19n };
      const request = { path: '/v1/responses', body: { model: 'm', input: 'x' }, sold: catalogued(price) };
      const { report } = await relay(request, wholeAnswer(JSON.stringify(answer)));
      const expected = web * 7 + code * 11 + (files + documents) * 13 + (x + mcp) * 17 + pictures * 19;
      assert.equal(cost(report!.usage, price), BigInt(expected));
    }),
    { numRuns: 40 },
  );
});
