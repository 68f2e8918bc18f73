/** The messages codec on requests of clients: what they send is understood. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { decoded, maker, open } from './messages-harness.ts';
import { badField, body, refusal } from './messages-samples.ts';

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
    { name: 'DeferredToolPlaceholder', input_schema: { type: 'object' }, defer_loading: true },
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

test('pitfall 107: the line for the accounting of the vendor is no part of the prompt', () => {
  assert.deepEqual(decoded(codingBody).prompt.turns[0]?.parts, [
    { kind: 'text', text: 'You are an agent.', cache: 'short' },
    { kind: 'text', text: 'Rules.', cache: 'long' },
  ]);
  const { prompt } = decoded(body({ system: 'x-anthropic-billing-header: a=b;\nYou are.' }));
  assert.deepEqual(prompt.turns[0]?.parts, [{ kind: 'text', text: 'You are.' }]);
});

test('pitfall 077: a loaded tool is reported as text, and tools that wait to be found are declared as such', () => {
  const later = decoded(codingBody).prompt.tools.find((one) => one.kind === 'function' && one.name === 'Later');
  assert.equal(later?.kind === 'function' && later.deferred, true);
  assert.equal(decoded(codingBody).prompt.tools.length, 3);
});

for (const recording of recordings('messages').filter((one) => one.request !== undefined && one.status === 200)) {
  test(`the request of ${recording.name} is read without loss`, () => {
    const json = JSON.parse(recording.request!.toString()) as JsonObject;
    const { prompt, dropped } = decoded(json);
    // That fetched pages shall be cited: no other vendor's tool can be asked for it.
    assert.deepEqual(dropped, recording.name.includes('web-fetch-citations') ? ['web_fetch_20250910.citations'] : []);
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

test('pitfall 114: only a signature that the gateway sealed becomes an opaque state; the words of other thinking stay', () => {
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
    { kind: 'reasoning', text: 'c', opaqueState: { maker, value: 'S' } },
    { kind: 'reasoning', text: '', opaqueState: { maker, value: 'D' }, redacted: true },
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
  const found = { url: 'https://x.test/', title: 'X', opaqueState: { maker, value: 'E' }, age: '1 d' };
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

test('settings are decoded into the canonical format', () => {
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

test('pitfall 182: null counts as absent', () => {
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

test('an unreadable value is refused by the name of its field', () => {
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
