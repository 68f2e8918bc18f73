/** Settings and tools for chat upstreams: what the model is declared to take is encoded, the rest is named or refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Tool, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { encode } from './chat-harness.ts';
import { assistant, call, messages, refused, result, text, tool, user } from './chat-upstream-samples.ts';

test('a request is encoded for the upstream’s model, streams ask for usage where it is sent on request alone', () => {
  const { path, body } = encode({});
  assert.equal(path, '/chat/completions');
  assert.deepEqual(body, { model: 'up-model', messages: [{ role: 'user', content: 'Hi' }] });
  assert.deepEqual(encode({}, { stream: true }).body['stream_options'], { include_usage: true });
  assert.deepEqual(encode({}, { stream: true, usageOption: false }).body['stream_options'], undefined);
});

test('pitfall 185: nothing is asked for that the client did not ask for', () => {
  assert.deepEqual(Object.keys(encode({}).body), ['model', 'messages']);
});

test('pitfall 179: the bound on the answer goes into the member that the model takes, within its limit', () => {
  assert.equal(encode({ maxOutputTokens: 9 }).body['max_tokens'], 9);
  assert.equal(
    encode({ maxOutputTokens: 9 }, { traits: { max_tokens_field: 'max_completion_tokens' } }).body[
      'max_completion_tokens'
    ],
    9,
  );
  assert.equal(encode({ maxOutputTokens: 9 }, { maxOutputTokens: 5 }).body['max_tokens'], 5);
});

test('pitfall 178: sampling is left out for models without it, and named', () => {
  const wishes = {
    temperature: 1,
    topP: 0.5,
    frequencyPenalty: 1,
    presencePenalty: 1,
    logitBias: { 1: 1 },
    logprobs: 2,
  };
  const { body, dropped } = encode(wishes, { traits: { sampling: false } });
  assert.deepEqual(Object.keys(body), ['model', 'messages']);
  assert.deepEqual(dropped, [
    'temperature',
    'top_p',
    'frequency_penalty',
    'presence_penalty',
    'logit_bias',
    'logprobs',
  ]);
  const taken = encode(wishes).body;
  assert.deepEqual([taken['temperature'], taken['logprobs'], taken['top_logprobs']], [1, true, 2]);
});

test('a temperature above the model’s highest is lowered and named, top_k and metadata have no place', () => {
  const { body, dropped } = encode(
    { temperature: 1.7, topK: 5, metadata: { a: 'b' } },
    { traits: { max_temperature: 1 } },
  );
  assert.equal(body['temperature'], 1);
  assert.deepEqual(dropped, ['top_k', 'metadata', 'temperature']);
});

test('stop texts beyond four, and all of them where the provider takes none, are the gateway’s own to look for', () => {
  const stop = ['a', 'b', 'c', 'd', 'e'];
  const most = encode({ stop });
  assert.deepEqual([most.body['stop'], most.responseMapping.stop], [['a', 'b', 'c', 'd'], ['e']]);
  const none = encode({ stop }, { dropFields: ['stop'] });
  assert.deepEqual([none.body['stop'], none.responseMapping.stop, none.dropped], [undefined, stop, []]);
});

test('pitfall 133: an effort that the model does not know becomes the nearest', () => {
  const effort = (wish: object, traits: object = {}) =>
    encode({ reasoning: wish }, { traits }).body['reasoning_effort'];
  assert.equal(effort({ effort: 'minimal' }), 'low');
  assert.equal(effort({ effort: 'max' }), 'high');
  assert.equal(effort({ effort: 'max' }, { efforts: ['low', 'xhigh'] }), 'xhigh');
  assert.equal(effort({ budgetTokens: 8000 }), 'medium');
  assert.equal(effort({}), undefined);
});

test('pitfall 135: reasoning that is switched off is said to be off, in the form that the model understands', () => {
  const body = (effort: 'none' | 'high', traits: object) => {
    const { model: _, messages: __, ...rest } = encode({ reasoning: { effort } }, { traits }).body;
    return rest;
  };
  assert.deepEqual(body('none', {}), { reasoning_effort: 'none' });
  assert.deepEqual(body('none', { reasoning_off: false, efforts: ['low', 'high'] }), { reasoning_effort: 'low' });
  assert.deepEqual(body('none', { reasoning: 'adaptive' }), { thinking: { type: 'disabled' } });
  assert.deepEqual(body('high', { reasoning: 'adaptive' }), { thinking: { type: 'enabled' } });
  assert.deepEqual(body('high', { reasoning: 'adaptive', efforts: ['high'] }), {
    thinking: { type: 'enabled' },
    reasoning_effort: 'high',
  });
  assert.deepEqual(body('none', { reasoning: 'budget' }), { enable_thinking: false });
  assert.deepEqual(body('high', { reasoning: 'budget', max_budget: 2000 }), {
    enable_thinking: true,
    thinking_budget: 2000,
  });
  assert.deepEqual(body('none', { reasoning: 'none' }), {});
});

test('reasoning that the client would not read is hidden on the way back', () => {
  assert.equal(encode({ reasoning: { visible: false } }).responseMapping.hideReasoning, true);
  assert.equal(encode({ reasoning: { visible: true } }).responseMapping.hideReasoning, undefined);
});

test('settings that a provider does not take: soft ones are left out by name, required ones refused', () => {
  const hints = encode(
    { seed: 1, cacheKey: 'k', parallelTools: false, tools: [tool('f')], user: 'u' },
    { dropFields: ['seed', 'prompt_cache_key', 'parallel_tool_calls', 'user'] },
  );
  assert.deepEqual(Object.keys(hints.body), ['model', 'messages', 'tools']);
  assert.deepEqual(hints.dropped, ['seed', 'prompt_cache_key', 'parallel_tool_calls', 'safety_identifier']);
  refused(() => encode({ choices: 2 }, { dropFields: ['n'] }), 'n');
  refused(() => encode({ output: { form: 'json' } }, { dropFields: ['response_format'] }), 'response_format');
});

test('pitfall 184: a name of an end user that is too long goes as what follows from it', () => {
  const name = JSON.stringify({ device: 'x'.repeat(90) });
  const sent = encode({ user: name }).body['user'] as string;
  assert.ok(sent.length <= 64 && sent === encode({ user: name }).body['user']);
  assert.equal(encode({ user: 'short' }).body['user'], 'short');
});

test('pitfall 070: without tools neither tools nor a choice are sent', () => {
  assert.deepEqual(Object.keys(encode({ tools: [], toolChoice: { mode: 'auto' }, parallelTools: false }).body), [
    'model',
    'messages',
  ]);
});

test('pitfall 071: a choice goes with the tools that it chose from', () => {
  const search: Tool = { kind: 'hosted', tool: 'web_search', name: 'web_search_20260209', options: {} };
  refused(() => encode({ tools: [search], toolChoice: { mode: 'required', names: ['web_search'] } }), 'tools');
  const { body, dropped } = encode({ tools: [search, tool('f')], toolChoice: { mode: 'auto' } });
  assert.deepEqual([body.tools!.length, body['tool_choice'], dropped], [1, 'auto', ['tools']]);
  const some = { mode: 'auto' as const, names: ['web_search', 'f'] };
  const takesSome = { traits: { allowed_tools: true } };
  const among = encode({ tools: [search, tool('f')], toolChoice: some }, takesSome).body['tool_choice'];
  assert.deepEqual(among, {
    type: 'allowed_tools',
    allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
  });
  const searching = encode({ tools: [search] }, { traits: { hosted_tools: ['web_search'] } }).body;
  assert.deepEqual(searching['web_search_options'], {});
});

test('pitfall 072: the choice "none" keeps the tools in the request', () => {
  const { body } = encode({ tools: [tool('f')], toolChoice: { mode: 'none' } });
  assert.deepEqual([body.tools!.length, body['tool_choice']], [1, 'none']);
});

test('a forced tool, several allowed ones, and models that cannot be forced', () => {
  const tools = [tool('f'), tool('g')];
  const named = (name: string) => ({ type: 'function', function: { name } });
  assert.deepEqual(encode({ tools, toolChoice: { mode: 'required', names: ['f'] } }).body['tool_choice'], named('f'));
  const some = { mode: 'auto' as const, names: ['f', 'g'] };
  const three = { tools: [...tools, tool('h')], toolChoice: some };
  assert.deepEqual(encode(three, { traits: { allowed_tools: true } }).body['tool_choice'], {
    type: 'allowed_tools',
    allowed_tools: { mode: 'auto', tools: [named('f'), named('g')] },
  });
  const { tools: shown, tool_choice: choice } = encode(three).body;
  assert.deepEqual([shown?.length, choice], [2, 'auto']);
  const free = encode({ tools, toolChoice: { mode: 'required', names: ['f'] } }, { traits: { forced_tools: false } });
  assert.deepEqual([free.body['tool_choice'], free.dropped], ['auto', ['tool_choice']]);
  assert.match(free.body.messages[0]!.content as string, /Call the tool "f" now/);
});

test('pitfall 074: a tool that is declared twice is sent once', () => {
  assert.equal(encode({ tools: [tool('f'), tool('f')] }).body.tools!.length, 1);
});

test('pitfall 053: names that collide after mending stay apart, and the way back is known', () => {
  const { body, responseMapping: way } = encode({
    tools: [tool('a.b'), tool('a:b'), tool('x'.repeat(80)), tool('t', { namespace: 'ns' })],
  });
  const names = body.tools!.map(({ function: { name } }) => name);
  assert.equal(new Set(names).size, 4);
  for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
  assert.deepEqual(
    names.map((name) => way.names.get(name)?.name),
    ['a.b', 'a:b', 'x'.repeat(80), 't'],
  );
  assert.equal(names[3], 'ns__t');
});

test('pitfall 089: a strict tool whose schema is not strict goes without the mark', () => {
  const open = { type: 'object', properties: { a: { type: 'string' } } };
  const closed = { ...open, required: ['a'], additionalProperties: false };
  const { body, dropped } = encode({
    tools: [tool('f', { strict: true, schema: open }), tool('g', { strict: true, schema: closed })],
  });
  assert.deepEqual(
    [body.tools!.map(({ function: { strict } }) => strict), dropped],
    [[undefined, true], ['tools.function.strict']],
  );
});

test('a free-text tool goes as a function of one string, its grammar in words, its old calls too', () => {
  const tools: Tool[] = [
    { kind: 'custom', name: 'patch', description: 'Patches.', grammar: { syntax: 'lark', definition: 'start: "a"' } },
  ];
  const { body, responseMapping: way } = encode({
    tools,
    turns: [
      user(text('Go')),
      assistant(call('a', 'patch', { custom: true, input: 'raw "x"' })),
      user(result('a', text('ok'))),
    ],
  });
  const { description, parameters } = body.tools![0]!.function;
  assert.match(description!, /Patches\.[\s\S]*lark grammar:\nstart: "a"/);
  assert.deepEqual(parameters['required'], ['input']);
  assert.deepEqual([...way.wrapped], ['patch']);
  assert.deepEqual(body.messages[1]!.tool_calls![0]!.function.arguments, JSON.stringify({ input: 'raw "x"' }));
});

test('pitfall 190: marks to cache go where they are taken, in the spelling that is taken, else they are named', () => {
  const marked: Turn[] = [user({ kind: 'text', text: 'A', cache: 'long' })];
  const { body, dropped } = encode({ turns: marked, tools: [tool('f', { cache: 'short' })] });
  assert.ok(!JSON.stringify(body).includes('cache'));
  assert.deepEqual(dropped, ['prompt_cache_breakpoint']);
  assert.deepEqual(messages(marked, { traits: { cache_marks: true } })[0]!.content, [
    { type: 'text', text: 'A', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } },
  ]);
  assert.deepEqual(messages(marked, { traits: { cache_marks: true, cache_mark_field: 'cache_control' } })[0]!.content, [
    { type: 'text', text: 'A', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ]);
});

test('pitfall 092: an answer by schema is had natively, by a forced tool, or in words', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const output = { form: 'schema' as const, name: 'my form', schema };
  assert.deepEqual(encode({ output }).body['response_format'], {
    type: 'json_schema',
    json_schema: { name: 'my_form', schema, strict: false },
  });
  const forced = encode({ output }, { traits: { structured: 'tool' } });
  const name = forced.body.tools![0]!.function.name;
  assert.equal(forced.responseMapping.answerTool, name);
  assert.deepEqual(forced.body['tool_choice'], { type: 'function', function: { name } });
  const beside = encode({ output, tools: [tool('f')] }, { traits: { structured: 'tool' } });
  assert.deepEqual([beside.body.tools!.length, beside.body['tool_choice']], [2, 'required']);
  const sent = encode({ output }, { traits: { structured: 'instruction' } }).body;
  assert.deepEqual(sent['response_format'], { type: 'json_object' });
  assert.match(sent.messages[0]!.content as string, /"properties":\{"a"/);
  const apart = encode({ output, tools: [tool('f')] }, { traits: { structured_with_tools: false } }).body;
  assert.equal(apart['response_format'], undefined);
});

test('an object of JSON is asked for in words too, where the prompt does not mention JSON', () => {
  const { body } = encode({ output: { form: 'json' } });
  assert.deepEqual([body['response_format'], body.messages.length], [{ type: 'json_object' }, 2]);
  assert.equal(encode({ output: { form: 'json' }, turns: [user(text('As JSON, please.'))] }).body.messages.length, 1);
});
