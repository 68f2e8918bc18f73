/** Answers of the responses protocol hold every member that Open Responses requires, whichever protocol the upstream speaks. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compacted, families, type Json, kept, post, type Stage, startStage, streamed, whole } from './requests.ts';

let stage: Stage;
before(async () => {
  stage = await startStage();
});
after(() => stage.stop());

/** The vendor itself, and the gateway in front of each family of it. */
const places = ['vendor', ...families] as const;
type Place = (typeof places)[number];

function originOf(place: Place): string {
  return place === 'vendor' ? stage.vendor : stage.origin;
}

const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const user = (content: unknown): Json => ({ type: 'message', role: 'user', content });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const weather = { type: 'function', name: 'get_weather', parameters };
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

const requests: Readonly<Record<string, Json>> = {
  text: { input: [user('Say hello.')] },
  'all settings': {
    input: 'Say hello.',
    instructions: 'Be short.',
    temperature: 0.5,
    top_p: 0.9,
    max_output_tokens: 500,
    metadata: { purpose: 'test' },
    safety_identifier: 'someone',
    prompt_cache_key: 'key',
    truncation: 'disabled',
    parallel_tool_calls: true,
    presence_penalty: 0,
    frequency_penalty: 0,
  },
  'settings that are null': {
    input: 'Say hello.',
    tools: null,
    tool_choice: null,
    text: null,
    temperature: null,
    top_p: null,
    reasoning: null,
    presence_penalty: null,
    metadata: null,
    store: null,
    instructions: null,
  },
  'a system message': { input: [{ type: 'message', role: 'system', content: 'Be a pirate.' }, user('Say hello.')] },
  'a tool': { input: [user('Weather? [[sandbox: tool=get_weather]]')], tools: [weather] },
  'a tool that must be called': {
    input: 'Weather?',
    tools: [
      { ...weather, description: 'Tells the weather.', strict: false },
      { type: 'function', name: 'now' },
    ],
    tool_choice: { type: 'function', name: 'get_weather' },
  },
  'allowed tools': {
    input: 'Weather?',
    tools: [weather, { type: 'function', name: 'now' }],
    tool_choice: {
      type: 'allowed_tools',
      tools: [
        { type: 'function', name: 'get_weather' },
        { type: 'function', name: 'now' },
      ],
    },
  },
  'an image': {
    input: [
      user([
        { type: 'input_text', text: 'What is it?' },
        { type: 'input_image', image_url: picture },
      ]),
    ],
  },
  'several turns': {
    input: [
      user('My name is Alice.'),
      { type: 'message', role: 'assistant', content: 'Hello Alice!', phase: 'final_answer' },
      user('What is my name?'),
    ],
  },
  'a tool and its result': {
    input: [
      user('Weather?'),
      { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{"city":"Rome"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Sunny.' },
    ],
    tools: [weather],
  },
  reasoning: {
    input: 'Think. [[sandbox: thinking]]',
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  },
  'a schema': { input: 'Where?', text: { format: { type: 'json_schema', name: 'place', schema } } },
  'a JSON object': { input: 'Where? In JSON.', text: { format: { type: 'json_object' } } },
  'a refusal': { input: 'Say hello. [[sandbox: refuse]]' },
};

for (const place of places) {
  for (const [name, body] of Object.entries(requests)) {
    test(`${place}: ${name}, whole and streamed`, async () => {
      const request = { model: `model-${place}`, ...body };
      const startedAt = Math.floor(Date.now() / 1000);
      const response = await whole(originOf(place), request);
      checkEnd(response, body, startedAt);
      const events = await streamed(originOf(place), request);
      const [created, inProgress] = events;
      assert.equal(created?.['type'], 'response.created');
      for (const { response: begun } of [created, inProgress] as Json[]) {
        assert.equal(begun['completed_at'], null);
        assert.equal(begun['status'], 'in_progress');
      }
      const last = events.at(-1)?.['response'] as Json;
      checkEnd(last, body, startedAt);
      const typesOf = (reported: Json) => reported['output'].map((item: Json) => item['type']);
      assert.deepEqual(typesOf(last), typesOf(response));
    });
  }

  test(`${place}: an answer that was cut short is not completed`, async () => {
    const request = { model: `model-${place}`, input: 'Go on. [[sandbox: tokens=200]]', max_output_tokens: 20 };
    const ends = [
      await whole(originOf(place), request),
      (await streamed(originOf(place), request)).at(-1)?.['response'] as Json,
    ];
    for (const response of ends) {
      assert.equal(response['status'], 'incomplete');
      assert.equal(response['completed_at'], null);
      assert.equal(response['incomplete_details'].reason, 'max_output_tokens');
    }
  });

  test(`${place}: a stream that breaks ends with an error and a failed response`, async () => {
    const input = 'Go on. [[sandbox: tokens=40 mid_error]]';
    for (const fault of [input, 'Go on. [[sandbox: tokens=40 cut_after=3]]']) {
      if (place === 'vendor' && fault !== input) continue;
      const events = await streamed(originOf(place), {
        model: `model-${place}`,
        input: fault,
        tools: [weather],
        metadata: { a: 'b' },
      });
      const [error, failed] = events.slice(-2) as [Json, Json];
      assert.equal(error['type'], 'error');
      assert.equal(failed['type'], 'response.failed');
      const { response } = failed;
      assert.equal(response['status'], 'failed');
      assert.equal(response['completed_at'], null);
      // The gateway does not keep the request of a stream that it relays.
      if (place === 'responses' && fault !== input) continue;
      assert.equal(response['tools'][0].name, 'get_weather');
      assert.deepEqual(response['metadata'], { a: 'b' });
    }
  });

  test(`${place}: an answer is kept, continued and listed`, async () => {
    const model = `model-${place}`;
    const origin = originOf(place);
    const first = await whole(origin, {
      model,
      tools: [weather],
      input: [
        user([
          { type: 'input_text', text: 'Weather? [[sandbox: tool=get_weather]]' },
          { type: 'input_image', image_url: picture },
        ]),
      ],
    });
    const call = first['output'].at(-1) as Json;
    const body = {
      model,
      tools: [weather],
      previous_response_id: first['id'],
      input: [{ type: 'function_call_output', call_id: call['call_id'], output: 'Sunny.' }],
    };
    const second = await whole(origin, body);
    assert.equal(second['previous_response_id'], first['id']);
    const orphan = { type: 'function_call_output', call_id: 'call_unknown', output: 'Sunny.' };
    for (const isStream of [false, true]) {
      const refusal = await post(origin, '/v1/responses', { ...body, input: [orphan], stream: isStream });
      const { error } = (await refusal.json()) as Json;
      assert.deepEqual([refusal.status, error.type], [400, 'invalid_request_error']);
      assert.match(error.param, /^input/);
    }
    const events = await streamed(origin, body);
    assert.equal(events.at(-1)?.['response'].previous_response_id, first['id']);
    if (place !== 'vendor' && place !== 'responses') {
      const { response, items } = await kept(origin, second['id']);
      assert.deepEqual(response, second);
      assert.deepEqual(
        new Set(items.map(({ type }) => type)),
        new Set(['message', 'function_call', 'function_call_output']),
      );
    }
  });

  test(`${place}: a conversation is compacted`, async () => {
    const model = `model-${place}`;
    const history = [user('My name is Alice.'), { role: 'assistant', content: 'Hello!' }, user('Remember it.')];
    const { output } = await compacted(originOf(place), { model, input: history });
    assert.equal((output as Json[]).at(-1)?.['type'], 'compaction');
    const request = { model, input: [...history, { type: 'compaction_trigger' }] };
    const response = await whole(originOf(place), request);
    assert.equal(response['output'][0].type, 'compaction');
    const events = await streamed(originOf(place), request);
    assert.equal(events.at(-1)?.['response'].output[0].type, 'compaction');
  });
}

function checkEnd(response: Json, body: Json, startedAt: number): void {
  // Two of the vendors hold a refusal back without a word: then the answer is not whole.
  const isWhole = response['incomplete_details']?.reason !== 'content_filter';
  assert.equal(response['status'], isWhole ? 'completed' : 'incomplete');
  if (isWhole) assert.ok(response['completed_at'] >= startedAt, `completed_at ${response['completed_at']}`);
  else assert.equal(response['completed_at'], null);
  for (const name of ['temperature', 'top_p', 'metadata', 'instructions', 'max_output_tokens', 'prompt_cache_key'])
    if ((body[name] ?? null) !== null) assert.deepEqual(response[name], body[name], name);
  const named = (body['tools'] ?? []) as Json[];
  assert.deepEqual(
    response['tools'].map((tool: Json) => [tool['name'], tool['description']]),
    named.map((tool) => [tool['name'], tool['description'] ?? null]),
  );
}
