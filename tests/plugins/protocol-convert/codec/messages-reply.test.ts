/** The messages codec on whole answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import type { Choice, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { eventsOfReply, replyContext } from './messages-harness.ts';

function reply(parts: readonly Part[], more: Partial<Choice> = {}): Reply {
  const choice: Choice = { parts, stop: 'stop', sequence: undefined, cutCalls: new Set(), ...more };
  return { id: undefined, createdAt: undefined, serviceTier: 'priority', choices: [choice] };
}

test('a whole answer names the model that was asked for, and tells everything that clients read', () => {
  const json = messagesCodec.encodeReply(reply([{ kind: 'text', text: 'Hi' }]), replyContext());
  assert.deepEqual(json, {
    id: 'msg_0198a7',
    type: 'message',
    role: 'assistant',
    model: 'the-model',
    content: [{ type: 'text', text: 'Hi', citations: null }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    container: null,
    usage: {
      input_tokens: 11,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: 'priority',
      inference_geo: null,
    },
  });
});

test('calls come whole: free text as input, other values in an object, and cut-off ones not at all', () => {
  const call = (id: string, input: string, more: object = {}): Part => ({
    kind: 'tool-call',
    id,
    name: 'f',
    input,
    ...more,
  });
  const parts = [call('a', 'x', { custom: true }), call('b', '[1]'), call('c', '{"a": '), call('d', '')];
  const json = messagesCodec.encodeReply(reply(parts, { stop: 'length', cutCalls: new Set(['c']) }), replyContext());
  assert.deepEqual(
    (json['content'] as JsonObject[]).map(({ id, input }) => [id, input]),
    [
      ['a', { input: 'x' }],
      ['b', { _raw: [1] }],
      ['d', {}],
    ],
  );
  assert.equal(json['stop_reason'], 'max_tokens');
});

test('reasoning carries its sealed signature, a sealed nothing where there is none, and a call its own in front of it', () => {
  const opaqueState = { maker: '', value: 'S' };
  const json = messagesCodec.encodeReply(
    reply([
      { kind: 'reasoning', text: 'a', opaqueState: opaqueState },
      { kind: 'reasoning', text: 'b' },
      { kind: 'reasoning', text: '', opaqueState: opaqueState, redacted: true },
      { kind: 'tool-call', id: 'a', name: 'f', input: '{}', opaqueState: opaqueState },
    ]),
    replyContext(),
  );
  assert.deepEqual(json['content'], [
    { type: 'thinking', thinking: 'a', signature: 'gw1.S' },
    { type: 'thinking', thinking: 'b', signature: 'gw1.' },
    { type: 'redacted_thinking', data: 'gw1.S' },
    { type: 'thinking', thinking: '', signature: 'gw1.S' },
    { type: 'tool_use', id: 'a', name: 'f', input: {} },
  ]);
});

test('pitfall 108: a refusal is reported as text and as the reason', () => {
  const json = messagesCodec.encodeReply(reply([{ kind: 'refusal', text: 'No.' }]), replyContext());
  assert.deepEqual(json['content'], [{ type: 'text', text: 'No.', citations: null }]);
  assert.deepEqual(json['stop_details'], { type: 'refusal', category: null, explanation: 'No.' });
  assert.equal(json['stop_reason'], 'refusal');
});

test('a whole answer that names no reason is complete, and one that is no message says nothing', () => {
  const types = (json: JsonObject) => eventsOfReply(json).map(({ type }) => type);
  assert.deepEqual(types({ content: [{ type: 'text', text: 'x' }] }), [
    ...['reply-start', 'text-start', 'text-delta', 'text-end', 'stop'],
  ]);
  assert.deepEqual(types({ content: 'x' }), ['reply-start', 'stop']);
});
