/** The messages codec on requests to upstreams, tools and settings: what models take, in the way they take it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { promptOf, word } from './messages-harness.ts';
import { assistant, call, messagesOf, refusal, result, text, tool, user } from './messages-samples.ts';

test('thinking that the client does not want to read is hidden by the model, else by the gateway', () => {
  const wish = promptOf({ reasoning: { effort: 'high', visible: false } });
  assert.equal(word(wish).responseMapping.hideReasoning, undefined);
  assert.equal(word(wish, { traits: { reasoning: 'none' } }).responseMapping.hideReasoning, true);
});

test('pitfall 180: an answer is always bounded: by the client, by the model, or by default', () => {
  assert.equal(word(promptOf()).body['max_tokens'], 8192);
  assert.equal(word(promptOf(), { maxOutputTokens: 64_000 }).body['max_tokens'], 64_000);
  assert.equal(word(promptOf({ maxOutputTokens: 99_999 }), { maxOutputTokens: 64_000 }).body['max_tokens'], 64_000);
});

test('pitfall 070: where there are no tools, none are sent', () => {
  assert.ok(!('tools' in word(promptOf()).body));
});

test('pitfall 071: without tools there is no choice of them', () => {
  const { body: json } = word(promptOf({ toolChoice: { mode: 'auto' }, parallelTools: false }));
  assert.ok(!('tool_choice' in json));
});

test('pitfall 075: tools that the history calls are declared where the request brings none, and not to be called', () => {
  const turns = [user(text('go')), assistant(call('a')), user(result('a'))];
  const { body: json } = word(promptOf({ turns }), { traits: { cache_marks: false } });
  assert.deepEqual(json['tools'], [{ name: 'look', input_schema: { type: 'object', properties: {} } }]);
  assert.deepEqual(json['tool_choice'], { type: 'none' });
});

/** Names of the tools that are sent, and the choice, for three tools of which one is there twice. */
const chosen = (more: Partial<Prompt>) => {
  const tools = [tool, tool, { ...tool, name: 'go' }, { ...tool, name: 'stay' }];
  const { body: json } = word(promptOf({ tools, ...more }));
  return [(json['tools'] as JsonObject[]).map((one) => one['name']), json['tool_choice']];
};

test('pitfall 072: a choice of none keeps the tools', () => {
  assert.deepEqual(chosen({ toolChoice: { mode: 'none' } }), [['look', 'go', 'stay'], { type: 'none' }]);
});

test('pitfall 073: allowed tools are the only ones that are sent', () => {
  const names = ['go', 'stay'];
  assert.deepEqual(chosen({ toolChoice: { mode: 'required', names } }), [names, { type: 'any' }]);
  assert.deepEqual(chosen({ toolChoice: { mode: 'auto', names } }), [names, { type: 'auto' }]);
});

test('pitfall 074: a tool that is declared twice is sent once', () => {
  const [names, choice] = chosen({ toolChoice: { mode: 'required', names: ['go'] } });
  assert.deepEqual([names, choice], [['look', 'go', 'stay'], { type: 'tool', name: 'go' }]);
});

test('calls one at a time are asked for in the choice', () => {
  assert.deepEqual(chosen({ parallelTools: false })[1], { type: 'auto', disable_parallel_tool_use: true });
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
  const { body: json, responseMapping: way } = word(promptOf({ turns, tools: [custom] }));
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
  const requestOf = (reasoning: Prompt['reasoning'], traits: object, more: Partial<Prompt> = {}) => {
    const { body: json, dropped } = word(promptOf({ reasoning: reasoning!, ...more }), {
      traits,
      maxOutputTokens: 32_000,
    });
    return [json['thinking'], json['output_config'], dropped];
  };
  const adaptive = { type: 'adaptive', display: 'summarized' };
  assert.deepEqual(requestOf({ effort: 'minimal' }, {}), [adaptive, { effort: 'low' }, []]);
  assert.deepEqual(requestOf({ effort: 'max' }, { efforts: ['low', 'max'] }), [adaptive, { effort: 'max' }, []]);
  assert.deepEqual(requestOf({ visible: false }, {}), [{ type: 'adaptive', display: 'omitted' }, undefined, []]);
  assert.deepEqual(requestOf({ effort: 'none' }, {}), [{ type: 'disabled' }, undefined, []]);
  assert.deepEqual(requestOf({ effort: 'none' }, { reasoning_off: false }), [
    undefined,
    { effort: 'low' },
    ['thinking'],
  ]);
  assert.deepEqual(requestOf({ effort: 'high' }, { reasoning: 'none' }), [undefined, undefined, ['thinking']]);
  const budget = { reasoning: 'budget' };
  assert.deepEqual(requestOf({ budgetTokens: 500 }, budget), [{ type: 'enabled', budget_tokens: 1024 }, undefined, []]);
  assert.deepEqual(requestOf({ effort: 'medium' }, budget), [{ type: 'enabled', budget_tokens: 8192 }, undefined, []]);
});

test('pitfall 131: a budget is smaller than the bound, or there is no thinking', () => {
  const traits = { reasoning: 'budget' } as const;
  const { body: json } = word(promptOf({ reasoning: { budgetTokens: 9000 }, maxOutputTokens: 4000 }), { traits });
  assert.deepEqual(json['thinking'], { type: 'enabled', budget_tokens: 3999 });
  const tight = word(promptOf({ reasoning: { budgetTokens: 9000 }, maxOutputTokens: 800 }), { traits });
  assert.deepEqual([tight.body['thinking'], tight.dropped], [undefined, ['thinking']]);
});

test('pitfall 132: a forced tool call of a model that thinks becomes a request in words', () => {
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

const sampled = (more: Partial<Prompt>, traits: object = {}) => {
  const { body: json, dropped } = word(promptOf(more), { traits });
  return [json['temperature'], json['top_p'], json['top_k'], dropped];
};

test('pitfall 175: a temperature that is too high is lowered, and that is noted', () => {
  assert.deepEqual(sampled({ temperature: 1.7 }), [1, undefined, undefined, ['temperature']]);
});

test('pitfall 176: of temperature and top_p the temperature stays', () => {
  assert.deepEqual(sampled({ temperature: 0.3, topP: 0.9, topK: 5 }), [0.3, undefined, 5, ['top_p']]);
});

test('pitfall 177: models that take no sampling settings are sent none, nor are those that think', () => {
  const off = { sampling: false };
  assert.deepEqual(sampled({ temperature: 1, topK: 5 }, off), [
    undefined,
    undefined,
    undefined,
    ['temperature', 'top_k'],
  ]);
  assert.deepEqual(sampled({ topP: 0.9, reasoning: { effort: 'low' } }), [undefined, undefined, undefined, ['top_p']]);
});

test('pitfall 185: settings that the client did not send are not sent', () => {
  assert.deepEqual(Object.keys(word(promptOf()).body), ['model', 'max_tokens', 'messages']);
});

const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] };
const output = { form: 'schema', name: 'x', schema } as const;

test('pitfall 090: the bounds of a schema are reported in words, and its objects are closed', () => {
  const { format } = word(promptOf({ output })).body['output_config'] as { format: { schema: JsonObject } };
  assert.equal(format.schema['additionalProperties'], false);
  assert.ok(!JSON.stringify(format.schema['properties']).includes('"minimum"'));
});

test('pitfall 091: JSON without a schema is asked for in words', () => {
  const { body: json } = word(promptOf({ output: { form: 'json' } }));
  assert.match(String((json['system'] as JsonObject[])[0]?.['text']), /JSON object/);
  assert.ok(!('output_config' in json));
});

test('pitfall 092: a model without structured answers gives them by a tool, which the way back knows', () => {
  const forced = word(promptOf({ output }), { traits: { structured: 'tool' } });
  const choice = { type: 'tool', name: 'give_answer' };
  assert.deepEqual([forced.body['tool_choice'], forced.responseMapping.answerTool], [choice, 'give_answer']);
  const thinking = word(promptOf({ output, reasoning: { effort: 'high' } }), { traits: { structured: 'tool' } });
  assert.deepEqual(thinking.body['tool_choice'], { type: 'auto' });
});

test('a model without structured output gets the schema in the system prompt', () => {
  const requested = word(promptOf({ output }), { traits: { structured: 'instruction' } });
  assert.match(String((requested.body['system'] as JsonObject[])[0]?.['text']), /JSON Schema/);
});

test('pitfall 109: several answers are refused; other promises too, hints are noted', () => {
  assert.throws(() => word(promptOf({ choices: 2 })), refusal('choices'));
  assert.throws(() => word(promptOf({ outputKinds: ['audio'] })), refusal('outputKinds'));
  const { dropped } = word(promptOf({ seed: 1, logprobs: 2, verbosity: 'low', serviceTier: 'flex' }));
  assert.deepEqual(dropped, ['seed', 'logprobs', 'verbosity', 'service_tier']);
});

test('stop texts of white space alone are left to the gateway', () => {
  const { body: json, responseMapping: way } = word(promptOf({ stop: ['END', '\n\n'] }));
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
