/** Pictures in a turn of the assistant: messages upstreams refuse them there, so that the user shows them, behind all results. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../core/json/json.ts';
import type { Family } from '../helpers/recordings.ts';
import { translated } from './translated.ts';

const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
const note = { type: 'text', text: '(image of your answer before:)' };

interface Message {
  readonly role: string;
  readonly content: readonly JsonObject[];
}

function sent(client: Family, json: JsonObject, stream: boolean): Message[] {
  const { body } = translated(client, json, 'messages', { stream });
  const messages = body['messages'] as Message[];
  return messages.map(({ role, content }) => ({
    role,
    content: content.map(({ cache_control: _mark, ...block }) => block),
  }));
}

const drawn = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: data };
const inline = { inlineData: { mimeType: 'image/png', data } };
const request = 'Draw it.';
const proceed = 'Bigger.';
const text = (words: string): JsonObject => ({ type: 'text', text: words });

/** Each client's way to give a picture of the model back, between two texts of the user. */
const histories: readonly (readonly [Family, JsonObject])[] = [
  ['responses', { input: [{ role: 'user', content: request }, drawn, { role: 'user', content: proceed }] }],
  [
    'gemini',
    {
      contents: [
        { role: 'user', parts: [{ text: request }] },
        { role: 'model', parts: [inline] },
        { role: 'user', parts: [{ text: proceed }] },
      ],
    },
  ],
  [
    'messages',
    {
      max_tokens: 9,
      messages: [
        { role: 'user', content: request },
        { role: 'assistant', content: [image] },
        { role: 'user', content: proceed },
      ],
    },
  ],
];

for (const stream of [false, true]) {
  for (const [client, json] of histories) {
    test(`a picture alone, of a ${client} client${stream ? ', streamed' : ''}`, () => {
      assert.deepEqual(sent(client, json, stream), [
        { role: 'user', content: [text(request), note, image, text(proceed)] },
      ]);
    });
  }

  test(`a picture of an assistant turn goes into the next user turn${stream ? ', streamed' : ''}`, () => {
    const parts = [{ text: 'Here:' }, inline, { text: 'Like it?' }];
    const json = {
      contents: [
        { role: 'user', parts: [{ text: request }] },
        { role: 'model', parts },
        { role: 'user', parts: [{ text: proceed }] },
      ],
    };
    assert.deepEqual(sent('gemini', json, stream), [
      { role: 'user', content: [text(request)] },
      { role: 'assistant', content: [text('Here:'), text('Like it?')] },
      { role: 'user', content: [note, image, text(proceed)] },
    ]);
  });

  test(`a picture beside a call: its result comes first${stream ? ', streamed' : ''}`, () => {
    const input = [
      { role: 'user', content: request },
      drawn,
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'ok' },
    ];
    const [first, second, third, ...rest] = sent('responses', { input }, stream);
    assert.deepEqual(rest, []);
    assert.deepEqual(first, { role: 'user', content: [text(request)] });
    assert.deepEqual(
      second?.content.map(({ type }) => type),
      ['tool_use'],
    );
    assert.deepEqual(
      third?.content.map(({ type }) => type),
      ['tool_result', 'text', 'image'],
    );
  });
}

test('a picture that the model cannot see is left out and named', () => {
  const [, json] = histories[0]!;
  const traits = { inputs: ['document' as const] };
  const { body, dropped } = translated('responses', json, 'messages', { traits });
  assert.ok(!JSON.stringify(body['messages']).includes('"image"'));
  assert.deepEqual(dropped, ['input_image']);
});
