/** What a request tells of its conversation: the name that its client gave it, and how it began. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../../plugins/common/domain/calls.ts';
import { type Opened, opened } from '../../../plugins/common/wire/protocols.ts';
import { KeptRequests } from '../../../plugins/protocol-convert/metering/kept-requests.ts';
import {
  openingOf,
  RequestConversation,
  requestHasSideEffects,
} from '../../../plugins/protocol-convert/request/conversation.ts';
import { fakeExchange } from '../../helpers/fakes.ts';

function opening(protocol: string, json: Opened['json']) {
  const request = { json, call: { protocol } as Call } as Opened;
  const exchange = fakeExchange({ facts: [[opened, request]] });
  return { exchange, conversation: new RequestConversation(exchange, request, new KeptRequests()) };
}
const nameIn = (protocol: string, json: Opened['json']) => opening(protocol, json).conversation.name;

test('chat and responses name it by their cache key, messages by the user of their metadata', () => {
  assert.equal(nameIn('chat', { prompt_cache_key: 'k' }), 'k');
  assert.equal(nameIn('responses', { prompt_cache_key: 'k', metadata: { user_id: 'u' } }), 'k');
  assert.equal(nameIn('messages', { metadata: { user_id: 'u' } }), 'u');
  for (const json of [{}, { prompt_cache_key: '' }, { prompt_cache_key: 7 }, { metadata: { user_id: 'u' } }])
    assert.equal(nameIn('chat', json), undefined);
  for (const json of [{ metadata: null }, { metadata: { user_id: {} } }, { prompt_cache_key: 'k' }])
    assert.equal(nameIn('messages', json), undefined);
  assert.equal(nameIn('chat', { prompt_cache_key: 'k'.repeat(5_000) })!.length, 1_000);
});

test('a conversation is known by the first words of the user, in each protocol', () => {
  const system = { role: 'system', content: 'Be brief.' };
  const image = { type: 'image_url', image_url: { url: 'data:,' } };
  for (const json of [
    { messages: [system, { role: 'user', content: 'Hello' }, { role: 'user', content: 'Later' }] },
    { messages: [{ role: 'user', content: [image, { type: 'text', text: 'Hello' }] }] },
    {
      messages: [
        { role: 'user', content: [image] },
        { role: 'user', content: 'Hello' },
      ],
    },
    { input: 'Hello' },
    {
      input: [
        { role: 'developer', content: 'x' },
        { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      ],
    },
    { contents: [{ parts: [{ text: 'Hello' }] }] },
    {
      contents: [
        { role: 'model', parts: [{ text: 'x' }] },
        { role: 'user', parts: [{ text: 'Hello' }] },
      ],
    },
  ])
    assert.equal(openingOf(json), 'Hello', JSON.stringify(json));
  for (const json of [
    {},
    { messages: [] },
    { messages: [system] },
    { input: '' },
    { messages: 'x'.slice(1) },
    { input: [7, null] },
  ])
    assert.equal(openingOf(json), undefined, JSON.stringify(json));
});

test('a long opening is known by both ends and its length', () => {
  const long = (middle: string, end: string) =>
    openingOf({ input: `${'a'.repeat(3_000)}${middle}${end.repeat(3_000)}` })!;
  assert.ok(long('', 'b').length < 4_200);
  assert.notEqual(long('', 'b'), long('', 'c'));
  assert.notEqual(long('', 'b'), long('x', 'b'));
});

test('once the answer has begun nothing is announced any more, and nothing of the prompt is kept for it', () => {
  const { exchange, conversation } = opening('chat', { input: 'Hello', prompt_cache_key: 'k' });
  assert.equal(conversation.opening(), 'Hello');
  exchange.set(opened, { ...exchange.get(opened), json: {} });
  assert.deepEqual([conversation.opening(), conversation.name], [undefined, 'k']);
});

test('a call that an upstream stores, continues or acts on leaves traces; an answer alone leaves none', () => {
  const leaves = (protocol: string, json: Opened['json'], toolCalls?: number) =>
    requestHasSideEffects(json, { protocol, ...(toolCalls === undefined ? {} : { toolCalls }) } as Call);
  for (const protocol of ['chat', 'messages', 'gemini']) assert.equal(leaves(protocol, {}), false, protocol);
  assert.equal(leaves('chat', { store: false, tools: [{ type: 'function' }] }, 0), false);
  assert.equal(leaves('chat', { store: true }), true);
  // The protocol's own default is to keep.
  assert.deepEqual([leaves('responses', {}), leaves('responses', { store: null })], [false, false]);
  assert.deepEqual([leaves('responses', { store: true }), leaves('responses', { background: true })], [true, true]);
  assert.equal(leaves('responses', { store: false }), false);
  assert.equal(leaves('responses', { store: false, previous_response_id: 'r' }), true);
  assert.equal(leaves('responses', { store: false, previous_response_id: null }), false);
  assert.equal(leaves('responses', { store: false, tools: [{ type: 'image_generation' }] }), true);
  assert.equal(leaves('messages', { container: 'c' }), true);
  assert.equal(leaves('messages', { mcp_servers: [{ name: 'x' }] }), true);
  assert.equal(leaves('gemini', { cachedContent: 'cachedContents/1' }), true);
  assert.equal(leaves('chat', {}, 10), true);
});

test('traces are asked of the request as it is opened', () => {
  assert.equal(opening('chat', { store: true }).conversation.hasSideEffects(), true);
  assert.equal(opening('messages', {}).conversation.hasSideEffects(), false);
});
