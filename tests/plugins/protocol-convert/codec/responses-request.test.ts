/** Requests of the responses protocol: what clients send is read whole, and what upstreams get is what they take. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../../core/errors.ts';
import { efforts, type Traits } from '../../../../core/traits.ts';
import type { Target } from '../../../../core/vocabulary.ts';
import type { Keepsake, Part, Prompt, Turn } from '../../../../plugins/protocol-convert/canon.ts';
import type { EncodedRequest } from '../../../../plugins/protocol-convert/codec.ts';
import type { JsonObject } from '../../../../plugins/protocol-convert/json.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { decodeContext, encodeContext, openSeal, recordings } from './responses-helpers.ts';

function decode(json: JsonObject, open?: (text: string) => Keepsake | undefined) {
  const context = decodeContext(open);
  const prompt = responsesCodec.decodeRequest({ model: 'm', ...json }, context);
  return { prompt, dropped: context.losses.dropped };
}

function encode(prompt: Partial<Prompt>, traits: Traits = {}): EncodedRequest & { dropped: readonly string[] } {
  const context = encodeContext({ traits });
  const encoded = responsesCodec.encodeRequest({ turns: [user('Hi')], tools: [], ...prompt }, context);
  return { ...encoded, dropped: context.losses.dropped };
}

const user = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
const system = (text: string): Turn => ({ role: 'system', parts: [{ kind: 'text', text }] });
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const call = (id: string, name = 'f', input = '{}'): Part => ({ kind: 'tool-call', id, name, input });
const result = (callId: string, text = 'ok'): Part => ({
  kind: 'tool-result',
  callId,
  parts: [{ kind: 'text', text }],
});

function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  return assert.fail('nothing was thrown');
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const dataUrl = `data:image/png;base64,${png}`;

for (const { name, request } of recordings) {
  // A prompt that the vendor keeps cannot be read by anybody else.
  if (request === undefined || request['prompt'] !== undefined) continue;
  test(`${name}: the recorded request is read, and worded so that it reads the same`, () => {
    const { prompt } = decode(request, (text) => ({ maker: 'maker', value: text }));
    const only = prompt.tools.length === 1 && prompt.tools[0]!.kind === 'hosted' && prompt.tools[0]!.tool === 'other';
    if (only) {
      assert.equal(refusal(() => encode(prompt)).kind, 'unsupported');
      return;
    }
    const { body } = encode(prompt, { efforts: [...efforts] });
    const again = decode(body, (text) => ({ maker: 'maker', value: text })).prompt;
    const { turns, tools, ...rest } = again;
    const { turns: turnsBefore, tools: toolsBefore, ...restBefore } = prompt;
    const declared = toolsBefore.filter((tool) => tool.kind !== 'hosted' || tool.tool !== 'other');
    assert.deepEqual(
      tools.map(({ name: tool }) => tool),
      declared.map(({ name: tool }) => tool),
    );
    assert.deepEqual(rest, restBefore);
    assert.deepEqual(saidIn(turns), saidIn(turnsBefore));
  });
}

/** All parts with who said them; what the system said at the beginning is one text. */
function saidIn(turns: readonly Turn[]): unknown[] {
  const start = turns.findIndex(({ role }) => role !== 'system');
  const words = turns.slice(0, start).flatMap(({ parts }) => parts.map((part) => part.kind === 'text' && part.text));
  const rest = turns.slice(start).flatMap(({ role, parts }) => parts.map((part) => [role, part]));
  return [words.join('\n\n'), ...rest];
}

test('pitfall 104: input as a string, instructions as a string or a list', () => {
  const turns = [system('Be brief.'), user('Hi')];
  assert.deepEqual(decode({ instructions: 'Be brief.', input: 'Hi' }).prompt.turns, turns);
  const item = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] };
  assert.deepEqual(decode({ instructions: [item], input: [{ role: 'user', content: 'Hi' }] }).prompt.turns, turns);
  assert.deepEqual(decode({ instructions: ['Be brief.'], input: 'Hi' }).prompt.turns, turns);
});

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
    { kind: 'reasoning', text: '', keepsake: { maker: 'maker', value: 'sign' } },
    { kind: 'tool-call', id: 'call_1', name: 'exec_command', input: '{"cmd":"cat notes.txt"}' },
  ]);
  assert.deepEqual(
    prompt.tools.map((tool) => (tool.kind === 'hosted' ? tool.tool : tool.kind)),
    ['function', 'custom', 'other', 'other'],
  );
  assert.deepEqual(prompt.reasoning, { effort: 'medium' });
  assert.equal(prompt.cacheKey, 'thread-1');
  const { body, dropped: lost } = encode(prompt);
  assert.deepEqual(
    (body['tools'] as JsonObject[]).map(({ type }) => type),
    ['function', 'custom'],
  );
  assert.deepEqual(lost, ['tools.tool_search', 'tools.web_search']);
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

test('pitfall 205: an answer that is not kept is told by exactly one code', () => {
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

test('pitfall 069: a custom tool’s output that is a JSON text of parts is read as those parts', () => {
  const output = JSON.stringify([
    { type: 'input_text', text: 'Shot:' },
    { type: 'input_image', image_url: dataUrl },
  ]);
  const { prompt } = decode({ input: [{ type: 'custom_tool_call_output', call_id: 'c', output }] });
  const [part] = prompt.turns[0]!.parts;
  assert.deepEqual(part?.kind === 'tool-result' && part.parts, [
    { kind: 'text', text: 'Shot:' },
    { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } },
  ]);
  const plain = decode({ input: [{ type: 'custom_tool_call_output', call_id: 'c', output: '[1,2]' }] }).prompt.turns[0]!
    .parts[0];
  assert.deepEqual(plain?.kind === 'tool-result' && plain.parts, [{ kind: 'text', text: '[1,2]' }]);
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

test('pitfall 119: a keepsake goes back to its maker alone', () => {
  const turns = (maker: string) => [
    user('Hi'),
    assistant({ kind: 'reasoning', text: 'Hm.', keepsake: { maker, value: 'k' } }, { kind: 'text', text: 'Yes?' }),
    user('Go'),
  ];
  const types = (maker: string) =>
    (encode({ turns: turns(maker) }).body['input'] as JsonObject[]).map(({ type }) => type);
  assert.deepEqual(types('maker'), ['message', 'reasoning', 'message', 'message']);
  assert.deepEqual(types('other'), ['message', 'message', 'message']);
});

test('pitfall 125: reasoning without a keepsake, and reasoning that nothing follows, is not sent', () => {
  const keepsake = { maker: 'maker', value: 'k' };
  const turns = [
    user('Hi'),
    assistant(
      { kind: 'reasoning', text: 'a' },
      { kind: 'text', text: 'b' },
      { kind: 'reasoning', text: 'c', keepsake },
    ),
    user('d'),
  ];
  assert.ok(!(encode({ turns }).body['input'] as JsonObject[]).some(({ type }) => type === 'reasoning'));
});

test('pitfall 103: what the assistant said is output_text, what the user said is input_text', () => {
  const { body } = encode({ turns: [user('a'), assistant({ kind: 'text', text: 'b' }), user('c')] });
  const kinds = (body['input'] as JsonObject[]).map(({ content }) => (content as JsonObject[])[0]!['type']);
  assert.deepEqual(kinds, ['input_text', 'output_text', 'input_text']);
});

test('pitfall 095: leading system texts are instructions, later ones are developer items in place', () => {
  const { body } = encode({ turns: [system('A'), system('B'), user('Hi'), system('C')] });
  assert.equal(body['instructions'], 'A\n\nB');
  assert.deepEqual(
    (body['input'] as JsonObject[]).map(({ role }) => role),
    ['user', 'developer'],
  );
  const alone = encode({ turns: [system('A')] }).body;
  assert.equal(alone['instructions'], undefined);
  assert.equal((alone['input'] as JsonObject[])[0]!['role'], 'developer');
});

test('pitfall 065: images in results go as parts, or after the result where the upstream cannot take them', () => {
  const image: Part = { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } };
  const results: Part = { kind: 'tool-result', callId: 'c', parts: [{ kind: 'text', text: 'Shot' }, image] };
  const turns: Turn[] = [user('Hi'), assistant(call('c')), { role: 'user', parts: [results] }];
  const items = encode({ turns }).body['input'] as JsonObject[];
  assert.deepEqual(items.at(-1), {
    type: 'function_call_output',
    call_id: 'c',
    output: [
      { type: 'input_text', text: 'Shot' },
      { type: 'input_image', image_url: dataUrl },
    ],
  });
  const apart = encode({ turns }, { tool_result_media: false }).body['input'] as JsonObject[];
  assert.equal(apart.at(-2)!['output'], 'Shot');
  assert.deepEqual(apart.at(-1)!['content'], [{ type: 'input_image', image_url: dataUrl }]);
});

test('pitfall 068: a result that is an error says so', () => {
  const failed: Part = { kind: 'tool-result', callId: 'c', parts: [{ kind: 'text', text: 'no file' }], isError: true };
  const items = encode({ turns: [user('Hi'), assistant(call('c')), { role: 'user', parts: [failed] }] }).body['input'];
  assert.equal((items as JsonObject[]).at(-1)!['output'], 'Error: no file');
});

test('pitfall 060: a call without a result gets one, a result without a call is left out', () => {
  const turns: Turn[] = [
    user('Hi'),
    assistant(call('a'), call('b')),
    { role: 'user', parts: [result('b'), result('x')] },
  ];
  const items = encode({ turns }).body['input'] as JsonObject[];
  assert.deepEqual(
    items.slice(-2).map(({ call_id: id, output }) => [id, output]),
    [
      ['a', '(no result)'],
      ['b', 'ok'],
    ],
  );
});

test('a result answers a free-text call by its own item, whether the client told so or not', () => {
  const custom: Part = { kind: 'tool-call', id: 'c', name: 'patch', input: 'raw', custom: true };
  const items = encode({ turns: [user('Hi'), assistant(custom), { role: 'user', parts: [result('c')] }] }).body[
    'input'
  ];
  assert.deepEqual(
    (items as JsonObject[]).slice(1).map(({ type }) => type),
    ['custom_tool_call', 'custom_tool_call_output'],
  );
});

test('pitfall 070: no tools are no member, and pitfall 071: no choice either', () => {
  const { body } = encode({ toolChoice: { mode: 'required' }, parallelTools: false });
  for (const name of ['tools', 'tool_choice', 'parallel_tool_calls']) assert.equal(body[name], undefined);
  assert.equal(decode({ input: 'Hi', tools: [], tool_choice: 'auto' }).prompt.toolChoice, undefined);
});

test('pitfall 074: a tool that is declared twice is sent once', () => {
  const tool = { kind: 'function', name: 'f' } as const;
  assert.equal((encode({ tools: [tool, tool] }).body['tools'] as JsonObject[]).length, 1);
});

test('pitfall 073: allowed tools are read and worded', () => {
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

test('pitfall 089: strict is never left out, and true only where the client said so', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const strictOf = (strict: boolean | undefined, traits: Traits = {}) =>
    (
      encode({ tools: [{ kind: 'function', name: 'f', schema, ...(strict === undefined ? {} : { strict }) }] }, traits)
        .body['tools'] as JsonObject[]
    )[0]!['strict'];
  assert.equal(strictOf(undefined), false);
  assert.equal(strictOf(true), true);
  assert.equal(strictOf(true, { strict_tools: false }), false);
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

test('a vendor’s own tool without a counterpart is left out beside others, and refused alone or when it must be used', () => {
  const mcp = { type: 'mcp', server_label: 's', server_url: 'https://s.example' };
  const both = decode({ input: 'Hi', tools: [mcp, { type: 'function', name: 'f' }] }).prompt;
  assert.deepEqual(encode(both).dropped, ['tools.mcp']);
  assert.equal(refusal(() => encode(decode({ input: 'Hi', tools: [mcp] }).prompt)).kind, 'unsupported');
  const forced = decode({
    input: 'Hi',
    tools: [mcp, { type: 'function', name: 'f' }],
    tool_choice: { type: 'mcp', server_label: 's' },
  }).prompt;
  assert.equal(refusal(() => encode(forced)).kind, 'unsupported');
});

test('pitfall 054: tools of namespaces are flattened, and their calls named alike', () => {
  const tools = [{ type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'f' }] }];
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'c', name: 'f', namespace: 'ns', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: '1' },
  ];
  const { body, way } = encode(decode({ input, tools }).prompt);
  assert.equal((body['tools'] as JsonObject[])[0]!['name'], 'ns__f');
  assert.equal((body['input'] as JsonObject[])[1]!['name'], 'ns__f');
  assert.deepEqual(way.names.get('ns__f'), { name: 'f', namespace: 'ns' });
});

test('pitfall 109: several answers are refused', () => {
  assert.equal(refusal(() => encode({ choices: 2 })).kind, 'unsupported');
  encode({ choices: 1 });
});

test('pitfall 181: a bound below the least is raised to it', () => {
  assert.equal(encode({ maxOutputTokens: 1 }).body['max_output_tokens'], 16);
  assert.equal(encode({ maxOutputTokens: 400 }).body['max_output_tokens'], 400);
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

test('pitfall 183: what the protocol has no words for is left out and named', () => {
  const { body, dropped, way } = encode({
    topK: 5,
    seed: 1,
    frequencyPenalty: 1,
    presencePenalty: 1,
    logitBias: { a: 1 },
    stop: ['END'],
  });
  assert.deepEqual(Object.keys(body).sort(), ['include', 'input', 'model', 'store']);
  assert.equal(dropped.length, 5);
  assert.deepEqual(way.stop, ['END']);
});

test('pitfall 184: a user’s name that is too long becomes one that stands for it', () => {
  const user64 = 'u'.repeat(64);
  assert.equal(encode({ user: user64 }).body['safety_identifier'], user64);
  const short = encode({ user: `${user64}x` }).body['safety_identifier'] as string;
  assert.ok(short.length <= 64 && short !== user64);
});

test('pitfall 185: nothing is asked for that the client did not ask for', () => {
  assert.deepEqual(encode({}).body, {
    model: 'upstream-model',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
    store: false,
    include: ['reasoning.encrypted_content'],
  });
  assert.deepEqual(encode({}, { reasoning: 'none' }).body['include'], undefined);
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

test('what an upstream cannot see or hear is refused', () => {
  const part = (kind: 'image' | 'audio' | 'video', source: object) =>
    ({ turns: [{ role: 'user', parts: [{ kind, source }] }] }) as Partial<Prompt>;
  const bytes = { form: 'bytes', mediaType: 'audio/wav', base64: 'AAAA' };
  assert.equal(refusal(() => encode(part('audio', bytes))).kind, 'unsupported');
  assert.equal(refusal(() => encode(part('video', bytes))).kind, 'unsupported');
  assert.equal(refusal(() => encode(part('image', bytes), { inputs: [] })).kind, 'unsupported');
  assert.equal(refusal(() => encode(part('image', { form: 'file', id: 'file-1' }))).field, 'file_id');
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

test('pitfall 214: items of types that nobody knows are left out and named', () => {
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

test('tools that a client’s search found may be called', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: { query: 'mail' } },
    { type: 'tool_search_output', call_id: 'c', tools: [{ type: 'function', name: 'send_mail', defer_loading: true }] },
  ];
  const { prompt } = decode({ input });
  assert.deepEqual(prompt.tools, [{ kind: 'function', name: 'send_mail', deferred: true }]);
  assert.deepEqual(prompt.turns[2]!.parts, [result('c', 'Tools loaded: send_mail')]);
});

test('pitfall 216: the phase of messages is kept', () => {
  const message = (text: string, phase: string) => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
    phase,
  });
  const input = [message('Looking.', 'commentary'), message('Done.', 'final_answer')];
  const { prompt } = decode({ input });
  assert.deepEqual(
    prompt.turns.map(({ phase }) => phase),
    ['commentary', 'final_answer'],
  );
  assert.deepEqual(encode(prompt).body['input'], input);
});

test('searches of the vendor’s own go back to it, others are left out and named', () => {
  const input = [
    {
      type: 'web_search_call',
      id: 'ws_1',
      status: 'completed',
      action: { type: 'search', query: 'a', queries: ['a', 'b'] },
    },
  ];
  const { prompt } = decode({ input });
  assert.deepEqual(encode(prompt).body['input'], input);
  const foreign = encode({
    turns: [user('Hi'), assistant({ kind: 'search', id: 'srvtoolu_1', queries: ['a'], results: [] }), user('b')],
  });
  assert.deepEqual(foreign.dropped, ['web_search_call']);
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
  assert.equal(asTool.way.answerTool, 'structured_answer');
  assert.deepEqual(asTool.body['tool_choice'], { type: 'function', name: 'structured_answer' });
  assert.match(encode(prompt, { structured: 'instruction' }).body['instructions'] as string, /JSON Schema/);
  assert.deepEqual(decode({ input: 'Hi', text: { format: { type: 'json_object' } } }).prompt.output, { form: 'json' });
  assert.equal(decode({ input: 'Hi', text: { format: { type: 'text' } } }).prompt.output, undefined);
});

test('pitfall 178: models that take no sampling settings get none, and the client is told', () => {
  const wishes = { temperature: 0.5, topP: 0.9, logprobs: 2 };
  const { body } = encode(wishes);
  assert.deepEqual([body['temperature'], body['top_p'], body['top_logprobs']], [0.5, 0.9, 2]);
  assert.deepEqual(body['include'], ['reasoning.encrypted_content', 'message.output_text.logprobs']);
  const refused = encode(wishes, { sampling: false });
  assert.deepEqual(refused.dropped, ['temperature', 'top_p', 'top_logprobs']);
  assert.equal(refused.body['top_logprobs'], undefined);
});

test('pitfall 133: an effort that the model does not know becomes the nearest, and budgets become efforts', () => {
  const effort = (reasoning: Prompt['reasoning'], traits: Traits = {}) =>
    encode({ ...(reasoning ? { reasoning } : {}) }, traits).body['reasoning'];
  assert.deepEqual(effort({ effort: 'minimal' }), { effort: 'low' });
  assert.deepEqual(effort({ effort: 'xhigh', visible: true }), { effort: 'high', summary: 'auto' });
  assert.deepEqual(effort({ effort: 'xhigh' }, { efforts: ['low', 'xhigh'] }), { effort: 'xhigh' });
  assert.deepEqual(effort({ budgetTokens: 8192 }), { effort: 'medium' });
  assert.deepEqual(effort({ effort: 'none' }), { effort: 'none' });
  assert.deepEqual(effort({ effort: 'none' }, { reasoning_off: false }), { effort: 'low' });
  assert.deepEqual(encode({ reasoning: { effort: 'high' } }, { reasoning: 'none' }).dropped, ['reasoning']);
});

test('members that a provider does not take are removed, and wishes among them are named', () => {
  const context = encodeContext({
    target: {
      model: 'u',
      protocol: 'responses',
      upstream: { dropFields: { responses: ['metadata', 'store', 'include'] } },
    } as unknown as Target,
  });
  const { body } = responsesCodec.encodeRequest({ turns: [user('Hi')], tools: [], metadata: { a: 'b' } }, context);
  assert.deepEqual(Object.keys(body), ['model', 'input']);
  assert.deepEqual(context.losses.dropped, ['metadata']);
});

test('counting asks with the prompt alone', () => {
  const encoded = encode({ turns: [system('A'), user('Hi')], maxOutputTokens: 99, temperature: 1 });
  const { path, body } = responsesCodec.counting!.request(encoded);
  assert.equal(path, '/responses/input_tokens');
  assert.deepEqual(Object.keys(body).sort(), ['input', 'instructions', 'model']);
  assert.equal(responsesCodec.counting!.tokens({ object: 'response.input_tokens', input_tokens: 12 }), 12);
  assert.equal(responsesCodec.counting!.tokens({}), undefined);
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

const word = fc.string({ minLength: 1, maxLength: 12 });
const mark = fc.constantFrom('short' as const, 'long' as const);
const text = fc.record(
  { kind: fc.constant('text' as const), text: word, cache: mark },
  { requiredKeys: ['kind', 'text'], noNullPrototype: true },
);
const image = fc.record(
  {
    kind: fc.constant('image' as const),
    source: fc.constantFrom(
      { form: 'bytes' as const, mediaType: 'image/png', base64: png },
      { form: 'url' as const, url: 'https://a.example/b' },
    ),
    detail: fc.constantFrom('low', 'high'),
  },
  { requiredKeys: ['kind', 'source'], noNullPrototype: true },
);
const said = word.map((text) => ({ kind: 'text' as const, text }));
/** A step of a conversation: the user speaks, the assistant thinks, speaks and calls, the tools answer. */
const step = fc
  .record({
    asked: fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 3 }),
    thought: fc.option(fc.record({ text: fc.oneof(fc.constant(''), word), value: word }), { nil: undefined }),
    answer: said,
    phase: fc.option(fc.constantFrom('commentary', 'final_answer'), { nil: undefined }),
    calls: fc.array(
      fc.record({
        name: fc.constantFrom('f', 'a b', 'patch'),
        output: fc.array(fc.oneof(said, image), { minLength: 1, maxLength: 2 }),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ asked, thought, answer, phase, calls }) => (number: number): Turn[] => {
    const ids = calls.map((_, index) => `call_${number}_${index}`);
    const thinking: Part[] =
      thought === undefined
        ? []
        : [{ kind: 'reasoning', text: thought.text, keepsake: { maker: 'maker', value: thought.value } }];
    const called: Part[] = calls.map(({ name }, index) =>
      name === 'patch'
        ? { kind: 'tool-call', id: ids[index]!, name, input: 'raw', custom: true }
        : { kind: 'tool-call', id: ids[index]!, name, input: '{"a":1}' },
    );
    const results: Part[] = calls.map(({ name, output }, index) => ({
      kind: 'tool-result',
      callId: ids[index]!,
      parts: joined(output),
      ...(name === 'patch' ? { custom: true } : {}),
    }));
    return [
      { role: 'user', parts: asked },
      { role: 'assistant', parts: [...thinking, answer, ...called], ...(phase === undefined ? {} : { phase }) },
      ...(results.length === 0 ? [] : [{ role: 'user' as const, parts: results }]),
    ];
  });

/** Texts alone are one text on the wire. */
function joined<P extends { kind: string }>(parts: readonly P[]): P[] {
  const isText = parts.every(({ kind }) => kind === 'text');
  return isText
    ? [
        {
          kind: 'text',
          text: parts.map((part) => (part as unknown as { text: string }).text).join('\n'),
        } as unknown as P,
      ]
    : [...parts];
}

const settings = fc.record(
  {
    maxOutputTokens: fc.integer({ min: 16, max: 9999 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    topK: fc.integer({ min: 1, max: 99 }),
    seed: fc.integer(),
    frequencyPenalty: fc.constant(1),
    presencePenalty: fc.constant(1),
    logitBias: fc.constant({ a: 1 }),
    logprobs: fc.integer({ min: 0, max: 5 }),
    verbosity: fc.constantFrom('low', 'high'),
    reasoning: fc.record(
      { effort: fc.constantFrom(...efforts.slice(1)), visible: fc.constant(true) },
      { requiredKeys: ['effort'], noNullPrototype: true },
    ),
    user: word,
    metadata: fc.constant({ a: 'b' }),
    serviceTier: fc.constantFrom('flex', 'priority'),
    cacheKey: word,
    parallelTools: fc.constant(false),
    toolChoice: fc.constantFrom<Prompt['toolChoice'] & object>(
      { mode: 'auto' },
      { mode: 'required', names: ['patch'] },
      { mode: 'auto', names: ['f', 'patch'] },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const tools: Prompt['tools'] = [
  { kind: 'function', name: 'f', description: 'F.', schema: { type: 'object', properties: {} }, strict: true },
  { kind: 'custom', name: 'patch', grammar: { syntax: 'regex', definition: 'a+' } },
];

/** `a b` is no legal name: the way back knows what it was. */
function withOwnNames(turns: readonly Turn[], { names }: EncodedRequest['way']): Turn[] {
  return turns.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part) => (part.kind === 'tool-call' ? { ...part, name: names.get(part.name)!.name } : part)),
  }));
}

test('a prompt that is worded and read again loses only what its losses name', () => {
  const property = fc.property(
    fc.array(step, { minLength: 1, maxLength: 4 }),
    settings,
    fc.boolean(),
    (steps, wishes, isSampling) => {
      const turns = [system('Be brief.'), ...steps.flatMap((make, number) => make(number))];
      const prompt: Prompt = { turns, tools, ...wishes };
      const encoded = encode(prompt, { efforts: [...efforts], sampling: isSampling });
      const open = (value: string): Keepsake => ({ maker: 'maker', value });
      const { turns: turnsBack, tools: toolsBack, ...back } = decode(encoded.body, open).prompt;
      for (const name of Object.keys(wishesOf(prompt)) as (keyof typeof back)[]) {
        const isLost = encoded.dropped.includes(responsesCodec.spelling[name] ?? name);
        assert.deepEqual(back[name], isLost ? undefined : prompt[name], name);
      }
      assert.deepEqual(toolsBack, tools);
      const marks = encoded.dropped.includes('prompt_cache_breakpoint') ? withoutMarks(turns) : turns;
      assert.deepEqual(withOwnNames(turnsBack, encoded.way), marks);
    },
  );
  fc.assert(property, { numRuns: 300 });
});

function wishesOf({ turns: _turns, tools: _tools, ...rest }: Prompt): Omit<Prompt, 'turns' | 'tools'> {
  return rest;
}

function withoutMarks(turns: readonly Turn[]): Turn[] {
  const bare = (part: Part): Part => {
    if (!('cache' in part)) return part;
    const { cache: _cache, ...rest } = part;
    return rest;
  };
  return turns.map((turn) => ({ ...turn, parts: turn.parts.map(bare) }));
}
