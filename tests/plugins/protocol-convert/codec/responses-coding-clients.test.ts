/** What terminal clients send: both forms of their bodies, summaries, phases, tools that they run themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { openSeal } from './responses-helpers.ts';
import { dataUrl, decode, encode, png, refusal, result, system, user } from './responses-samples.ts';

/** As terminal clients send it with tools at the top. */
const classicBody = {
  model: 'gpt-5.5',
  stream: true,
  input: [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'You are a coding agent.' }] },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Read notes.txt' }] },
    { type: 'reasoning', summary: [], content: null, encrypted_content: 'gw1.c2lnbg' },
    {
      type: 'function_call',
      id: 'fc_1',
      call_id: 'call_1',
      name: 'exec_command',
      arguments: '{"cmd":"cat notes.txt"}',
    },
    { type: 'function_call_output', id: 'fco_1', call_id: 'call_1', output: 'hello' },
  ],
  tools: [
    {
      type: 'function',
      name: 'exec_command',
      description: 'Runs.',
      strict: false,
      parameters: { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] },
    },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Patches.',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
    },
    { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters: { type: 'object' } },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium' },
  store: false,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'thread-1',
  text: { verbosity: 'low' },
  client_metadata: { 'x-codex-installation-id': 'a' },
};

test('a terminal client’s body is read with nothing refused and nothing noted', () => {
  const { prompt, dropped } = decode(classicBody, openSeal);
  assert.deepEqual(dropped, []);
  assert.deepEqual(
    prompt.turns.map(({ role }) => role),
    ['system', 'user', 'assistant', 'user'],
  );
  assert.deepEqual(prompt.turns[2]!.parts, [
    { kind: 'reasoning', text: '', opaqueState: { maker: 'maker', value: 'sign' } },
    { kind: 'tool-call', id: 'call_1', name: 'exec_command', input: '{"cmd":"cat notes.txt"}' },
  ]);
  assert.deepEqual(
    prompt.tools.map((tool) => (tool.kind === 'hosted' ? tool.tool : tool.kind)),
    ['function', 'custom', 'function', 'other'],
  );
  assert.deepEqual(prompt.reasoning, { effort: 'medium' });
  assert.equal(prompt.cacheKey, 'thread-1');
  const { body, dropped: lost } = encode(prompt);
  assert.deepEqual(
    (body['tools'] as JsonObject[]).map(({ type }) => type),
    ['function', 'custom', 'function'],
  );
  assert.deepEqual(lost, ['tools.web_search']);
});

test('a terminal client’s lite body, with tools and settings among the items, is read with nothing refused', () => {
  const passthrough = { internal_chat_message_metadata_passthrough: { a: 1 } };
  const { prompt, dropped } = decode({
    model: 'gpt-6.1-sol',
    stream: true,
    store: false,
    include: ['reasoning.encrypted_content'],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    input: [
      {
        type: 'additional_tools',
        role: 'developer',
        tools: [
          {
            type: 'namespace',
            name: 'functions',
            description: '',
            tools: [{ type: 'custom', name: 'exec', format: { type: 'text' } }],
          },
          {
            type: 'namespace',
            name: 'clock',
            description: '',
            tools: [{ type: 'function', name: 'now', parameters: { type: 'object', properties: {} } }],
          },
        ],
      },
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Agent.' }], ...passthrough },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }], ...passthrough },
      { type: 'configuration_update', reasoning: { effort: 'high' }, text: { verbosity: 'low' } },
    ],
  });
  assert.deepEqual(dropped, []);
  assert.deepEqual(prompt.tools, [
    { kind: 'custom', name: 'exec', namespace: 'functions' },
    { kind: 'function', name: 'now', namespace: 'clock', schema: { type: 'object', properties: {} } },
  ]);
  assert.deepEqual(prompt.toolChoice, { mode: 'auto' });
  assert.deepEqual(prompt.reasoning, { effort: 'high' });
  assert.equal(prompt.verbosity, 'low');
  assert.equal(prompt.turns.length, 2);
});

test('pitfall 069: a custom tool’s output that is a JSON text of parts is read as those parts', () => {
  const output = JSON.stringify([
    { type: 'input_text', text: 'Shot:' },
    { type: 'input_image', image_url: dataUrl },
  ]);
  const read = (given: string) =>
    decode({
      input: [
        { type: 'custom_tool_call', call_id: 'c', name: 'f', input: '' },
        { type: 'custom_tool_call_output', call_id: 'c', output: given },
      ],
    }).prompt.turns[1]!.parts[0];
  const part = read(output);
  assert.deepEqual(part?.kind === 'tool-result' && part.parts, [
    { kind: 'text', text: 'Shot:' },
    { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } },
  ]);
  const plain = read('[1,2]');
  assert.deepEqual(plain?.kind === 'tool-result' && plain.parts, [{ kind: 'text', text: '[1,2]' }]);
});

test('pitfall 210: a summary of ours is opened into the conversation, another’s is refused by its field', () => {
  const input = [
    { type: 'compaction', encrypted_content: 'gw1.U3VtbWFyeQ' },
    { role: 'user', content: 'Go on' },
  ];
  const { prompt } = decode({ input }, (text) => openSeal(text, 'gateway:compaction'));
  assert.deepEqual(prompt.turns, [system('Summary'), user('Go on')]);
  assert.equal(refusal(() => decode({ input }, openSeal)).field, 'input[0].encrypted_content');
  assert.equal(refusal(() => decode({ input })).field, 'input[0].encrypted_content');
});

test('a relayed request loses the gateway’s seals, and keeps what summaries say', () => {
  const kept = { type: 'reasoning', summary: [], encrypted_content: 'gAAA' };
  const json = {
    model: 'm',
    input: [
      { type: 'compaction', encrypted_content: 'gw1.U3VtbWFyeQ' },
      { type: 'reasoning', summary: [], encrypted_content: 'gw1.c2lnbg' },
      kept,
      { role: 'user', content: 'Go on' },
    ],
    store: false,
  };
  const open = (text: string) => openSeal(text, 'gateway:compaction');
  assert.deepEqual(responsesCodec.withoutSeals(json, open), {
    ...json,
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Summary' }] },
      kept,
      { role: 'user', content: 'Go on' },
    ],
  });
  assert.equal(refusal(() => responsesCodec.withoutSeals(json, () => undefined)).field, 'input[0].encrypted_content');
});

test('pitfall 214: items of unknown types are left out and named', () => {
  const { prompt, dropped } = decode({
    input: [{ type: 'mcp_list_tools', tools: [] }, { role: 'user', content: 'Hi' }, { type: 'brand_new' }],
  });
  assert.deepEqual(prompt.turns, [user('Hi')]);
  assert.deepEqual(dropped, ['mcp_list_tools', 'brand_new']);
});

test('calls that a client carries out for a vendor’s own tool stay in the conversation', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'local_shell_call', id: 'ls_1', call_id: 'c', action: { type: 'exec', command: ['ls'] } },
    { type: 'local_shell_call_output', call_id: 'c', output: 'a.txt' },
  ];
  const [, calls, results] = decode({ input }).prompt.turns;
  assert.deepEqual(calls!.parts, [
    { kind: 'tool-call', id: 'c', name: 'local_shell', input: '{"type":"exec","command":["ls"]}' },
  ]);
  assert.deepEqual(results!.parts, [result('c', 'a.txt')]);
});

test('tools that a client’s search found may be called, and the search is no tool that a client can name', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: { query: 'mail' } },
    { type: 'tool_search_output', call_id: 'c', tools: [{ type: 'function', name: 'send_mail', defer_loading: true }] },
  ];
  const { prompt } = decode({ input });
  assert.deepEqual(prompt.tools, [{ kind: 'function', name: 'send_mail', deferred: true }]);
  assert.deepEqual(prompt.turns[1]!.parts, [
    { kind: 'tool-call', id: 'c', name: 'tool_search', namespace: '', input: '{"query":"mail"}' },
  ]);
  assert.deepEqual(prompt.turns[2]!.parts, [result('c', 'Tools loaded:\n- send_mail')]);
  const named = decode({ tools: [{ type: 'function', name: 'tool_search', namespace: '' }] });
  assert.deepEqual(named.prompt.tools, [{ kind: 'function', name: 'tool_search' }]);
});

test('pitfall 216: the phase of messages is kept', () => {
  const message = (text: string, phase: string) => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
    phase,
  });
  const input = [message('Looking.', 'commentary'), message('Done.', 'final_answer')];
  const { prompt } = decode({ input });
  assert.deepEqual(
    prompt.turns.map(({ phase }) => phase),
    ['commentary', 'final_answer'],
  );
  const sent = encode(prompt).body['input'] as JsonObject[];
  assert.deepEqual(
    sent.map(({ id: _id, status: _status, ...rest }) => rest),
    input,
  );
});

test('reasoning between two phases belongs to the later one', () => {
  const input = [
    { role: 'assistant', content: 'Looking.', phase: 'commentary' },
    { type: 'reasoning', summary: [], encrypted_content: 'gw1.c2lnbg' },
    { role: 'assistant', content: 'Done.', phase: 'final_answer' },
  ];
  const { prompt } = decode({ input }, openSeal);
  assert.deepEqual(
    prompt.turns.map(({ parts }) => parts.map(({ kind }) => kind)),
    [['text'], ['reasoning', 'text']],
  );
});
