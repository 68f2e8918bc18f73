/** Requests that ask nothing, and bounds of nothing, are refused by the client's own field; no vendor is asked for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../core/contract/errors.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { ProtocolName } from '../matrix/scenario.ts';
import { nameOf, pairs, sent } from '../pitfalls/relayed.ts';
import { translated } from './translated.ts';

async function refusal(work: () => unknown): Promise<GatewayError> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error;
  }
  return assert.fail('nothing was refused');
}

const output = { type: 'function_call_output', call_id: 'c', output: 'x' };
const foreign = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] };
const reply = { functionResponse: { name: 'f', response: {} } };
const result = { type: 'tool_result', tool_use_id: 'c', content: 'x' };

interface Nothing {
  readonly field: string;
  readonly empty: readonly JsonObject[];
  readonly strays: readonly JsonObject[];
  /** The field of a result without its call, where that is named by itself. */
  readonly strayField?: RegExp;
}

const exactly = (field: string) => new RegExp(`^${field}$`);

/** By client: its field, conversations that are empty, and such as hold results alone. */
const nothing: Readonly<Record<ProtocolName, Nothing>> = {
  responses: {
    field: 'input',
    empty: [
      { input: [] },
      { input: '' },
      { input: null },
      { input: [{ role: 'user', content: '' }] },
      { input: [{ role: 'user', content: [] }] },
      { input: [foreign] },
    ],
    strays: [{ input: [output] }, { input: [output, { ...output, call_id: 'd' }] }, { input: [foreign, output] }],
    strayField: /^input\[[01]\]\.call_id$/,
  },
  chat: {
    field: 'messages',
    empty: [{ messages: [] }, { messages: [{ role: 'user', content: '' }] }],
    strays: [{ messages: [{ role: 'tool', tool_call_id: 'c', content: 'x' }] }],
  },
  messages: {
    field: 'messages',
    empty: [{ max_tokens: 9, messages: [] }],
    strays: [{ max_tokens: 9, messages: [{ role: 'user', content: [result] }] }],
  },
  gemini: {
    field: 'contents',
    empty: [{ contents: [] }],
    strays: [{ contents: [{ role: 'user', parts: [reply] }] }, { contents: [{ role: 'function', parts: [reply] }] }],
  },
};

for (const pair of pairs) {
  test(`a request without a prompt is refused (${nameOf(pair)})`, async () => {
    const { field, empty, strays, strayField } = nothing[pair.client];
    for (const body of [...empty, ...strays]) {
      for (const stream of [false, true]) {
        const requested = pair.client === 'gemini' ? body : { ...body, stream };
        const error = await refusal(() => sent(pair, requested));
        assert.equal(error.status, 400, JSON.stringify(body));
        const isStray = strays.includes(body);
        assert.match(
          error.field ?? '',
          isStray ? (strayField ?? exactly(field)) : exactly(field),
          JSON.stringify(body),
        );
        assert.equal(/tools|tool call/.test(error.message), isStray, error.message);
      }
    }
  });

  test(`a limit of 0 tokens, and 0 answers, are refused (${nameOf(pair)})`, async () => {
    for (const [field, body] of bounds[pair.client]) {
      const error = await refusal(() => sent(pair, body));
      assert.equal(error.status, 400, field);
      assert.equal(error.field, field);
    }
  });
}

const messages = [{ role: 'user', content: 'Hi' }];
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const bounds: Readonly<Record<ProtocolName, readonly (readonly [string, JsonObject])[]>> = {
  chat: [
    ['max_completion_tokens', { messages, max_completion_tokens: 0 }],
    ['max_tokens', { messages, max_tokens: 0 }],
    ['n', { messages, n: 0 }],
  ],
  responses: [['max_output_tokens', { input: 'Hi', max_output_tokens: 0 }]],
  messages: [['max_tokens', { messages, max_tokens: 0 }]],
  gemini: [
    ['generationConfig.maxOutputTokens', { contents, generationConfig: { maxOutputTokens: 0 } }],
    ['generationConfig.max_output_tokens', { contents, generationConfig: { max_output_tokens: 0 } }],
    ['generationConfig.candidateCount', { contents, generationConfig: { candidateCount: 0 } }],
  ],
};

test('pictures from chat upstreams are asked for with members that their schema has', () => {
  const generationConfig = {
    responseModalities: ['TEXT', 'IMAGE'],
    imageConfig: { aspectRatio: '1:1', imageSize: '2K' },
  };
  const own = translated('gemini', { contents, generationConfig }, 'chat');
  assert.deepEqual(own.body['image_config'], { aspect_ratio: '1:1', image_size: '2K' });
  assert.deepEqual(own.dropped, []);
  const imageConfig = { aspectRatio: '1:1', personGeneration: 'ALLOW_ALL' };
  const more = translated('gemini', { contents, generationConfig: { ...generationConfig, imageConfig } }, 'chat');
  assert.deepEqual(more.body['image_config'], { aspect_ratio: '1:1' });
  assert.deepEqual(more.dropped, ['generationConfig.imageConfig']);
});

test('the detail that a chat client sets for its pictures reaches generate-content upstreams', () => {
  const image_config = { aspect_ratio: '16:9', image_size: '1K' };
  const { body, dropped } = translated('chat', { messages, modalities: ['image', 'text'], image_config }, 'gemini');
  const config = body['generationConfig'] as JsonObject;
  assert.deepEqual(config['imageConfig'], { aspectRatio: '16:9', imageSize: '1K' });
  assert.deepEqual(dropped, []);
});
