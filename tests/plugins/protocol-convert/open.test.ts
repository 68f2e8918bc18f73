import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorKind, GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import { endpoints, open } from './harness.ts';

const chat = '/v1/chat/completions';
const responses = '/v1/responses';
const messages = '/v1/messages';
const gemini = '/v1beta/models/gem:generateContent';
const turn = [{ role: 'user', content: 'hi' }];

function opening(path: string, body: unknown) {
  return open({ path, body }).exchange.get(call);
}

function refusal(path: string, body: unknown): GatewayError {
  try {
    opening(path, body);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error;
  }
  assert.fail(`${path} took ${JSON.stringify(body)}`);
}

test('each address has the operation name that limits use', () => {
  assert.deepEqual(
    endpoints.map(({ method, path, operation }) => `${method} ${path} ${operation}`),
    [
      'POST /v1/chat/completions chat',
      'POST /v1/responses responses',
      'POST /v1/responses/compact compact',
      'POST /v1/responses/input_tokens count-tokens',
      'POST /v1/messages messages',
      'POST /v1/messages/count_tokens count-tokens',
      'POST /v1beta/models/* generate-content',
      'POST /v1/models/* generate-content',
      'POST /v1alpha/models/* generate-content',
      'POST /v1/completions completions',
      'GET /v1/chat/completions chat',
      'GET /v1/chat/completions/:completion_id chat',
      'POST /v1/chat/completions/:completion_id chat',
      'DELETE /v1/chat/completions/:completion_id chat',
      'GET /v1/chat/completions/:completion_id/messages chat',
      'GET /api/hello hello',
      'GET /v1/responses/:response_id responses',
      'DELETE /v1/responses/:response_id responses',
      'GET /v1/responses/:response_id/input_items responses',
      'POST /v1/responses/:response_id/cancel responses',
      'POST /v1/conversations responses',
      'GET /v1/conversations/:conversation_id responses',
      'POST /v1/conversations/:conversation_id responses',
      'DELETE /v1/conversations/:conversation_id responses',
      'GET /v1/conversations/:conversation_id/items responses',
      'POST /v1/conversations/:conversation_id/items responses',
      'GET /v1/conversations/:conversation_id/items/:item_id responses',
      'DELETE /v1/conversations/:conversation_id/items/:item_id responses',
    ],
  );
});

test('a chat request states model, stream, bounds and choices', () => {
  const stated = opening(chat, {
    model: 'm',
    messages: turn,
    stream: true,
    max_tokens: 5,
    max_completion_tokens: 9,
    n: 3,
  });
  assert.deepEqual(
    { ...stated, inputTokens: 0 },
    {
      protocol: 'chat',
      model: 'm',
      stream: true,
      billable: true,
      inputTokens: 0,
      maxOutputTokens: 9,
      choices: 3,
      toolCalls: 0,
    },
  );
});

test('null counts as absent, and unknown fields pass', () => {
  const stated = opening(chat, {
    model: 'm',
    messages: turn,
    stream: null,
    max_tokens: null,
    n: null,
    novelty: { a: 1 },
  });
  assert.equal(stated.stream, false);
  assert.equal(stated.maxOutputTokens, undefined);
  assert.equal(stated.choices, 1);
});

const wrong: readonly [what: string, path: string, body: unknown, field: string | undefined, kind?: ErrorKind][] = [
  ['an empty body', chat, '', undefined],
  ['a body that is no JSON', chat, '{"model":', undefined],
  ['a scalar that is no JSON', chat, '{"model": tru}', undefined],
  ['a list', chat, [1], undefined],
  ['a body nested too deep', chat, `{"model":"m","messages":${'['.repeat(200)}${']'.repeat(200)}}`, undefined],
  ['a missing model', chat, { messages: turn }, 'model'],
  ['a model that is a number', responses, { model: 5, input: 'x' }, 'model'],
  ['stream that is text', messages, { model: 'm', max_tokens: 1, messages: turn, stream: 'yes' }, 'stream'],
  ['a negative bound', chat, { model: 'm', messages: turn, max_tokens: -1 }, 'max_tokens'],
  ['a fractional bound', chat, { model: 'm', messages: turn, max_completion_tokens: 1.5 }, 'max_completion_tokens'],
  ['a bound beyond counting', responses, '{"model":"m","input":"x","max_output_tokens":1e400}', 'max_output_tokens'],
  ['no choices', chat, { model: 'm', messages: turn, n: 0 }, 'n'],
  ['missing messages', chat, { model: 'm' }, 'messages'],
  ['messages that are text', messages, { model: 'm', max_tokens: 1, messages: 'hi' }, 'messages'],
  ['a missing max_tokens', messages, { model: 'm', messages: turn }, 'max_tokens'],
  ['a missing input', responses, { model: 'm' }, 'input'],
  ['an input that is an object', responses, { model: 'm', input: {} }, 'input'],
  ['contents that are an object', gemini, { contents: {} }, 'contents'],
  [
    'a generation bound as text',
    gemini,
    { contents: [], generationConfig: { maxOutputTokens: '9' } },
    'generationConfig.maxOutputTokens',
  ],
  ['a polluting key', chat, '{"model":"m","messages":[],"__proto__":{}}', '__proto__'],
  ['a model that stands twice', chat, '{"model":"cheap","messages":[],"mod\\u0065l":"dear"}', 'model'],
  ['an upstream of the client', chat, { model: 'm', messages: turn, api_base: 'http://x' }, 'api_base'],
  ['a key of the client', messages, { model: 'm', max_tokens: 1, messages: turn, api_key: 'k' }, 'api_key'],
  ['a background answer', responses, { model: 'm', input: 'x', background: true }, 'background', 'invalid_request'],
  ['an unknown method', '/v1beta/models/gem:embedContent', {}, undefined, 'not_found'],
  ['no method', '/v1beta/models/gem', {}, undefined, 'not_found'],
];

for (const [what, path, body, field, kind = 'invalid_request'] of wrong) {
  test(`${what} is refused on ${path}${field === undefined ? '' : `, naming ${field}`}`, () => {
    const error = refusal(path, body);
    assert.equal(error.kind, kind);
    assert.equal(error.field, field);
  });
}

test('a responses request needs no input when the vendor keeps the prompt', () => {
  assert.ok(opening(responses, { model: 'm', prompt: { id: 'pmpt_1' } }).inputTokens >= 20_000);
});

test('counting tokens is no inference', () => {
  assert.equal(opening('/v1/messages/count_tokens', { model: 'm', messages: turn }).billable, false);
  assert.equal(opening('/v1beta/models/gem:countTokens', { contents: [] }).billable, false);
});

test('the model of generate-content is in the path, with slashes, colons and escapes', () => {
  assert.equal(opening('/v1beta/models/org/gem:free:generateContent', { contents: [] }).model, 'org/gem:free');
  assert.equal(opening('/v1/models/gem%3AgenerateContent', { contents: [] }).model, 'gem');
  assert.equal(opening('/v1alpha/models/gem:streamGenerateContent', { contents: [] }).stream, true);
  assert.equal(opening(gemini, { contents: [], stream: true }).stream, true);
});

test('generate-content bounds are read in either case, flat or nested, and the largest counts', () => {
  const stated = opening(gemini, {
    contents: [],
    max_output_tokens: 7,
    candidate_count: 2,
    generationConfig: { maxOutputTokens: 9, candidateCount: null },
  });
  assert.equal(stated.maxOutputTokens, 9);
  assert.equal(stated.choices, 2);
});

test('the prompt is estimated by its bytes, one token for two', () => {
  const short = opening(chat, { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(1_000) }] }).inputTokens;
  const long = opening(chat, { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(3_000) }] }).inputTokens;
  assert.equal(long - short, 1_000);
});

test('base64 media count by the piece, not as text', () => {
  const data = 'A'.repeat(400_000);
  const url = `data:image/png;base64,${data}`;
  const requested: readonly [string, unknown][] = [
    [chat, { model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }],
    [responses, { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }],
    [
      messages,
      {
        model: 'm',
        max_tokens: 1,
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 't',
                content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
              },
            ],
          },
        ],
      },
    ],
    [gemini, { contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data } }] }] }],
  ];
  for (const [path, body] of requested) {
    const { inputTokens } = opening(path, body);
    assert.ok(inputTokens > 5_000 && inputTokens < 5_300, `${path}: ${inputTokens}`);
  }
});

test('base64 where no medium stands is counted as text, so that it cannot hide a long prompt', () => {
  const url = `data:image/png;base64,${'A'.repeat(400_000)}`;
  const asText = {
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'text', text: url, image_url: { url: '' } }] }],
  };
  assert.ok(opening(chat, asText).inputTokens > 200_000);
  const asInput = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { image_url: url } }] };
  assert.ok(opening(messages, { model: 'm', max_tokens: 1, messages: [asInput] }).inputTokens > 200_000);
});
