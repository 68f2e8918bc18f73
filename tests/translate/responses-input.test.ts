/** Bodies for responses upstreams hold the members that OpenAI's schema requires: what strictly typed servers take. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { GatewayError } from '../../core/contract/errors.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { type Family, recordings } from '../helpers/recordings.ts';
import { translated } from './translated.ts';

const id = z.string().min(1);
const status = z.enum(['in_progress', 'completed', 'incomplete']);
const inputPart = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('input_text'), text: z.string() }),
  z.looseObject({
    type: z.literal('input_image'),
    detail: z.enum(['low', 'high', 'auto', 'original']),
    image_url: z.string().min(1),
  }),
  z.looseObject({ type: z.literal('input_file') }),
]);
const annotation = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('url_citation'),
    url: z.string(),
    title: z.string(),
    start_index: z.number(),
    end_index: z.number(),
  }),
]);
const outputPart = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: z.array(annotation),
    logprobs: z.array(z.unknown()),
  }),
  z.looseObject({ type: z.literal('refusal'), refusal: z.string() }),
]);
const output = z.union([z.string(), z.array(inputPart)]);
const item = z.union([
  z.looseObject({
    type: z.literal('message'),
    role: z.enum(['user', 'system', 'developer']),
    content: z.array(inputPart).min(1),
  }),
  z.looseObject({
    type: z.literal('message'),
    role: z.literal('assistant'),
    id: id.regex(/^msg_.{1,60}$/),
    status,
    content: z.array(outputPart).min(1),
  }),
  z.looseObject({ type: z.literal('function_call'), call_id: id.max(64), name: id.max(64), arguments: z.string() }),
  z.looseObject({ type: z.literal('function_call_output'), call_id: id.max(64), output }),
  z.looseObject({ type: z.literal('custom_tool_call'), call_id: id, name: id, input: z.string() }),
  z.looseObject({ type: z.literal('custom_tool_call_output'), call_id: id, output }),
  z.looseObject({
    type: z.literal('reasoning'),
    summary: z.array(z.looseObject({ type: z.literal('summary_text'), text: z.string() })),
    encrypted_content: id,
  }),
  z.looseObject({ type: z.literal('web_search_call'), id, status: id, action: z.looseObject({ type: id }) }),
]);
const tool = z.union([
  z.looseObject({
    type: z.literal('function'),
    name: id.max(64),
    strict: z.boolean(),
    parameters: z.looseObject({ type: z.literal('object') }),
  }),
  z.looseObject({ type: z.literal('custom'), name: id }),
  z.looseObject({ type: z.enum(['web_search', 'image_generation', 'code_interpreter']) }),
]);
const request = z.looseObject({
  model: id,
  input: z.array(item).min(1),
  instructions: z.string().optional(),
  tools: z.array(tool).optional(),
  max_output_tokens: z.number().int().min(16).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});

function check(body: JsonObject): JsonObject[] {
  const { error } = request.safeParse(body);
  assert.equal(error, undefined, `${error?.message} in ${JSON.stringify(body).slice(0, 2_000)}`);
  const input = body['input'] as JsonObject[];
  const ids = input.flatMap((given) => (given['id'] === undefined ? [] : [given['id']]));
  assert.equal(new Set(ids).size, ids.length, 'two items have one id');
  return input;
}

const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Histories with texts that are alike, a picture, a refusal, a call and its result. */
const histories: Readonly<Record<Family, JsonObject>> = {
  chat: {
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }] },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'And?' },
      {
        role: 'assistant',
        content: 'Yes.',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'ok' },
      { role: 'assistant', refusal: 'No.' },
      { role: 'user', content: 'Why?' },
    ],
  },
  messages: {
    max_tokens: 100,
    messages: [
      { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }] },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'And?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Yes.' },
          { type: 'tool_use', id: 'c', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'c',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
          },
        ],
      },
    ],
  },
  gemini: {
    contents: [
      { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] },
      { role: 'model', parts: [{ text: 'Yes.' }] },
      { role: 'user', parts: [{ text: 'And?' }] },
      { role: 'model', parts: [{ text: 'Yes.' }] },
      { role: 'user', parts: [{ text: 'Why?' }] },
    ],
  },
  responses: {
    input: [
      { role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${data}` }] },
      { role: 'assistant', content: 'Yes.', phase: 'commentary' },
      { role: 'user', content: 'And?' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Yes.' }] },
      { role: 'user', content: 'Why?' },
    ],
  },
};

for (const [client, json] of Object.entries(histories) as [Family, JsonObject][]) {
  for (const stream of [false, true]) {
    test(`a ${client} history${stream ? ', streamed' : ''}: answers have id and status, pictures a detail`, () => {
      const input = check(translated(client, json, 'responses', { stream }).body);
      const said = input.filter(({ role }) => role === 'assistant');
      assert.ok(said.length >= 2);
      assert.ok(said.every((message) => message['status'] === 'completed'));
      const text = JSON.stringify(input);
      assert.equal(text.split('"input_image"').length, text.split('"detail":"auto"').length);
    });
  }
}

test('an answer keeps its id in each later turn', () => {
  const turns = histories.chat['messages'] as JsonObject[];
  const idsOf = (messages: readonly JsonObject[]) =>
    check(translated('chat', { messages }, 'responses').body).flatMap((given) =>
      given['id'] === undefined ? [] : [given['id']],
    );
  const early = idsOf(turns.slice(0, 3));
  assert.deepEqual(idsOf(turns).slice(0, early.length), early);
});

test('a detail that the client asks for stays', () => {
  const content = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}`, detail: 'low' } }];
  const { body } = translated('chat', { messages: [{ role: 'user', content }] }, 'responses');
  assert.ok(JSON.stringify(check(body)).includes('"detail":"low"'));
});

for (const client of ['chat', 'messages', 'gemini'] as const) {
  test(`recorded requests of ${client} clients are accepted in the form of the official SDK`, () => {
    let count = 0;
    for (const { request: recorded } of recordings(client)) {
      if (recorded === undefined) continue;
      let body: JsonObject;
      try {
        body = translated(client, JSON.parse(recorded.toString()) as JsonObject, 'responses').body;
      } catch (error) {
        // What this upstream cannot be asked for is refused.
        assert.ok(error instanceof GatewayError, String(error));
        continue;
      }
      check(body);
      count++;
    }
    assert.ok(count > 3, `${count} requests`);
  });
}
