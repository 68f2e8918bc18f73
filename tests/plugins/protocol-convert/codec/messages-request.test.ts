/** The messages codec on requests: what clients send is understood, and upstreams get what they insist on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../../core/errors.ts';
import type { Part, Prompt, Turn } from '../../../../plugins/protocol-convert/canon.ts';
import type { JsonObject } from '../../../../plugins/protocol-convert/json.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { decoded, maker, open, promptOf, word } from './messages-harness.ts';

const body = (more: object = {}): JsonObject => ({
  model: 'm',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
});
const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const text = (words: string): Part => ({ kind: 'text', text: words });
const call = (id: string, name = 'look'): Part => ({ kind: 'tool-call', id, name, input: '{"a":1}' });
const result = (callId: string, words = 'seen'): Part => ({
  kind: 'tool-result',
  callId,
  parts: words === '' ? [] : [{ kind: 'text', text: words }],
});
const tool = { kind: 'function', name: 'look', schema: { type: 'object', properties: {} } } as const;
const messagesOf = (request: { body: JsonObject }) =>
  request.body['messages'] as { role: string; content: JsonObject[] }[];
const refusal = (field: string) => (error: unknown) =>
  error instanceof GatewayError && error.kind === 'unsupported' && error.field === field;
const badField = (field: string) => (error: unknown) =>
  error instanceof GatewayError && error.kind === 'invalid_request' && error.field === field;

/** As the coding client sends it on its second turn; the schemas are shortened. */
const codingBody: JsonObject = {
  model: 'claude-opus-5-5',
  max_tokens: 128_000,
  stream: true,
  thinking: { type: 'adaptive', display: 'omitted' },
  output_config: { effort: 'medium' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  metadata: { user_id: '{"device_id":"d","account_uuid":"a","session_id":"s"}' },
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.329; cc_entrypoint=cli;' },
    { type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'Rules.', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ],
  tools: [
    {
      name: 'Bash',
      description: 'Runs',
      input_schema: { type: 'object', properties: {} },
      eager_input_streaming: true,
    },
    { name: 'ToolSearch', description: 'Finds', input_schema: { type: 'object', properties: {} } },
    { name: 'Later', description: 'Later', input_schema: { type: 'object', properties: {} }, defer_loading: true },
  ],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Do it' }] },
    { role: 'system', content: 'Context.' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'EoQD' },
        { type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: { query: 'x' }, caller: { type: 'direct' } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'tool_reference', tool_name: 'Later' }],
          is_error: false,
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
    {
      role: 'system',
      content: [{ type: 'text', text: '<total_tokens>1</total_tokens>' }],
      output_config: { effort: 'high' },
    },
  ],
};

test("a coding client's body is read with nothing dropped and nothing refused", () => {
  const { prompt, dropped } = decoded(codingBody);
  assert.deepEqual(dropped, []);
  assert.deepEqual(
    prompt.turns.map(({ role }) => role),
    ['system', 'user', 'system', 'assistant', 'user', 'system'],
  );
  assert.deepEqual(prompt.reasoning, { effort: 'high', visible: false });
  assert.equal(prompt.user, '{"device_id":"d","account_uuid":"a","session_id":"s"}');
  assert.deepEqual(prompt.turns[3]?.parts, [
    { kind: 'tool-call', id: 'toolu_1', name: 'ToolSearch', input: '{"query":"x"}' },
  ]);
  assert.deepEqual(prompt.turns[4]?.parts, [
    { kind: 'tool-result', callId: 'toolu_1', parts: [{ kind: 'text', text: 'Tool loaded: Later' }], cache: 'short' },
  ]);
});

test('pitfall 107: the line for the books of the vendor is no part of the prompt', () => {
  assert.deepEqual(decoded(codingBody).prompt.turns[0]?.parts, [
    { kind: 'text', text: 'You are an agent.', cache: 'short' },
    { kind: 'text', text: 'Rules.', cache: 'long' },
  ]);
  const { prompt } = decoded(body({ system: 'x-anthropic-billing-header: a=b;\nYou are.' }));
  assert.deepEqual(prompt.turns[0]?.parts, [{ kind: 'text', text: 'You are.' }]);
});

test('pitfall 077: a loaded tool is told as text, and tools that wait to be found are declared as such', () => {
  const later = decoded(codingBody).prompt.tools.find((one) => one.kind === 'function' && one.name === 'Later');
  assert.equal(later?.kind === 'function' && later.deferred, true);
});

for (const recording of recordings('messages').filter((one) => one.request !== undefined && one.status === 200)) {
  test(`the request of ${recording.name} is read without loss`, () => {
    const json = JSON.parse(recording.request!.toString()) as JsonObject;
    const { prompt, dropped } = decoded(json);
    assert.deepEqual(dropped, []);
    assert.equal(prompt.turns.length, (json['messages'] as unknown[]).length + (json['system'] === undefined ? 0 : 1));
    assert.equal(prompt.tools.length, ((json['tools'] as unknown[]) ?? []).length);
  });
}

test('images and documents are read from every source', () => {
  const content = [
    { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'iVBORw0KGgo=' } },
    { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'abc' }, title: 'T', context: 'C' },
    {
      type: 'document',
      source: { type: 'content', content: [{ type: 'text', text: 'a' }] },
      citations: { enabled: true },
    },
    { type: 'document', source: { type: 'file', file_id: 'f1' } },
    { type: 'search_result', title: 'T', source: 'https://x.test/', content: [{ type: 'text', text: 'found' }] },
  ];
  const { prompt } = decoded(body({ messages: [{ role: 'user', content }] }));
  assert.deepEqual(prompt.turns[0]?.parts, [
    { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'iVBORw0KGgo=' } },
    { kind: 'image', source: { form: 'url', url: 'https://x.test/a.png', mediaType: 'image/png' } },
    { kind: 'document', source: { form: 'text', text: 'abc' }, name: 'T', context: 'C' },
    { kind: 'document', source: { form: 'text', text: 'a' }, citations: true },
    { kind: 'document', source: { form: 'file', id: 'f1' } },
    { kind: 'text', text: 'T\nhttps://x.test/\nfound' },
  ]);
});

test('pitfall 114: only what was sealed here comes back as a keepsake; the words of other thinking stay', () => {
  const content = [
    { type: 'thinking', thinking: 'a', signature: 'foreign' },
    { type: 'thinking', thinking: 'b', signature: '' },
    { type: 'thinking', thinking: 'c', signature: 'gw1.S' },
    { type: 'redacted_thinking', data: 'foreign' },
    { type: 'redacted_thinking', data: 'gw1.D' },
  ];
  const { prompt } = decoded(body({ messages: [{ role: 'assistant', content }] }));
  assert.deepEqual(prompt.turns[0]?.parts, [
    { kind: 'reasoning', text: 'a' },
    { kind: 'reasoning', text: 'b' },
    { kind: 'reasoning', text: 'c', keepsake: { maker, value: 'S' } },
    { kind: 'reasoning', text: '', keepsake: { maker, value: 'D' }, redacted: true },
  ]);
});

test("the vendor's own searches are read as searches, its other tools are left out and named", () => {
  const content = [
    { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'q' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 's1',
      content: [
        { type: 'web_search_result', url: 'https://x.test/', title: 'X', encrypted_content: 'gw1.E', page_age: '1 d' },
      ],
    },
    { type: 'server_tool_use', id: 's2', name: 'code_execution', input: {} },
    { type: 'code_execution_tool_result', tool_use_id: 's2', content: {} },
  ];
  const { prompt, dropped } = decoded(body({ messages: [{ role: 'assistant', content }] }));
  const found = { url: 'https://x.test/', title: 'X', keepsake: { maker, value: 'E' }, age: '1 d' };
  assert.deepEqual(prompt.turns[0]?.parts, [{ kind: 'search', id: 's1', queries: ['q'], results: [found] }]);
  assert.deepEqual(dropped, ['server_tool_use', 'code_execution_tool_result']);
});

test('pitfall 223: tools that the vendor knows by type become functions, its own become hosted ones', () => {
  const tools = [
    { type: 'bash_20250124', name: 'bash' },
    { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
    { type: 'computer_20250124', name: 'computer', display_width_px: 800, display_height_px: 600 },
    { type: 'memory_20250818', name: 'memory' },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 2, allowed_domains: ['x.test'] },
    { type: 'web_fetch_20250910', name: 'web_fetch' },
    { type: 'code_execution_20260521', name: 'code_execution' },
    { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
    { type: 'computer_toolset_20260801' },
  ];
  const { prompt } = decoded(body({ tools }));
  assert.deepEqual(
    prompt.tools.map((one) => (one.kind === 'hosted' ? `hosted ${one.tool}` : `${one.kind} ${one.name}`)),
    [
      ...['function bash', 'function str_replace_based_edit_tool', 'function computer', 'function memory'],
      ...['hosted web_search', 'hosted web_fetch', 'hosted code_execution', 'hosted other'],
    ],
  );
  const search = prompt.tools.find((one) => one.kind === 'hosted');
  assert.deepEqual(search?.kind === 'hosted' && search.options, { allowedDomains: ['x.test'], maxUses: 2 });
});

test('tools that come and go in mid-conversation are there as they are at its end', () => {
  const messages = [
    { role: 'user', content: 'x' },
    {
      role: 'system',
      content: [
        { type: 'tool_addition', tool: { type: 'tool_reference', name: 'a' } },
        { type: 'tool_removal', tool: { type: 'tool_reference', name: 'b' } },
        { type: 'tool_addition', tool: { type: 'tool_definition', definition: { name: 'c', input_schema: {} } } },
      ],
    },
  ];
  const { prompt, dropped } = decoded(body({ messages, tools: [{ name: 'a', defer_loading: true }, { name: 'b' }] }));
  assert.deepEqual(prompt.tools, [
    { kind: 'function', name: 'a' },
    { kind: 'function', name: 'c', schema: {} },
  ]);
  assert.deepEqual([prompt.turns.length, dropped], [1, []]);
});

test('settings are read into the common tongue', () => {
  const { prompt, dropped } = decoded(
    body({
      temperature: 0.5,
      top_p: null,
      top_k: 3,
      stop_sequences: ['a', ''],
      thinking: { type: 'enabled', budget_tokens: 2000 },
      tool_choice: { type: 'tool', name: 'look', disable_parallel_tool_use: true },
      tools: [{ name: 'look' }],
      output_config: { format: { type: 'json_schema', schema: { type: 'object' } } },
      speed: 'fast',
      container: 'c1',
      inference_geo: 'eu',
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
    }),
  );
  const { turns: _turns, tools: _tools, ...settings } = prompt;
  assert.deepEqual(settings, {
    toolChoice: { mode: 'required', names: ['look'] },
    parallelTools: false,
    maxOutputTokens: 100,
    temperature: 0.5,
    topK: 3,
    stop: ['a'],
    reasoning: { budgetTokens: 2000, visible: true },
    output: { form: 'schema', name: undefined, schema: { type: 'object' }, strict: true },
    serviceTier: 'fast',
  });
  assert.deepEqual(dropped, ['context_management', 'container', 'inference_geo']);
});

test('pitfall 182: null is as good as absent', () => {
  const nothing = {
    temperature: null,
    system: null,
    tools: null,
    tool_choice: null,
    thinking: null,
    stop_sequences: null,
  };
  const { prompt, dropped } = decoded(body({ ...nothing, output_config: null, metadata: null, container: null }));
  assert.deepEqual([Object.keys(prompt), dropped], [['turns', 'tools', 'maxOutputTokens'], []]);
});

test('pitfall 105: members that only answers have are left out of the history', () => {
  const content = [{ type: 'tool_use', id: 'a', name: 'b', input: {}, caller: { type: 'direct' }, index: 0 }];
  const { prompt } = decoded(body({ messages: [{ role: 'assistant', content }] }));
  assert.deepEqual(prompt.turns[0]?.parts, [{ kind: 'tool-call', id: 'a', name: 'b', input: '{}' }]);
});

test('pitfall 099: the mark of an empty text moves to what stands before it', () => {
  const turns = [user(text('a'), { kind: 'text', text: ' ', cache: 'long' })];
  assert.deepEqual(messagesOf(word(promptOf({ turns })))[0]?.content, [
    { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ]);
});

test('what the client does not want to read is hidden by the model, else by the gateway', () => {
  const wish = promptOf({ reasoning: { effort: 'high', visible: false } });
  assert.equal(word(wish).way.hideReasoning, undefined);
  assert.equal(word(wish, { traits: { reasoning: 'none' } }).way.hideReasoning, true);
});

test('what cannot be read is refused by the name of its field', () => {
  const cases: [object, string][] = [
    [{ messages: undefined }, 'messages'],
    [{ messages: [{ role: 'tool', content: '' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user', content: 1 }] }, 'messages[0].content'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'x' } }] }] },
      'messages[0].content[0].source.type',
    ],
    [
      { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'b', input: 'c' }] }] },
      'messages[0].content[0].input',
    ],
    [{ temperature: 'warm' }, 'temperature'],
    [{ thinking: { type: 'deep' } }, 'thinking.type'],
    [{ tool_choice: { type: 'x' } }, 'tool_choice.type'],
    [{ output_config: { effort: 'huge' } }, 'output_config.effort'],
  ];
  for (const [more, field] of cases) assert.throws(() => decoded(body(more)), badField(field), field);
  assert.throws(() => decoded(body({ mcp_servers: [{ url: 'x' }] })), refusal('mcp_servers'));
});

// --------------------------------------------------------------------------------------------------------- to upstreams

test('pitfall 180: an answer is always bounded: by the client, by the model, or by default', () => {
  assert.equal(word(promptOf()).body['max_tokens'], 8192);
  assert.equal(word(promptOf(), { maxOutputTokens: 64_000 }).body['max_tokens'], 64_000);
  assert.equal(word(promptOf({ maxOutputTokens: 99_999 }), { maxOutputTokens: 64_000 }).body['max_tokens'], 64_000);
});

test('pitfalls 056, 058, 059, 060: results of a step stand together, first, once each, and made up where missing', () => {
  const { body: json } = word(
    promptOf({
      turns: [
        user(text('go')),
        assistant(call('a'), call('b'), call('c')),
        user(text('by the way')),
        user(result('b', 'one')),
        user(result('b', 'two')),
        user(result('a')),
        user(result('z')),
      ],
      tools: [tool],
    }),
  );
  const [, , answer] = messagesOf({ body: json });
  assert.deepEqual(
    answer?.content.map((block) => [block['type'], block['tool_use_id'] ?? block['text'], block['content']]),
    [
      ['tool_result', 'a', 'seen'],
      ['tool_result', 'b', 'two'],
      ['tool_result', 'c', '(no result)'],
      ['text', 'by the way', undefined],
    ],
  );
});

test('pitfalls 066, 068: an empty result says so, and an error is marked as one', () => {
  const turns = [user(text('go')), assistant(call('a')), user({ ...result('a', ''), isError: true } as Part)];
  const [, , answer] = messagesOf(word(promptOf({ turns, tools: [tool] })));
  const { cache_control: _mark, ...block } = answer!.content[0]!;
  assert.deepEqual(block, { type: 'tool_result', tool_use_id: 'a', content: '(no output)', is_error: true });
});

test('pitfalls 096, 097, 098: roles alternate, the user begins, and nothing is empty', () => {
  const turns = [assistant(text('hi')), user(text('')), user(text('a')), user(text('b'))];
  assert.deepEqual(messagesOf(word(promptOf({ turns }), { traits: { cache_marks: false } })), [
    { role: 'user', content: [{ type: 'text', text: '.' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
  ]);
});

test('pitfall 101: the beginning of an answer is trimmed where it may be given, else the user asks to go on', () => {
  const turns = [user(text('go')), assistant(text('{ \n'))];
  assert.equal(messagesOf(word(promptOf({ turns }), { traits: { prefill: true } })).at(-1)?.content[0]?.['text'], '{');
  assert.equal(messagesOf(word(promptOf({ turns }))).at(-1)?.content[0]?.['text'], 'Continue.');
});

test('pitfall 094: a system message in the middle stays there, or becomes marked user text', () => {
  const turns: Turn[] = [
    { role: 'system', parts: [text('a')] },
    user(text('b')),
    { role: 'system', parts: [text('c')] },
    assistant(text('d')),
    user(text('e')),
  ];
  const native = word(promptOf({ turns }));
  assert.deepEqual(
    messagesOf(native).map(({ role }) => role),
    ['user', 'system', 'assistant', 'user'],
  );
  const old = word(promptOf({ turns }), { traits: { system_anywhere: false } });
  assert.equal(messagesOf(old)[0]?.content[1]?.['text'], '<system-reminder>\nc\n</system-reminder>');
  assert.equal((old.body['system'] as JsonObject[]).length, 1);
});

test('pitfall 102: the name of a speaker stands in front of what it says', () => {
  const turns: Turn[] = [{ role: 'user', parts: [text('hi')], name: 'Ann' }];
  assert.equal(messagesOf(word(promptOf({ turns })))[0]?.content[0]?.['text'], 'Ann: hi');
});

test('pitfalls 052, 053: ids and names become legal, the same in calls and results', () => {
  const name = 'ns.look at it';
  const turns = [user(text('go')), assistant(call('x:1', name)), user(result('x:1'))];
  const { body: json, way } = word(promptOf({ turns, tools: [{ kind: 'function', name }] }));
  const [, step, answer] = messagesOf({ body: json });
  const sent = step!.content[0]!;
  assert.match(String(sent['id']), /^toolu_[A-Za-z0-9]+$/);
  assert.equal(answer!.content[0]!['tool_use_id'], sent['id']);
  assert.equal((json['tools'] as JsonObject[])[0]?.['name'], sent['name']);
  assert.deepEqual(way.names.get(String(sent['name'])), { name });
});

test('pitfalls 070, 071, 075: without tools there is no choice, but called ones are declared', () => {
  const bare = word(promptOf({ toolChoice: { mode: 'auto' }, parallelTools: false })).body;
  assert.ok(!('tools' in bare) && !('tool_choice' in bare));
  const turns = [user(text('go')), assistant(call('a')), user(result('a'))];
  const { body: json } = word(promptOf({ turns }), { traits: { cache_marks: false } });
  assert.deepEqual(json['tools'], [{ name: 'look', input_schema: { type: 'object', properties: {} } }]);
  assert.deepEqual(json['tool_choice'], { type: 'none' });
});

test('pitfalls 072, 073, 074: none keeps the tools, allowed ones are a subset, twins are one', () => {
  const two = [tool, tool, { ...tool, name: 'go' }, { ...tool, name: 'stay' }];
  const of = (toolChoice: Prompt['toolChoice']) => {
    const { body: json } = word(promptOf({ tools: two, toolChoice: toolChoice! }));
    return [(json['tools'] as JsonObject[]).map((one) => one['name']), json['tool_choice']];
  };
  assert.deepEqual(of({ mode: 'none' }), [['look', 'go', 'stay'], { type: 'none' }]);
  assert.deepEqual(of({ mode: 'required', names: ['go', 'stay'] }), [['go', 'stay'], { type: 'any' }]);
  assert.deepEqual(of({ mode: 'auto', names: ['go', 'stay'] }), [['go', 'stay'], { type: 'auto' }]);
  assert.deepEqual(of({ mode: 'required', names: ['go'] }), [['look', 'go', 'stay'], { type: 'tool', name: 'go' }]);
  const { body: json } = word(promptOf({ tools: [tool], parallelTools: false }));
  assert.deepEqual(json['tool_choice'], { type: 'auto', disable_parallel_tool_use: true });
});

test('a free-text tool goes as a function of one string, and its calls with it', () => {
  const custom = {
    kind: 'custom',
    name: 'patch',
    description: 'Patches.',
    grammar: { syntax: 'lark', definition: 'x' },
  } as const;
  const turns = [
    user(text('go')),
    assistant({ ...call('a', 'patch'), input: '*** x', custom: true } as Part),
    user(result('a')),
  ];
  const { body: json, way } = word(promptOf({ turns, tools: [custom] }));
  assert.deepEqual(messagesOf({ body: json })[1]?.content[0]?.['input'], { input: '*** x' });
  assert.deepEqual([...way.wrapped], ['patch']);
  assert.match(String((json['tools'] as JsonObject[])[0]?.['description']), /lark grammar:\nx$/);
});

test("the vendor's own tools are asked for by type; what it has not is left out, or refused where all depends on it", () => {
  const search = {
    kind: 'hosted',
    tool: 'web_search',
    name: 'web_search',
    options: { maxUses: 3, location: { country: 'DE' } },
  } as const;
  const image = { kind: 'hosted', tool: 'image_generation', name: 'image_generation', options: {} } as const;
  const { body: json, dropped } = word(promptOf({ tools: [search, image] }), { traits: { cache_marks: false } });
  assert.deepEqual(json['tools'], [
    {
      type: 'web_search_20250305',
      name: 'web_search',
      max_uses: 3,
      user_location: { type: 'approximate', country: 'DE' },
    },
  ]);
  assert.deepEqual(dropped, ['image_generation']);
  assert.throws(() => word(promptOf({ tools: [image] })), refusal('tools'));
});

test('reasoning is asked for as the model takes it', () => {
  const asked = (reasoning: Prompt['reasoning'], traits: object, more: Partial<Prompt> = {}) => {
    const { body: json, dropped } = word(promptOf({ reasoning: reasoning!, ...more }), {
      traits,
      maxOutputTokens: 32_000,
    });
    return [json['thinking'], json['output_config'], dropped];
  };
  const adaptive = { type: 'adaptive', display: 'summarized' };
  assert.deepEqual(asked({ effort: 'minimal' }, {}), [adaptive, { effort: 'low' }, []]);
  assert.deepEqual(asked({ effort: 'max' }, { efforts: ['low', 'max'] }), [adaptive, { effort: 'max' }, []]);
  assert.deepEqual(asked({ visible: false }, {}), [{ type: 'adaptive', display: 'omitted' }, undefined, []]);
  assert.deepEqual(asked({ effort: 'none' }, {}), [{ type: 'disabled' }, undefined, []]);
  assert.deepEqual(asked({ effort: 'none' }, { reasoning_off: false }), [undefined, { effort: 'low' }, ['thinking']]);
  assert.deepEqual(asked({ effort: 'high' }, { reasoning: 'none' }), [undefined, undefined, ['thinking']]);
  const budget = { reasoning: 'budget' };
  assert.deepEqual(asked({ budgetTokens: 500 }, budget), [{ type: 'enabled', budget_tokens: 1024 }, undefined, []]);
  assert.deepEqual(asked({ effort: 'medium' }, budget), [{ type: 'enabled', budget_tokens: 8192 }, undefined, []]);
});

test('pitfall 131: a budget is smaller than the bound, or there is no thinking', () => {
  const traits = { reasoning: 'budget' } as const;
  const { body: json } = word(promptOf({ reasoning: { budgetTokens: 9000 }, maxOutputTokens: 4000 }), { traits });
  assert.deepEqual(json['thinking'], { type: 'enabled', budget_tokens: 3999 });
  const tight = word(promptOf({ reasoning: { budgetTokens: 9000 }, maxOutputTokens: 800 }), { traits });
  assert.deepEqual([tight.body['thinking'], tight.dropped], [undefined, ['thinking']]);
});

test('pitfall 132: who thinks cannot be forced to call a tool, and is asked to', () => {
  const { body: json, dropped } = word(
    promptOf({ tools: [tool], toolChoice: { mode: 'required', names: ['look'] }, reasoning: { effort: 'high' } }),
  );
  assert.deepEqual([json['tool_choice'], dropped], [{ type: 'auto' }, ['tool_choice']]);
  assert.match(String((json['system'] as JsonObject[])[0]?.['text']), /Call the tool "look" now/);
  const unforced = word(promptOf({ tools: [tool], toolChoice: { mode: 'required' } }), {
    traits: { forced_tools: false },
  });
  assert.deepEqual(unforced.body['tool_choice'], { type: 'auto' });
});

const reasoning = (words: string, keepsake: { maker: string; value: string }): Part => ({
  kind: 'reasoning',
  text: words,
  keepsake,
});
const own = { maker, value: 'S' };

test('pitfalls 113, 114, 115: only signatures of the same maker go back, byte for byte', () => {
  const parts = [
    reasoning(' a ', own),
    { kind: 'reasoning', text: '', keepsake: { maker, value: 'D' }, redacted: true } as Part,
  ];
  const turns = [user(text('go')), assistant(...parts, call('a')), user(result('a'))];
  const [, step] = messagesOf(word(promptOf({ turns, tools: [tool] })));
  assert.deepEqual(step?.content.slice(0, 2), [
    { type: 'thinking', thinking: ' a ', signature: 'S' },
    { type: 'redacted_thinking', data: 'D' },
  ]);
  for (const keepsake of [
    { maker: 'other', value: 'S' },
    { maker, value: '' },
  ]) {
    const foreign = [user(text('go')), assistant(reasoning('a', keepsake), text('b')), user(text('c'))];
    assert.ok(!JSON.stringify(word(promptOf({ turns: foreign })).body).includes('thinking'));
  }
});

test('pitfall 116: what cannot be given back takes all thinking before it along, and none behind it', () => {
  const turns = [
    user(text('1')),
    assistant(reasoning('one', own), text('a')),
    user(text('2')),
    assistant(reasoning('two', { maker: 'other', value: 'X' })),
    user(text('3')),
    assistant(reasoning('three', own), text('c')),
    user(text('4')),
  ];
  const messages = messagesOf(word(promptOf({ turns }), { traits: { cache_marks: false } }));
  assert.deepEqual(
    messages.map(({ content }) => content.map((block) => block['thinking'] ?? block['text'])),
    [['1'], ['a'], ['2'], ['.'], ['3'], ['three', 'c'], ['4']],
  );
});

test('pitfall 118: a model with a budget does not think on from a call whose thinking is gone', () => {
  const turns = [user(text('go')), assistant(call('a')), user(result('a'))];
  const wish = { turns, tools: [tool], reasoning: { effort: 'medium' } as const };
  const { body: json, dropped } = word(promptOf(wish), { traits: { reasoning: 'budget' } });
  assert.deepEqual([json['thinking'], dropped], [undefined, ['thinking']]);
  const whole = [user(text('go')), assistant(reasoning('hm', own), call('a')), user(result('a'))];
  const kept = word(promptOf({ ...wish, turns: whole }), { traits: { reasoning: 'budget' } });
  assert.equal((kept.body['thinking'] as JsonObject)['type'], 'enabled');
});

test('pitfalls 175, 176, 177, 185: sampling is bounded, single, and only where it is taken', () => {
  const sampled = (more: Partial<Prompt>, traits: object = {}) => {
    const { body: json, dropped } = word(promptOf(more), { traits });
    return [json['temperature'], json['top_p'], json['top_k'], dropped];
  };
  assert.deepEqual(sampled({}), [undefined, undefined, undefined, []]);
  assert.deepEqual(sampled({ temperature: 1.7 }), [1, undefined, undefined, ['temperature']]);
  assert.deepEqual(sampled({ temperature: 0.3, topP: 0.9, topK: 5 }), [0.3, undefined, 5, ['top_p']]);
  assert.deepEqual(sampled({ temperature: 1, topK: 5 }, { sampling: false }), [
    undefined,
    undefined,
    undefined,
    ['temperature', 'top_k'],
  ]);
  assert.deepEqual(sampled({ topP: 0.9, reasoning: { effort: 'low' } }), [undefined, undefined, undefined, ['top_p']]);
});

test('pitfalls 090, 091, 092: a schema is kept by its own option, by a tool, or by asking', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] };
  const output = { form: 'schema', name: 'x', schema } as const;
  const native = word(promptOf({ output })).body['output_config'] as { format: { schema: JsonObject } };
  assert.equal(native.format.schema['additionalProperties'], false);
  assert.ok(!JSON.stringify(native.format.schema['properties']).includes('"minimum"'));
  const forced = word(promptOf({ output }), { traits: { structured: 'tool' } });
  assert.deepEqual(
    [forced.body['tool_choice'], forced.way.answerTool],
    [{ type: 'tool', name: 'give_answer' }, 'give_answer'],
  );
  const thinking = word(promptOf({ output, reasoning: { effort: 'high' } }), { traits: { structured: 'tool' } });
  assert.deepEqual(thinking.body['tool_choice'], { type: 'auto' });
  const asked = word(promptOf({ output }), { traits: { structured: 'instruction' } });
  assert.match(String((asked.body['system'] as JsonObject[])[0]?.['text']), /JSON Schema/);
  const json = word(promptOf({ output: { form: 'json' } }));
  assert.match(String((json.body['system'] as JsonObject[])[0]?.['text']), /JSON object/);
});

const marksIn = (json: JsonObject) => JSON.stringify(json).match(/"cache_control":\{[^}]*\}/g) ?? [];

test('the usual places are marked where the client marks nothing', () => {
  const turns: Turn[] = [
    { role: 'system', parts: [text('s')] },
    ...[1, 2, 3].flatMap((number) => [user(text(`u${number}`)), assistant(text('a'))]),
    user(text('last')),
  ];
  const { body: json } = word(promptOf({ turns, tools: [tool, { ...tool, name: 'go' }] }));
  assert.equal(marksIn(json).length, 4);
  assert.ok('cache_control' in (json['tools'] as JsonObject[])[1]!);
  assert.deepEqual(
    messagesOf({ body: json })
      .filter(({ content }) => 'cache_control' in content[0]!)
      .map(({ content }) => content[0]!['text']),
    ['u3', 'last'],
  );
});

test("pitfall 187: of more than four marks the last of tools and system and the latest stay; the client's are kept", () => {
  const marked = (words: string): Part => ({ kind: 'text', text: words, cache: 'short' });
  const turns: Turn[] = [
    { role: 'system', parts: [marked('s1'), marked('s2')] },
    user(marked('a'), marked('b'), marked('c')),
  ];
  const { body: json, dropped } = word(promptOf({ turns, tools: [{ ...tool, cache: 'short' }] }));
  assert.deepEqual([marksIn(json).length, dropped], [4, ['cache_control']]);
  assert.ok(!('cache_control' in (json['system'] as JsonObject[])[0]!));
});

test('pitfall 188: a tool that waits to be found is declared plainly, so that its mark may stay', () => {
  const { body: json } = word(promptOf({ tools: [{ ...tool, deferred: true, cache: 'short' }] }));
  assert.deepEqual(Object.keys((json['tools'] as JsonObject[])[0]!), ['name', 'input_schema', 'cache_control']);
});

test('pitfall 189: a mark for an hour behind one for five minutes is lowered', () => {
  const turns: Turn[] = [
    {
      role: 'system',
      parts: [
        { kind: 'text', text: 'a', cache: 'long' },
        { kind: 'text', text: 'b', cache: 'short' },
      ],
    },
    user({ kind: 'text', text: 'c', cache: 'long' }),
  ];
  assert.deepEqual(marksIn(word(promptOf({ turns })).body), [
    '"cache_control":{"type":"ephemeral","ttl":"1h"}',
    '"cache_control":{"type":"ephemeral"}',
    '"cache_control":{"type":"ephemeral"}',
  ]);
});

test('pitfall 190: an upstream that knows no marks gets none', () => {
  const turns = [user({ kind: 'text', text: 'c', cache: 'long' })];
  const { body: json, dropped } = word(promptOf({ turns }), { traits: { cache_marks: false } });
  assert.deepEqual([marksIn(json), dropped], [[], ['cache_control']]);
});

test('pitfall 196: pictures, PDFs and text documents are given; sounds, films and files of others are refused', () => {
  const parts: Part[] = [
    { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'AA==' } },
    { kind: 'image', source: { form: 'url', url: 'https://x.test/a.png' } },
    {
      kind: 'document',
      source: { form: 'bytes', mediaType: 'application/pdf', base64: 'AA==' },
      name: 'my.report.pdf',
    },
    { kind: 'document', source: { form: 'bytes', mediaType: 'text/csv', base64: 'YSxi' } },
  ];
  const [turn] = messagesOf(word(promptOf({ turns: [user(...parts)] }), { traits: { cache_marks: false } }));
  assert.deepEqual(turn?.content, [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
    { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' }, title: 'my report' },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
  ]);
  const refused = (part: Part, field: string, traits = {}) =>
    assert.throws(() => word(promptOf({ turns: [user(part)] }), { traits }), refusal(field));
  refused({ kind: 'audio', source: { form: 'bytes', mediaType: 'audio/wav', base64: '' } }, 'audio');
  refused({ kind: 'document', source: { form: 'file', id: 'f' } }, 'messages.content.source.file_id');
  refused({ kind: 'image', source: { form: 'bytes', mediaType: 'image/bmp', base64: '' } }, 'messages.content.image');
  refused(parts[0]!, 'messages.content.image', { inputs: ['document'] });
});

test('pitfall 065: pictures stay inside of results, or follow them where they may not', () => {
  const picture = { kind: 'image', source: { form: 'url', url: 'https://x.test/a.png' } } as const;
  const turns = [
    user(text('go')),
    assistant(call('a')),
    user({ kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'x' }, picture] }),
  ];
  const inside = messagesOf(word(promptOf({ turns, tools: [tool] }))).at(-1)!;
  assert.deepEqual(
    (inside.content[0]!['content'] as JsonObject[]).map((block) => block['type']),
    ['text', 'image'],
  );
  const beside = messagesOf(word(promptOf({ turns, tools: [tool] }), { traits: { tool_result_media: false } })).at(-1)!;
  assert.deepEqual(
    beside.content.map((block) => block['type']),
    ['tool_result', 'image'],
  );
});

test('pitfall 109: several answers are refused; other promises too, hints are noted', () => {
  assert.throws(() => word(promptOf({ choices: 2 })), refusal('choices'));
  assert.throws(() => word(promptOf({ outputKinds: ['audio'] })), refusal('outputKinds'));
  const { dropped } = word(promptOf({ seed: 1, logprobs: 2, verbosity: 'low', serviceTier: 'flex' }));
  assert.deepEqual(dropped, ['seed', 'logprobs', 'verbosity', 'service_tier']);
});

test('stop texts of white space alone are left to the gateway', () => {
  const { body: json, way } = word(promptOf({ stop: ['END', '\n\n'] }));
  assert.deepEqual([json['stop_sequences'], way.stop], [['END'], ['\n\n']]);
});

test('members that a provider does not take are left out', () => {
  const { body: json } = word(promptOf({ user: 'u', stop: ['x'] }), { dropFields: ['metadata'] });
  assert.ok(!('metadata' in json) && 'stop_sequences' in json);
});

test('pitfall 173: counting asks for the same prompt, without what bounds the answer', () => {
  const request = word(promptOf({ stop: ['x'], tools: [tool] }), { stream: true });
  const { path, body: json } = messagesCodec.counting!.request(request);
  assert.equal(path, '/v1/messages/count_tokens');
  assert.deepEqual(Object.keys(json), ['model', 'messages', 'tools']);
  assert.equal(messagesCodec.counting!.tokens({ input_tokens: 5 }), 5);
  assert.equal(messagesCodec.counting!.tokens({}), undefined);
});

test('pitfall 119: sealed texts are taken out of a relayed request, with all thinking before them', () => {
  const thinking = (signature: string) => ({ type: 'thinking', thinking: 't', signature });
  const json = body({
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [thinking('real')] },
      { role: 'user', content: 'y' },
      {
        role: 'assistant',
        content: [
          thinking('gw1.a'),
          { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          {
            type: 'web_search_tool_result',
            tool_use_id: 's',
            content: [{ type: 'web_search_result', encrypted_content: 'gw1.b' }],
          },
          { type: 'text', text: 'z', citations: [{ encrypted_index: 'gw1.c' }, { encrypted_index: 'real' }] },
        ],
      },
      { role: 'assistant', content: [thinking('real'), { type: 'redacted_thinking', data: 'real' }] },
    ],
  });
  assert.deepEqual(messagesCodec.withoutSeals(json, open)['messages'], [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [{ type: 'text', text: '.' }] },
    { role: 'user', content: 'y' },
    { role: 'assistant', content: [{ type: 'text', text: 'z', citations: [{ encrypted_index: 'real' }] }] },
    { role: 'assistant', content: [thinking('real'), { type: 'redacted_thinking', data: 'real' }] },
  ]);
});

// ------------------------------------------------------------------------------------------------------------ properties

const word0 = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((value) => value.trim() !== '' && !value.startsWith('x-'));
const mark = fc.option(fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }), { nil: undefined });
const textBlock = fc.record({ type: fc.constant('text'), text: word0, cache_control: mark });
const picture = fc.record({
  type: fc.constant('image'),
  source: fc.constant({ type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }),
});
const step = fc
  .record({
    words: fc.array(textBlock, { maxLength: 2 }),
    thought: fc.boolean(),
    input: fc.dictionary(word0, word0),
    result: word0,
    failed: fc.boolean(),
  })
  .map(({ words, thought, input, result: output, failed }) => ({ words, thought, input, output, failed }));
const conversation = fc.record({
  first: fc.array(fc.oneof(textBlock, picture), { minLength: 1, maxLength: 3 }),
  steps: fc.array(step, { maxLength: 3 }),
});
const settings = fc.record(
  {
    system: fc.array(textBlock, { minLength: 1, maxLength: 2 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    top_k: fc.nat(100),
    stop_sequences: fc.array(word0, { minLength: 1, maxLength: 3 }),
    thinking: fc.constantFrom({ type: 'adaptive', display: 'omitted' }, { type: 'disabled' }),
    output_config: fc.constantFrom({ effort: 'low' }, { effort: 'high' }),
    metadata: fc.record({ user_id: word0 }),
    tool_choice: fc.constantFrom({ type: 'auto' }, { type: 'any' }, { type: 'none' }, { type: 'tool', name: 'look' }),
  },
  { requiredKeys: [] },
);

function bodyOf(
  {
    first,
    steps,
  }: {
    first: JsonObject[];
    steps: { words: JsonObject[]; thought: boolean; input: object; output: string; failed: boolean }[];
  },
  more: object,
): JsonObject {
  const messages: JsonObject[] = [{ role: 'user', content: first }];
  for (const [index, { words, thought, input, output, failed }] of steps.entries()) {
    const thinking = thought ? [{ type: 'thinking', thinking: 'hm', signature: `gw1.${index}` }] : [];
    const use = { type: 'tool_use', id: `toolu_${index}`, name: 'look', input };
    messages.push({ role: 'assistant', content: [...thinking, ...words, use] });
    const answer = {
      type: 'tool_result',
      tool_use_id: `toolu_${index}`,
      content: output,
      ...(failed ? { is_error: true } : {}),
    };
    messages.push({ role: 'user', content: [answer] });
  }
  const look = { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } };
  return { model: 'm', max_tokens: 500, messages, tools: [look], ...more };
}

/** The words of one prompt, each setting under the name that losses have for it. */
function members({ turns, ...settingsOf }: Prompt): Map<string, string> {
  const withoutMarks = (value: unknown) =>
    JSON.stringify(value, (key, inner: unknown) => (key === 'cache' ? undefined : inner));
  const words = new Map([['messages', withoutMarks(turns.filter(({ role }) => role !== 'system'))]]);
  for (const [name, value] of Object.entries(settingsOf)) {
    words.set(messagesCodec.spelling[name as keyof typeof messagesCodec.spelling] ?? name, withoutMarks(value));
  }
  return words;
}

test('a request that is read, worded and read again has lost only what is noted', () => {
  fc.assert(
    fc.property(conversation, settings, (talk, more) => {
      const before = decoded(bodyOf(talk as never, more)).prompt;
      const request = word(before);
      // What was worded holds the bare signatures: sealed again, it is what a client would send.
      const again = JSON.parse(
        JSON.stringify(request.body).replaceAll('"signature":"', '"signature":"gw1.'),
      ) as JsonObject;
      const after = decoded(again).prompt;
      const noted = new Set(request.dropped);
      const [one, other] = [members(before), members(after)];
      // Whoever names an effort alone is taken to want thinking too.
      if (before.reasoning?.effort !== undefined && before.reasoning.visible === undefined) noted.add('thinking');
      for (const [name, value] of one) if (!noted.has(name)) assert.equal(other.get(name), value, name);
      for (const name of other.keys()) assert.ok(one.has(name), `${name} was made up`);
      assert.ok(marksIn(request.body).length <= 4);
    }),
    { numRuns: 300 },
  );
});
