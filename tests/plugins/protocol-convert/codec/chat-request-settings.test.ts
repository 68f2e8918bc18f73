/** Settings and tools of chat clients: every spelling is read, what is left out is named, what is wrong is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { decode } from './chat-harness.ts';

const user = { role: 'user', content: 'Hi' };
const _turns = (...messages: readonly unknown[]) => decode({ messages }).prompt.turns;
const prompt = (body: JsonObject) => decode({ messages: [user], ...body }).prompt;
const dropped = (body: JsonObject) => decode({ messages: [user], ...body }).dropped;

function refused(body: JsonObject, field: string): void {
  assert.throws(
    () => decode({ messages: [user], ...body }),
    (error) => error instanceof GatewayError && error.kind === 'invalid_request' && error.field === field,
  );
}

test('all settings are read, null counts as absent', () => {
  const {
    turns: _,
    tools: __,
    ...read
  } = prompt({
    max_tokens: 5,
    max_completion_tokens: 7,
    temperature: 0.5,
    top_p: 0.9,
    stop: 'END',
    n: 2,
    seed: 3,
    frequency_penalty: 1,
    presence_penalty: -1,
    logit_bias: { 5: 1 },
    logprobs: true,
    top_logprobs: 4,
    verbosity: 'low',
    reasoning_effort: 'high',
    user: 'u',
    safety_identifier: 's',
    metadata: { a: 'b' },
    service_tier: 'flex',
    prompt_cache_key: 'k',
    parallel_tool_calls: false,
    modalities: ['text', 'audio'],
    audio: { voice: 'v', format: 'wav' },
  });
  assert.deepEqual(read, {
    maxOutputTokens: 7,
    temperature: 0.5,
    topP: 0.9,
    stop: ['END'],
    choices: 2,
    seed: 3,
    frequencyPenalty: 1,
    presencePenalty: -1,
    logitBias: { 5: 1 },
    logprobs: 4,
    verbosity: 'low',
    reasoning: { effort: 'high', visible: true },
    user: 's',
    metadata: { a: 'b' },
    serviceTier: 'flex',
    cacheKey: 'k',
    parallelTools: false,
    outputKinds: ['audio'],
    audioOptions: { voice: 'v', format: 'wav' },
  });
});

test('pitfall 182: null is absent for every setting', () => {
  const names = [
    'max_tokens',
    'temperature',
    'top_p',
    'stop',
    'n',
    'seed',
    'logit_bias',
    'logprobs',
    'response_format',
    'reasoning_effort',
    'tools',
    'tool_choice',
    'user',
    'metadata',
    'modalities',
    'audio',
    'functions',
    'parallel_tool_calls',
    'service_tier',
    'store',
    'prediction',
  ];
  const read = decode({ messages: [user], ...Object.fromEntries(names.map((name) => [name, null])) });
  assert.deepEqual(read.prompt, { turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Hi' }] }], tools: [] });
  assert.deepEqual(read.dropped, []);
});

test('pitfall 150: stop may be a text or a list, empty texts stop nothing', () => {
  assert.deepEqual(prompt({ stop: ['A', ''] }).stop, ['A']);
  assert.equal(prompt({ stop: '' }).stop, undefined);
});

test('pitfall 183: members that nothing reads are named, where they ask for something', () => {
  assert.deepEqual(
    dropped({
      min_p: 0.1,
      repetition_penalty: 1.1,
      prediction: { type: 'content', content: 'x' },
      store: true,
      moderation: { model: 'm' },
    }),
    ['min_p', 'repetition_penalty', 'prediction', 'store', 'moderation'],
  );
  assert.deepEqual(
    dropped({ store: false, prediction: null, extra_body: {}, stream_options: { include_usage: true } }),
    [],
  );
});

test('how much to reason is read in every spelling that servers know', () => {
  const wish = (body: JsonObject) => prompt(body).reasoning;
  assert.deepEqual(wish({ reasoning: { effort: 'low', exclude: true } }), { effort: 'low', visible: false });
  assert.deepEqual(wish({ reasoning: { max_tokens: 2000 } }), { budgetTokens: 2000, visible: true });
  assert.deepEqual(wish({ thinking: { type: 'enabled', budget_tokens: 900 } }), { budgetTokens: 900, visible: true });
  assert.deepEqual(wish({ thinking: { type: 'disabled' } }), { effort: 'none', visible: true });
  assert.deepEqual(wish({ enable_thinking: true, thinking_budget: 70 }), { budgetTokens: 70, visible: true });
  assert.deepEqual(wish({ enable_thinking: false }), { effort: 'none', visible: true });
  assert.deepEqual(wish({ include_reasoning: false }), { visible: false });
  assert.equal(wish({}), undefined);
});

test('pitfall 091: "json_object" and a schema are decoded as different output forms', () => {
  const schema = { type: 'object' };
  assert.deepEqual(prompt({ response_format: { type: 'json_object' } }).output, { form: 'json' });
  assert.equal(prompt({ response_format: { type: 'text' } }).output, undefined);
  assert.deepEqual(
    prompt({
      response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema, description: 'd' } },
    }).output,
    { form: 'schema', name: 'n', strict: true, schema, description: 'd' },
  );
  refused({ response_format: { type: 'xml' } }, 'response_format.type');
});

test('tools are read nested and flat, free text with its grammar, searches and unknown ones as the vendor’s own', () => {
  const grammar = { syntax: 'lark', definition: 'start: "a"' };
  assert.deepEqual(
    prompt({
      tools: [
        { type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object' } } },
        { type: 'function', name: 'g', parameters: { type: 'object' } },
        { type: 'custom', custom: { name: 'h', description: 'd', format: { type: 'grammar', grammar } } },
        { type: 'custom', name: 'i', format: { type: 'text' } },
        { type: 'lunar_probe' },
      ],
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate: { city: 'Bern' } },
      },
    }).tools,
    [
      { kind: 'function', name: 'f', strict: true, schema: { type: 'object' } },
      { kind: 'function', name: 'g', schema: { type: 'object' } },
      { kind: 'custom', name: 'h', description: 'd', grammar },
      { kind: 'custom', name: 'i' },
      { kind: 'hosted', tool: 'other', name: 'lunar_probe', options: {} },
      {
        kind: 'hosted',
        tool: 'web_search',
        name: 'web_search_options',
        options: { contextSize: 'low', location: { city: 'Bern' } },
      },
    ],
  );
});

test('pitfall 073: the choice among tools is read in all of its forms', () => {
  const choice = (tool_choice: unknown) => prompt({ tool_choice }).toolChoice;
  assert.deepEqual(['auto', 'none', 'required', 'any'].map(choice), [
    { mode: 'auto' },
    { mode: 'none' },
    { mode: 'required' },
    { mode: 'required' },
  ]);
  assert.deepEqual(choice({ type: 'function', function: { name: 'f' } }), { mode: 'required', names: ['f'] });
  assert.deepEqual(choice({ type: 'custom', custom: { name: 'f' } }), { mode: 'required', names: ['f'] });
  const tools = [
    { type: 'function', function: { name: 'f' } },
    { type: 'custom', custom: { name: 'g' } },
  ];
  assert.deepEqual(choice({ type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } }), {
    mode: 'auto',
    names: ['f', 'g'],
  });
  assert.deepEqual(choice({ type: 'allowed_tools', mode: 'required', tools }), { mode: 'required', names: ['f', 'g'] });
});

test('a wrong setting is refused by the name that the client gave it', () => {
  const message = (content: unknown) => ({ messages: [user, { role: 'user', content }] });
  refused({ messages: [7] }, 'messages[0]');
  refused({ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role');
  refused(message(7), 'messages[1].content');
  refused(message([{ type: 'hologram' }]), 'messages[1].content[0].type');
  refused(message([{ type: 'image_url', image_url: {} }]), 'messages[1].content[0].image_url.url');
  refused(
    message([{ type: 'image_url', image_url: { url: 'not an address' } }]),
    'messages[1].content[0].image_url.url',
  );
  refused(message([{ type: 'file', file: {} }]), 'messages[1].content[0].file.file_data');
  refused(
    { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: { arguments: '{}' } }] }] },
    'messages[0].tool_calls[0].function.name',
  );
  refused({ temperature: 3 }, 'temperature');
  refused({ reasoning_effort: 'heroic' }, 'reasoning_effort');
  refused({ stop: [1] }, 'stop[0]');
  refused({ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name');
  refused({ tool_choice: 'perhaps' }, 'tool_choice');
  refused({ modalities: ['smell'] }, 'modalities[0]');
});
