/** Whole chat answers both ways, and relayed requests without sealed texts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import type { Choice } from '../../../../plugins/common/canonical/reply.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import { collected } from '../canonical/collect-events.ts';
import { open, replyContext, replyEvents, sealed } from './chat-harness.ts';

interface Completion extends JsonObject {
  readonly choices: readonly {
    readonly message: JsonObject;
    readonly finish_reason: string;
    readonly logprobs: unknown;
  }[];
}
function reply(choice: Partial<Choice>, id?: string): Completion {
  const whole = { parts: [], stop: 'stop' as const, sequence: undefined, cutCalls: new Set<string>(), ...choice };
  const sent = { id, createdAt: undefined, serviceTier: undefined, choices: [whole] };
  return chatCodec.encodeReply(sent, replyContext({}, { input: 2, output: 3 })) as unknown as Completion;
}

test('a whole answer has every official member, the model that was asked for and an id of the protocol', () => {
  const { choices, usage, ...rest } = reply({ parts: [{ kind: 'text', text: 'Hi' }] }, 'msg_1');
  assert.deepEqual(rest, {
    id: 'chatcmpl-0198-exchange',
    object: 'chat.completion',
    created: 1_800_000_000,
    model: 'asked-model',
  });
  assert.deepEqual(choices, [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hi', refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ]);
  assert.equal((usage as { total_tokens: number }).total_tokens, 5);
  assert.equal(reply({}, 'chatcmpl-7')['id'], 'chatcmpl-7');
});

test('pitfall 106: text before and after a call is joined in its order', () => {
  const call: Part = { kind: 'tool-call', id: 'a', name: 'f', input: '{}' };
  const { message, finish_reason } = reply({
    parts: [{ kind: 'text', text: 'A' }, call, { kind: 'text', text: 'B' }],
    stop: 'tool-calls',
  }).choices[0]!;
  assert.equal(message['content'], 'AB');
  assert.deepEqual(message['tool_calls'], [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]);
  assert.equal(finish_reason, 'tool_calls');
});

test('an answer of calls alone has no content, one of nothing has empty content', () => {
  assert.equal(
    reply({ parts: [{ kind: 'tool-call', id: 'a', name: 'f', input: '{}' }] }).choices[0]!.message['content'],
    null,
  );
  assert.equal(reply({}).choices[0]!.message['content'], '');
});

test('pitfall 108: a refusal is no plain text, and its reason is the filter’s', () => {
  const { message, finish_reason } = reply({ parts: [{ kind: 'refusal', text: 'No.' }], stop: 'refusal' }).choices[0]!;
  assert.deepEqual([message['content'], message['refusal'], finish_reason], [null, 'No.', 'content_filter']);
});

test('each stop reason has a finish reason of the protocol', () => {
  const words = {
    stop: 'stop',
    'stop-sequence': 'stop',
    pause: 'stop',
    'tool-calls': 'tool_calls',
    length: 'length',
    refusal: 'content_filter',
  } as const;
  for (const [stop, word] of Object.entries(words))
    assert.equal(reply({ stop: stop as Choice['stop'] }).choices[0]!.finish_reason, word);
});

test('opaque states of thoughts, texts, calls and images go out sealed', () => {
  const opaqueState = { maker: '', value: 'S' };
  const { message } = reply({
    parts: [
      { kind: 'reasoning', text: 'Hm', opaqueState: opaqueState },
      { kind: 'reasoning', text: '', opaqueState: opaqueState, redacted: true },
      { kind: 'text', text: 'A', opaqueState: opaqueState },
      { kind: 'tool-call', id: 'a', name: 'f', input: '{}', opaqueState: opaqueState },
      { kind: 'image', source: { form: 'url', url: 'https://a.b/c.png' }, opaqueState: opaqueState },
    ],
  }).choices[0]!;
  const extra_content = { google: { thought_signature: sealed('S') } };
  assert.equal(message['reasoning_content'], 'Hm');
  assert.deepEqual(message['reasoning_details'], [
    { type: 'reasoning.text', index: 0, text: 'Hm', signature: sealed('S') },
    { type: 'reasoning.encrypted', index: 1, data: sealed('S') },
  ]);
  assert.deepEqual(message['extra_content'], extra_content);
  assert.deepEqual((message['tool_calls'] as JsonObject[])[0]!['extra_content'], extra_content);
  assert.deepEqual(message['images'], [
    { type: 'image_url', index: 0, image_url: { url: 'https://a.b/c.png' }, extra_content },
  ]);
});

test('pieces of a sound are one sound, citations stand where their block stands in the whole text', () => {
  const sound = (base64: string, transcript: string): Part => ({
    kind: 'audio',
    source: { form: 'bytes', mediaType: 'audio/pcm', base64 },
    transcript,
  });
  const { message } = reply({ parts: [sound('QUI=', 'He'), sound('Qw==', 'llo')] }).choices[0]!;
  assert.deepEqual(message['audio'], {
    id: 'audio_0198-exchange',
    data: 'QUJD',
    expires_at: 1_800_000_000,
    transcript: 'Hello',
  });
  const cited: Part = {
    kind: 'text',
    text: 'sky',
    citations: [{ url: 'https://a.b', start: 0, end: 2 }, { quote: 'no address' }],
  };
  const { message: text } = reply({ parts: [{ kind: 'text', text: 'The ' }, cited] }).choices[0]!;
  assert.deepEqual(text['annotations'], [
    { type: 'url_citation', url_citation: { start_index: 4, end_index: 6, title: '', url: 'https://a.b' } },
  ]);
});

test('whole calls stay apart even when a server gives them one id', () => {
  const tool_calls = [1, 2].map((x) => ({ id: 'same', function: { name: 'f', arguments: `{"x":${x}}` } }));
  const [choice] = collected(replyEvents({ choices: [{ message: { tool_calls }, finish_reason: 'stop' }] })).choices;
  const calls = choice!.parts as unknown as { id: string; input: string }[];
  assert.deepEqual(
    calls.map(({ input }) => input),
    ['{"x":1}', '{"x":2}'],
  );
  assert.equal(new Set(calls.map(({ id }) => id)).size, 2);
});

test('a body that is no answer becomes an empty answer', () => {
  for (const json of [{}, { choices: null }, { choices: [] }, { choices: [{ message: null }] }])
    assert.deepEqual(
      collected(replyEvents(json)).choices.map(({ parts, stop }) => [parts, stop]),
      [[[], 'stop']],
    );
});

test('sealed texts do not reach a vendor that would not understand them, everything else does', () => {
  const own = { google: { thought_signature: sealed('S') } };
  const theirs = { google: { thought_signature: 'theirs' } };
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const kept = { type: 'reasoning.text', text: 'B', signature: 'theirs' };
  const body = {
    model: 'm',
    messages: [
      { role: 'user', content: 'gw1. is how it begins' },
      {
        role: 'assistant',
        content: 'A',
        reasoning_details: [{ type: 'reasoning.text', text: 'A', signature: sealed('S') }, kept],
        extra_content: own,
        tool_calls: [
          { ...call, extra_content: own },
          { ...call, extra_content: theirs },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x', signature: sealed('S') },
          { type: 'text', text: 'B' },
        ],
        reasoning_details: [{ type: 'reasoning.encrypted', data: sealed('S') }],
      },
    ],
  };
  assert.deepEqual(chatCodec.withoutSeals(body, open), {
    model: 'm',
    messages: [
      body.messages[0],
      {
        role: 'assistant',
        content: 'A',
        reasoning_details: [kept],
        tool_calls: [call, { ...call, extra_content: theirs }],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'B' }] },
    ],
  });
});
