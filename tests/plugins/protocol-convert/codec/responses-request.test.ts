/** Requests that responses clients send: read whole, or refused by the name of the field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import { openSeal } from './responses-helpers.ts';
import { decode, encode, refusal, result, system, user } from './responses-samples.ts';

test('pitfall 104: input as a string, instructions as a string or a list', () => {
  const turns = [system('Be brief.'), user('Hi')];
  assert.deepEqual(decode({ instructions: 'Be brief.', input: 'Hi' }).prompt.turns, turns);
  const item = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] };
  assert.deepEqual(decode({ instructions: [item], input: [{ role: 'user', content: 'Hi' }] }).prompt.turns, turns);
  assert.deepEqual(decode({ instructions: ['Be brief.'], input: 'Hi' }).prompt.turns, turns);
});

test('pitfall 205: an answer that is not kept has exactly one code', () => {
  const error = refusal(() => decode({ input: 'Hi', previous_response_id: 'resp_1' }));
  assert.deepEqual(
    [error.kind, error.code, error.field],
    ['invalid_request', 'previous_response_not_found', 'previous_response_id'],
  );
});

test('pitfall 076: a reference to an item that is not here is refused, never guessed', () => {
  const error = refusal(() => decode({ input: [{ type: 'item_reference', id: 'msg_1' }] }));
  assert.deepEqual([error.code, error.field], ['previous_response_not_found', 'input[0]']);
});

test('pitfall 114: reasoning that was not sealed here keeps its words alone, and goes to no vendor', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Hm.' }],
      encrypted_content: 'gAAAforeign',
    },
    { role: 'assistant', content: [{ type: 'output_text', text: 'Yes?' }] },
    { role: 'user', content: 'Go on' },
  ];
  const { prompt } = decode({ input }, openSeal);
  assert.deepEqual(prompt.turns[1]!.parts[0], { kind: 'reasoning', text: 'Hm.' });
  assert.ok(!JSON.stringify(encode(prompt).body).includes('"reasoning","summary"'));
});

test('pitfall 073: allowed tools are decoded and encoded', () => {
  const tools = [{ type: 'function', name: 'f' }, { type: 'custom', name: 'g' }, { type: 'web_search' }];
  const choice = {
    type: 'allowed_tools',
    mode: 'required',
    tools: [{ type: 'function', name: 'f' }, { type: 'web_search' }],
  };
  const { prompt } = decode({ input: 'Hi', tools, tool_choice: choice });
  assert.deepEqual(prompt.toolChoice, { mode: 'required', names: ['f', 'web_search'] });
  assert.deepEqual(encode(prompt).body['tool_choice'], choice);
  const named = decode({ input: 'Hi', tools, tool_choice: { type: 'custom', name: 'g' } }).prompt;
  assert.deepEqual(encode(named).body['tool_choice'], { type: 'custom', name: 'g' });
});

test('pitfall 217: all names of the web search are one tool', () => {
  for (const type of ['web_search', 'web_search_preview', 'web_search_2025_08_26', 'web_search_preview_2025_03_11']) {
    const tool = {
      type,
      filters: { allowed_domains: ['a.example'] },
      search_context_size: 'low',
      user_location: { type: 'approximate', country: 'DE' },
    };
    const { prompt } = decode({ input: 'Hi', tools: [tool] });
    assert.deepEqual(prompt.tools[0], {
      kind: 'hosted',
      tool: 'web_search',
      name: type,
      options: { allowedDomains: ['a.example'], contextSize: 'low', location: { country: 'DE' } },
    });
    assert.deepEqual((encode(prompt).body['tools'] as JsonObject[])[0], { ...tool, type: 'web_search' });
  }
});

test('pitfall 182: null is absent', () => {
  const body = Object.fromEntries(
    [
      'instructions',
      'temperature',
      'top_p',
      'max_output_tokens',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'metadata',
      'include',
      'previous_response_id',
      'conversation',
      'user',
      'service_tier',
      'top_logprobs',
      'context_management',
    ].map((name) => [name, null]),
  );
  const { prompt, dropped } = decode({ ...body, input: 'Hi' });
  assert.deepEqual(prompt, { turns: [user('Hi')], tools: [] });
  assert.deepEqual(dropped, []);
});

test('pitfall 186: cache marks go to upstreams that take them, and nowhere else', () => {
  const input = [
    {
      role: 'user',
      content: [{ type: 'input_text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }],
    },
  ];
  const { prompt } = decode({ input });
  assert.deepEqual(prompt.turns[0]!.parts, [{ kind: 'text', text: 'Hi', cache: 'long' }]);
  const marked = encode(prompt, { cache_marks: true });
  assert.deepEqual(decode(marked.body).prompt.turns, prompt.turns);
  const plain = encode(prompt);
  assert.ok(!JSON.stringify(plain.body).includes('breakpoint'));
  assert.deepEqual(plain.dropped, ['prompt_cache_breakpoint']);
});

test('pitfall 196: files travel as data with a name, or by their address', () => {
  const file = {
    type: 'input_file',
    filename: 'a.pdf',
    file_data: `data:application/pdf;base64,${Buffer.from('%PDF-1.7').toString('base64')}`,
  };
  const linked = { type: 'input_file', file_url: 'https://a.example/b.pdf' };
  const { prompt } = decode({ input: [{ role: 'user', content: [file, linked] }] });
  assert.deepEqual((encode(prompt).body['input'] as JsonObject[])[0]!['content'], [file, linked]);
  const nameless: Part = {
    kind: 'document',
    source: { form: 'bytes', mediaType: 'application/pdf', base64: 'JVBERi0xLjc=' },
  };
  const [part] = (encode({ turns: [{ role: 'user', parts: [nameless] }] }).body['input'] as JsonObject[])[0]![
    'content'
  ] as JsonObject[];
  assert.equal(part!['filename'], 'document.pdf');
});

test('structured output is flat, and an upstream without it is asked by a tool or in words', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };
  const format = { type: 'json_schema', name: 'answer', schema, strict: true };
  const { prompt } = decode({ input: 'Hi', text: { format } });
  assert.deepEqual(prompt.output, { form: 'schema', name: 'answer', schema, strict: true });
  assert.deepEqual(encode(prompt).body['text'], { format });
  const asTool = encode(prompt, { structured: 'tool' });
  assert.equal(asTool.responseMapping.answerTool, 'structured_answer');
  assert.deepEqual(asTool.body['tool_choice'], { type: 'function', name: 'structured_answer' });
  assert.match(encode(prompt, { structured: 'instruction' }).body['instructions'] as string, /JSON Schema/);
  assert.deepEqual(decode({ input: 'Hi', text: { format: { type: 'json_object' } } }).prompt.output, { form: 'json' });
  assert.equal(decode({ input: 'Hi', text: { format: { type: 'text' } } }).prompt.output, undefined);
});

test('bad requests name the field as the client wrote it', () => {
  const cases: [JsonObject, string][] = [
    [{ input: [{ role: 'alien', content: 'a' }] }, 'input[0].role'],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input[0].content[0].text'],
    [{ input: [{ role: 'user', content: [{ type: 'hologram' }] }] }, 'input[0].content[0].type'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'file:///etc/passwd' }] }] },
      'input[0].content[0].image_url',
    ],
    [{ input: [{ type: 'function_call', call_id: 'c' }] }, 'input[0].name'],
    [{ input: [{ type: 'function_call_output', output: 'a' }] }, 'input[0].call_id'],
    [{ input: [1] }, 'input[0]'],
    [{ input: 'a', tools: [{ name: 'f' }] }, 'tools[0].type'],
    [
      { input: 'a', tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }] },
      'tools[0].tools[0].name',
    ],
    [{ input: 'a', tool_choice: 'perhaps' }, 'tool_choice'],
    [{ input: 'a', reasoning: { effort: 'heroic' } }, 'reasoning.effort'],
    [{ input: 'a', text: { format: { type: 'json_schema' } } }, 'text.format.schema'],
    [{ input: 'a', temperature: 'hot' }, 'temperature'],
    [{ input: 'a', conversation: 'conv_1' }, 'conversation'],
  ];
  for (const [json, field] of cases) assert.equal(refusal(() => decode(json)).field, field, JSON.stringify(json));
});

test('hints that only this protocol knows are named, and its defaults are not', () => {
  const { dropped } = decode({
    input: 'Hi',
    truncation: 'auto',
    max_tool_calls: 3,
    context_management: [{ type: 'compaction' }],
    moderation: {},
    include: ['file_search_call.results'],
  });
  assert.deepEqual(dropped, ['include', 'truncation', 'max_tool_calls', 'context_management']);
  assert.deepEqual(
    decode({ input: 'Hi', truncation: 'disabled', store: true, include: [], brand_new: false }).dropped,
    [],
  );
});

test('pitfall 067: a result that is an object or a list of anything is reported as JSON', () => {
  const read = (output: unknown) =>
    decode({
      input: [
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output },
      ],
    }).prompt.turns[1]!.parts[0];
  assert.deepEqual(read({ ok: true }), result('c', '{"ok":true}'));
  assert.deepEqual(read([1, 2]), result('c', '[1,2]'));
  assert.deepEqual(read([{ type: 'input_text', text: 'a' }]), result('c', 'a'));
});
