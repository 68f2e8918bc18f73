/** Tools that vendors run have a price for the model that serves, or the request is refused by the tool's field; their runs are counted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import type { UsageClass } from '../../../plugins/common/domain/usage.ts';
import { isToolPriced } from '../../../plugins/common/wire/hosted-tools.ts';
import { refuseUnpriced } from '../../../plugins/common/wire/named.ts';
import { fc } from '../../helpers/properties.ts';
import { open, relay, Source, wholeAnswer } from './harness.ts';

type Prices = Readonly<Partial<Record<UsageClass, bigint>>>;

/** The field for which a request is refused, and its code; undefined: it passes. */
function refusedFor(protocol: string, json: object, price: Prices, left?: readonly string[]): string | undefined {
  const book = flatBook(price, 'test');
  try {
    refuseUnpriced(protocol, json as Record<string, unknown>, (name) => isToolPriced(book, 0, name), left);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.kind === 'invalid_request' && error.code === 'tool_not_priced');
    assert.ok(error.message.includes(`"${error.field}"`));
    return error.field;
  }
}

const hosted: readonly (readonly [protocol: string, tool: object, charged: UsageClass])[] = [
  ['chat', { type: 'web_search', web_search: {} }, 'web_search'],
  ['chat', { type: 'openrouter:web_search' }, 'web_search'],
  ['chat', { type: 'browser_search' }, 'web_search'],
  ['chat', { type: 'builtin_function', function: { name: '$web_search' } }, 'web_search'],
  ['chat', { type: 'builtin_function', function: { name: '$other' } }, 'call'],
  ['chat', { type: 'code_interpreter' }, 'code_execution'],
  ['chat', { type: 'retrieval' }, 'file_search'],
  ['chat', { type: 'mcp', server_url: 'https://x.example' }, 'call'],
  ['chat', { type: 'image_generation' }, 'image'],
  ['responses', { type: 'web_search_preview_2025_03_11' }, 'web_search'],
  ['responses', { type: 'x_search' }, 'call'],
  ['responses', { type: 'mcp', server_label: 's' }, 'call'],
  ['responses', { type: 'code_interpreter', container: { type: 'auto' } }, 'code_execution'],
  ['responses', { type: 'shell', environment: { type: 'container_auto' } }, 'code_execution'],
  ['responses', { type: 'file_search', vector_store_ids: [] }, 'file_search'],
  ['responses', { type: 'collections_search' }, 'file_search'],
  ['responses', { type: 'image_generation' }, 'image'],
  ['messages', { type: 'web_search_20260209', name: 'web_search' }, 'web_search'],
  ['messages', { type: 'web_fetch_20260209', name: 'web_fetch' }, 'web_fetch'],
  ['messages', { type: 'code_execution_20250825', name: 'code_execution' }, 'code_execution'],
  ['gemini', { googleSearch: {} }, 'web_search'],
  ['gemini', { google_search_retrieval: {} }, 'web_search'],
  ['gemini', { enterpriseWebSearch: {} }, 'web_search'],
  ['gemini', { googleMaps: {} }, 'call'],
  ['gemini', { fileSearch: {} }, 'file_search'],
];

test('a tool of the vendor without a price is refused by its field; a price of its own, or of any call, lets it pass, 0 too', () => {
  for (const [protocol, tool, charged] of hosted) {
    const first = protocol === 'gemini' ? Object.keys(tool)[0] : 'type';
    const json = { tools: [protocol === 'gemini' ? { functionDeclarations: [] } : { type: 'function' }, tool] };
    const shown = JSON.stringify(tool);
    assert.equal(refusedFor(protocol, json, { input: 1n, output: 1n }), `tools[1].${first}`, shown);
    assert.equal(refusedFor(protocol, json, { input: 1n, [charged]: 0n }), undefined, shown);
    assert.equal(refusedFor(protocol, json, { input: 1n, [charged]: 5n }), undefined, shown);
    if (charged !== 'image') assert.equal(refusedFor(protocol, json, { input: 1n, call: 0n }), undefined, shown);
    assert.equal(refusedFor(protocol, json, { input: 1n }, ['tools']), undefined, shown);
  }
  assert.equal(refusedFor('responses', { tools: [{ type: 'image_generation' }] }, { output_image: 1n }), undefined);
});

test('tools that the client runs, and those that cost their tokens alone, need no price', () => {
  const free: readonly (readonly [protocol: string, tool: object])[] = [
    ['chat', { type: 'function', function: { name: 'web_search' } }],
    ['chat', { type: 'custom' }],
    ['responses', { type: 'local_shell' }],
    ['responses', { type: 'shell' }],
    ['responses', { type: 'shell', environment: { type: 'local' } }],
    ['responses', { type: 'apply_patch' }],
    ['responses', { type: 'computer_use_preview' }],
    ['responses', { type: 'tool_search' }],
    ['responses', { type: 'namespace', tools: [{ type: 'function', name: 'f' }] }],
    ['messages', { name: 'f', input_schema: {} }],
    ['messages', { type: 'bash_20250124', name: 'bash' }],
    ['messages', { type: 'text_editor_20250728', name: 'e' }],
    ['messages', { type: 'computer_20251124', name: 'c' }],
    ['messages', { type: 'memory_20250818', name: 'memory' }],
    ['messages', { type: 'tool_search_tool_regex_20251119', name: 't' }],
    ['messages', { type: 'mcp_toolset', mcp_server_name: 's' }],
    ['gemini', { functionDeclarations: [{ name: 'googleSearch' }] }],
    ['gemini', { urlContext: {} }],
    ['gemini', { codeExecution: {} }],
    ['gemini', { computerUse: {} }],
  ];
  for (const [protocol, tool] of free)
    assert.equal(refusedFor(protocol, { tools: [tool] }, { input: 1n }), undefined, JSON.stringify(tool));
});

test('wherever a request names the tool, its field is named', () => {
  const places: readonly (readonly [protocol: string, json: object, field: string])[] = [
    ['chat', { web_search_options: {} }, 'web_search_options'],
    ['chat', { enable_search: true }, 'enable_search'],
    ['chat', { search_parameters: { mode: 'auto' } }, 'search_parameters'],
    ['gemini', { tools: { googleSearch: {} } }, 'tools.googleSearch'],
    ['gemini', { tools: [{ functionDeclarations: [], googleMaps: {} }] }, 'tools[0].googleMaps'],
    [
      'responses',
      { tools: [{ type: 'namespace', tools: [{ type: 'namespace', tools: [{ type: 'web_search' }] }] }] },
      'tools[0].tools[0].tools[0].type',
    ],
    [
      'responses',
      { input: [{ type: 'tool_search_output', tools: [{ type: 'code_interpreter' }] }] },
      'input[0].tools[0].type',
    ],
    [
      'messages',
      { messages: [{ content: [{ type: 'tool_addition', tool: { type: 'web_search_20250305' } }] }] },
      'messages[0].content[0].tool.type',
    ],
    [
      'messages',
      {
        messages: [
          { content: [{ tool_changes: [{ type: 'tool_addition', tool: { definition: { type: 'web_fetch_1' } } }] }] },
        ],
      },
      'messages[0].content[0].tool_changes[0].tool.definition.type',
    ],
  ];
  for (const [protocol, json, field] of places) assert.equal(refusedFor(protocol, json, { input: 1n }), field);
  const off = [{ enable_search: false }, { search_parameters: { mode: 'off' } }, { web_search: { enable: false } }];
  for (const json of off) assert.equal(refusedFor('chat', json, { input: 1n }), undefined);
});

test('any set of tools passes if and only if each of them has a price', () => {
  const one = fc.constantFrom(...hosted.filter(([protocol]) => protocol === 'responses'));
  const classes = fc.subarray<UsageClass>(['web_search', 'code_execution', 'file_search', 'call', 'image']);
  fc.assert(
    fc.property(fc.array(one, { maxLength: 5 }), classes, (tools, priced) => {
      const price = Object.fromEntries(priced.map((name) => [name, 1n]));
      const isFree = (name: UsageClass) => !priced.includes(name) && (name === 'image' || !priced.includes('call'));
      const first = tools.findIndex(([, , charged]) => isFree(charged));
      const json = { tools: tools.map(([, tool]) => tool) };
      assert.equal(refusedFor('responses', json, price), first === -1 ? undefined : `tools[${first}].type`);
    }),
  );
});

const catalogued = (price: Prices): Model => ({
  ...{ id: 'm', ownedBy: 'vendor', created: 0, displayName: 'm', kind: 'chat', targets: [] },
  ...{ contextTokens: undefined, maxOutputTokens: undefined, prices: flatBook(price, 'test') },
});
const tokens = { input: 1_000_000n, output: 1_000_000n };

test('a relayed request is not sent with such a tool; a count of its tokens is, and so is one with a price', async () => {
  const body = {
    ...{ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
    tools: [{ type: 'web_search_20260209', name: 'web_search' }],
  };
  const answer = () => wholeAnswer('{"content":[],"usage":{"input_tokens":1,"output_tokens":1}}');
  const send = (path: string, price: Prices) => relay({ path, body, sold: catalogued(price) }, answer());
  await assert.rejects(send('/v1/messages', tokens), { field: 'tools[0].type', code: 'tool_not_priced' });
  assert.equal((await send('/v1/messages', { ...tokens, web_search: 0n })).answer.status, 200);
  assert.equal((await send('/v1/messages/count_tokens', tokens)).answer.status, 200);
});

test('a translated request is refused without such a price like one to a model that has no such tool, and asks with one', async () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], web_search_options: {} };
  const target = { protocol: 'messages' };
  const send = (price: Prices) => {
    const request = { path: '/v1/chat/completions', body, target, sold: catalogued(price) };
    const answer = '{"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1,"output_tokens":1}}';
    return relay(request, wholeAnswer(answer), open(request));
  };
  const { sent } = await send({ ...tokens, web_search: 1n });
  const { tools } = JSON.parse(String(sent.body)) as { tools?: { type: string }[] };
  assert.deepEqual(
    tools?.map(({ type }) => type),
    ['web_search_20250305'],
  );
  await assert.rejects(send(tokens), { kind: 'invalid_request', field: 'tools' });
});

// ------------------------------------------------------------------------------------------------------------- counted

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const stream = (frames: readonly object[], end = 'data: [DONE]\n\n') => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: new Source([...frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`), end]),
});

async function streamed(path: string, body: object, frames: readonly object[], end?: string) {
  const relayed = await relay({ path, body: { model: 'm', stream: true, messages: [], ...body } }, stream(frames, end));
  for await (const _ of relayed.answer.body as AsyncIterable<Uint8Array>);
  return relayed.report!.usage;
}

test('tools that a vendor names as executed are counted once each, whole and streamed', async () => {
  const run = (index: number, type: string, more: object = {}) => ({ index, type, arguments: '{}', ...more });
  const executed_tools = [run(0, 'search'), run(1, 'python'), run(2, 'visit'), run(3, 'wolfram'), run(4, 'search')];
  const counts = { web_search: 2, code_execution: 1, web_fetch: 1, call: 1 };
  const path = '/v1/chat/completions';
  const whole = { choices: [{ message: { content: 'x', executed_tools }, finish_reason: 'stop' }], usage };
  const { report } = await relay({ path, body: { model: 'm', messages: [] } }, wholeAnswer(JSON.stringify(whole)));
  assert.deepEqual(report!.usage, { input: 10, output: 5, ...counts });
  const frames = [
    { choices: [{ index: 0, delta: { role: 'assistant', executed_tools: executed_tools.slice(0, 2) } }] },
    { choices: [{ index: 0, delta: { executed_tools: executed_tools.map((one) => ({ ...one, output: 'done' })) } }] },
    { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }], x_groq: { usage } },
  ];
  assert.deepEqual(await streamed(path, {}, frames), { input: 10, output: 5, ...counts });
});

test('a search by a built-in function is counted by its call', async () => {
  const call = (id: string, index: number) => ({
    id,
    index,
    type: 'function',
    function: { name: '$web_search', arguments: '{}' },
  });
  const own = { id: 'z', index: 2, type: 'function', function: { name: 'mine', arguments: '{}' } };
  const body = { tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] };
  const path = '/v1/chat/completions';
  const message = { role: 'assistant', content: '', tool_calls: [call('a', 0), call('b', 1), own] };
  const whole = { choices: [{ message, finish_reason: 'tool_calls' }], usage };
  const request = { path, body: { model: 'm', messages: [], ...body } };
  const { report } = await relay(request, wholeAnswer(JSON.stringify(whole)));
  assert.equal(report!.usage.web_search, 2);
  const frames = [
    { choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [call('a', 0)] } }] },
    { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"q":1}' } }] } }] },
    { choices: [{ index: 0, delta: { tool_calls: [call('b', 1), own] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }], usage },
  ];
  assert.equal((await streamed(path, body, frames)).web_search, 2);
});

test('a container of messages is counted once an answer, by the counter where there is one, and not beside searches', async () => {
  const run = (name: string) => ({ type: 'server_tool_use', id: 's', name, input: {} });
  const tools = (more: object) => ({ input_tokens: 10, output_tokens: 5, ...more });
  const counted = async (content: readonly object[], more: object = {}) => {
    const body = { model: 'm', max_tokens: 9, messages: [] };
    const answer = wholeAnswer(JSON.stringify({ content, usage: tools(more), stop_reason: 'end_turn' }));
    return (await relay({ path: '/v1/messages', body }, answer)).report!.usage.code_execution;
  };
  const both = [run('bash_code_execution'), run('text_editor_code_execution')];
  assert.equal(await counted(both), 1);
  assert.equal(await counted([run('web_search')]), undefined);
  assert.equal(await counted(both, { server_tool_use: { web_search_requests: 2 } }), undefined);
  assert.equal(await counted(both, { server_tool_use: { code_execution_requests: 3 } }), 3);
  const frames = [
    { type: 'message_start', message: { id: 'm', usage: tools({ output_tokens: 1 }) } },
    ...both.map((content_block, index) => ({ type: 'content_block_start', index, content_block })),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];
  assert.equal((await streamed('/v1/messages', { max_tokens: 9 }, frames, '')).code_execution, 1);
});

test('MCP runs of responses are counted by their items where no counter has them', async () => {
  const output = ['a', 'b'].map((id) => ({ type: 'mcp_call', id, name: 'n', arguments: '{}', server_label: 's' }));
  const answer = wholeAnswer(JSON.stringify({ output, usage: { input_tokens: 1, output_tokens: 1 } }));
  const { report } = await relay({ path: '/v1/responses', body: { model: 'm', input: 'x' } }, answer);
  assert.equal(report!.usage.call, 2);
});
