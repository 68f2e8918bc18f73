/** Requests that responses upstreams get: what they take, in the words that they take it in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Prompt, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import type { Traits } from '../../../../plugins/common/domain/traits.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { encodeContext } from './responses-helpers.ts';
import { assistant, call, dataUrl, decode, encode, png, refusal, result, system, user } from './responses-samples.ts';

test('pitfall 119: an opaque state goes back to its maker alone', () => {
  const turns = (maker: string) => [
    user('Hi'),
    assistant({ kind: 'reasoning', text: 'Hm.', opaqueState: { maker, value: 'k' } }, { kind: 'text', text: 'Yes?' }),
    user('Go'),
  ];
  const types = (maker: string) =>
    (encode({ turns: turns(maker) }).body['input'] as JsonObject[]).map(({ type }) => type);
  assert.deepEqual(types('maker'), ['message', 'reasoning', 'message', 'message']);
  assert.deepEqual(types('other'), ['message', 'message', 'message']);
});

test('pitfall 125: reasoning without an opaque state, and reasoning that nothing follows, is not sent', () => {
  const opaqueState = { maker: 'maker', value: 'k' };
  const turns = [
    user('Hi'),
    assistant(
      { kind: 'reasoning', text: 'a' },
      { kind: 'text', text: 'b' },
      { kind: 'reasoning', text: 'c', opaqueState: opaqueState },
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
      { type: 'input_image', image_url: dataUrl, detail: 'auto' },
    ],
  });
  const apart = encode({ turns }, { tool_result_media: false }).body['input'] as JsonObject[];
  assert.equal(apart.at(-2)!['output'], 'Shot');
  assert.deepEqual(apart.at(-1)!['content'], [{ type: 'input_image', image_url: dataUrl, detail: 'auto' }]);
});

test('pitfall 068: a result that is an error is marked as one', () => {
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

test('a result answers a free-text call by its own item, whether the client reported so or not', () => {
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

test('pitfall 089: strict is never left out, and true only where the client said so', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };
  const strictOf = (strict: boolean | undefined, traits: Traits = {}) =>
    (
      encode({ tools: [{ kind: 'function', name: 'f', schema, ...(strict === undefined ? {} : { strict }) }] }, traits)
        .body['tools'] as JsonObject[]
    )[0]!['strict'];
  assert.equal(strictOf(undefined), false);
  assert.equal(strictOf(true), true);
  assert.equal(strictOf(true, { strict_tools: false }), false);
});

test('a vendor’s own tool without a counterpart is left out beside others, and refused alone or when it must be used', () => {
  const mcp = { type: 'mcp', server_label: 's', server_url: 'https://s.example' };
  const both = decode({ input: 'Hi', tools: [mcp, { type: 'function', name: 'f' }] }).prompt;
  assert.deepEqual(encode(both).dropped, ['tools.mcp']);
  assert.equal(refusal(() => encode(decode({ input: 'Hi', tools: [mcp] }).prompt)).kind, 'invalid_request');
  const forced = decode({
    input: 'Hi',
    tools: [mcp, { type: 'function', name: 'f' }],
    tool_choice: { type: 'mcp', server_label: 's' },
  }).prompt;
  assert.equal(refusal(() => encode(forced)).kind, 'invalid_request');
});

test('pitfall 054: tools of namespaces are flattened, and their calls named alike', () => {
  const tools = [{ type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'f' }] }];
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'c', name: 'f', namespace: 'ns', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: '1' },
  ];
  const { body, responseMapping: way } = encode(decode({ input, tools }).prompt);
  assert.equal((body['tools'] as JsonObject[])[0]!['name'], 'ns__f');
  assert.equal((body['input'] as JsonObject[])[1]!['name'], 'ns__f');
  assert.deepEqual(way.names.get('ns__f'), { name: 'f', namespace: 'ns' });
});

test('pitfall 109: several answers are refused', () => {
  assert.equal(refusal(() => encode({ choices: 2 })).kind, 'invalid_request');
  encode({ choices: 1 });
});

test('pitfall 181: a bound below the least is raised to it', () => {
  assert.equal(encode({ maxOutputTokens: 1 }).body['max_output_tokens'], 16);
  assert.equal(encode({ maxOutputTokens: 400 }).body['max_output_tokens'], 400);
});

test('pitfall 183: what the protocol has no words for is left out and named', () => {
  const {
    body,
    dropped,
    responseMapping: way,
  } = encode({
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

test('media that an upstream cannot see or hear are refused', () => {
  const part = (kind: 'image' | 'audio' | 'video', source: object) =>
    ({ turns: [{ role: 'user', parts: [{ kind, source }] }] }) as Partial<Prompt>;
  const bytes = { form: 'bytes', mediaType: 'audio/wav', base64: 'AAAA' };
  assert.equal(refusal(() => encode(part('audio', bytes))).kind, 'invalid_request');
  assert.equal(refusal(() => encode(part('video', bytes))).kind, 'invalid_request');
  assert.equal(refusal(() => encode(part('image', bytes), { inputs: [] })).kind, 'invalid_request');
  assert.equal(refusal(() => encode(part('image', { form: 'file', id: 'file-1' }))).field, 'file_id');
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

test('pitfall 178: models that take no sampling settings get none, and the header names them', () => {
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
  assert.deepEqual(context.dropped.dropped, ['metadata']);
});

test('a count of tokens sends the prompt alone', () => {
  const encoded = encode({ turns: [system('A'), user('Hi')], maxOutputTokens: 99, temperature: 1 });
  const { path, body } = responsesCodec.counting!.request(encoded);
  assert.equal(path, '/responses/input_tokens');
  assert.deepEqual(Object.keys(body).sort(), ['input', 'instructions', 'model']);
  assert.equal(responsesCodec.counting!.tokens({ object: 'response.input_tokens', input_tokens: 12 }), 12);
  assert.equal(responsesCodec.counting!.tokens({}), undefined);
});
