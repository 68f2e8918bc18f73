/** The messages codec on streams: recorded answers, hard cases, and the official SDK as the reader of what comes out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { encoded, eventsOf, payloadsOf, replyContext, throughSdk } from './messages-harness.ts';

const block = (index: number, content_block: object): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, value: object): JsonObject => ({ type: 'content_block_delta', index, delta: value });
const stop = (index: number): JsonObject => ({ type: 'content_block_stop', index });
const ending = (stop_reason: string, more: object = {}): JsonObject => ({
  type: 'message_delta',
  delta: { stop_reason, ...more },
});
const callBlock = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} };
const json = (partial_json: string) => ({ type: 'input_json_delta', partial_json });
const types = (events: readonly Event[]) => events.map(({ type }) => type);

test('pitfall 022: pings are skipped', () => {
  assert.deepEqual(types(eventsOf([{ type: 'ping' }, ending('end_turn')])), ['reply-start', 'stop']);
});

test('pitfall 041: a text while a call is open ends the call', () => {
  const events = eventsOf([block(0, callBlock), delta(0, json('{}')), delta(0, { type: 'text_delta', text: 'x' })]);
  assert.deepEqual(types(events), [
    ...['reply-start', 'tool-start', 'tool-delta', 'tool-end', 'text-start', 'text-delta', 'text-end', 'stop'],
  ]);
});

test('pitfall 042: blocks and answers end once, however often that is said', () => {
  const events = eventsOf([
    block(0, { type: 'text', text: 'x' }),
    stop(0),
    stop(0),
    ending('end_turn'),
    ending('tool_use'),
  ]);
  assert.deepEqual(types(events), ['reply-start', 'text-start', 'text-delta', 'text-end', 'stop']);
});

test('a stop reason of tool calls without a call ends an answer of text plainly', () => {
  const events = eventsOf([block(0, { type: 'text', text: 'x' }), stop(0), ending('tool_use')]);
  assert.equal(events.find((event) => event.type === 'stop')?.reason, 'stop');
});

test('pitfall 112: a signature ends its thinking block, and belongs to no other', () => {
  const events = eventsOf([
    block(0, { type: 'thinking', thinking: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'hm' }),
    delta(0, { type: 'signature_delta', signature: 'S' }),
    stop(0),
    block(1, { type: 'text', text: '' }),
    delta(1, { type: 'signature_delta', signature: 'T' }),
    delta(1, { type: 'text_delta', text: 'x' }),
    stop(1),
    ending('end_turn'),
  ]);
  const ends = events.filter((event) => event.type === 'reasoning-end' || event.type === 'text-end');
  assert.deepEqual(
    ends.map((event) => event.opaqueState),
    ['S', undefined],
  );
  const frames = encoded(events);
  assert.equal(frames.match(/signature_delta/g)?.length, 1);
  assert.ok(frames.indexOf('signature_delta') < frames.indexOf('content_block_stop'));
});

test('pitfall 113: redacted thinking comes through whole, and shows nothing', () => {
  const events = eventsOf([block(0, { type: 'redacted_thinking', data: 'D' }), stop(0), ending('end_turn')]);
  assert.ok(encoded(events).includes('"content_block":{"type":"redacted_thinking","data":"gw1.D"}'));
});

test('pitfall 117: thinking is reported byte for byte', async () => {
  const text = '  a \u2028 "b"\n';
  const events = eventsOf([
    block(0, { type: 'thinking', thinking: '' }),
    delta(0, { type: 'thinking_delta', thinking: text }),
    stop(0),
    ending('end_turn'),
  ]);
  const message = await throughSdk(encoded(events));
  assert.deepEqual(message.content, [{ type: 'thinking', thinking: text, signature: 'gw1.' }]);
});

test('pitfall 130: thinking after text is a block of its own', () => {
  const events = eventsOf([
    block(0, { type: 'text', text: 'a' }),
    delta(0, { type: 'thinking_delta', thinking: 'b' }),
    delta(0, { type: 'text_delta', text: 'c' }),
    ending('end_turn'),
  ]);
  assert.deepEqual(
    types(events).filter((type) => type.endsWith('-start')),
    ['reply-start', 'text-start', 'reasoning-start', 'text-start'],
  );
});

test('pitfall 138: an answer of thinking alone is an answer', async () => {
  const events = eventsOf([block(0, { type: 'thinking', thinking: 'a' }), stop(0), ending('end_turn')]);
  assert.equal((await throughSdk(encoded(events))).stop_reason, 'end_turn');
});

test('pitfall 149: the text that was hit is reported, and without one it is a plain end', async () => {
  const hit = await throughSdk(encoded(eventsOf([ending('stop_sequence', { stop_sequence: 'END' })])));
  assert.deepEqual([hit.stop_reason, hit.stop_sequence], ['stop_sequence', 'END']);
  const blind = await throughSdk(encoded(eventsOf([ending('stop_sequence')])));
  assert.deepEqual([blind.stop_reason, blind.stop_sequence], ['end_turn', null]);
});

test('pitfall 151: a pause is reported as a pause', async () => {
  assert.equal((await throughSdk(encoded(eventsOf([ending('pause_turn')])))).stop_reason, 'pause_turn');
});

test('pitfall 215: a compaction without content is skipped', () => {
  const events = eventsOf([
    block(0, { type: 'compaction', content: null }),
    delta(0, { type: 'compaction_delta', content: null }),
    stop(0),
    ending('compaction'),
  ]);
  assert.deepEqual(types(events), ['reply-start', 'stop']);
});

test('pitfall 218: a search of another vendor becomes a query and its results', async () => {
  const search: Event = {
    type: 'search',
    block: 0,
    choice: 0,
    search: { kind: 'search', id: 'ws_1', queries: ['a', 'b'], results: [{ url: 'https://x.test/', title: 'X' }] },
  };
  const message = await throughSdk(encoded([search]));
  assert.deepEqual(message.content, [
    { type: 'server_tool_use', id: 'srvtoolu_ws_1', name: 'web_search', input: { query: 'a; b' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_ws_1',
      content: [
        { type: 'web_search_result', url: 'https://x.test/', title: 'X', encrypted_content: 'gw1.', page_age: null },
      ],
    },
  ]);
});

test('pitfall 219: the opaque place of a citation is kept', () => {
  const citation = {
    type: 'web_search_result_location',
    url: 'https://x.test/',
    title: 'X',
    cited_text: 'q',
    encrypted_index: 'I',
  };
  const events = eventsOf([
    block(0, { type: 'text', text: '' }),
    delta(0, { type: 'citations_delta', citation }),
    ending('end_turn'),
  ]);
  const sent = events.find((event) => event.type === 'citation');
  assert.deepEqual(sent?.citation, {
    url: 'https://x.test/',
    title: 'X',
    quote: 'q',
    opaqueState: { maker: '', value: 'I' },
  });
  assert.ok(encoded(events).includes('"encrypted_index":"gw1.I"'));
});

test('pitfall 015: the type in the data counts where the event is not named', () => {
  assert.equal(eventsOf([block(0, { type: 'text', text: 'x' })]).length, 5);
});

test('pitfall 046: a call that the bound cut off is cut off, though its block was stopped', async () => {
  const events = eventsOf([block(0, callBlock), delta(0, json('{"a": "b')), stop(0), ending('max_tokens')]);
  const end = events.find((event) => event.type === 'tool-end');
  assert.equal(end?.isCut, true);
  const message = await throughSdk(encoded(events));
  assert.deepEqual([message.content, message.stop_reason], [[], 'max_tokens']);
});

test('pitfall 035: a call without arguments has an empty object', async () => {
  const events = eventsOf([block(0, callBlock), delta(0, json('')), stop(0), ending('tool_use')]);
  const frames = encoded(events);
  assert.ok(frames.includes('"input":{}}') && frames.includes('"partial_json":"{}"'));
  assert.deepEqual((await throughSdk(frames)).content, [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }]);
});

const start = (number: number, more: object = {}): Event => ({
  type: 'tool-start',
  block: number,
  choice: 0,
  id: `call_${number}`,
  name: `tool${number}`,
  namespace: undefined,
  custom: false,
  ...more,
});
const grow = (number: number, text: string): Event => ({ type: 'tool-delta', block: number, choice: 0, text });
const end = (number: number, opaqueState?: string): Event => ({
  type: 'tool-end',
  block: number,
  choice: 0,
  opaqueState: opaqueState,
  isCut: false,
});

test('pitfall 027: interleaved parallel calls come out one after the other, whole and in their order', async () => {
  const events = [
    ...[start(0), start(1), grow(1, '{"b"'), grow(0, '{"a"'), grow(1, ':2}'), grow(0, ':1}'), end(1), end(0)],
  ];
  const frames = encoded(events);
  const indexes = [...frames.matchAll(/^event: content_block_(start|delta|stop)\ndata: \{[^\n]*?"index":(\d)/gm)];
  assert.deepEqual(
    indexes.map(([, what, index]) => `${what}${index}`),
    ['start0', 'delta0', 'stop0', 'start1', 'delta1', 'stop1'],
  );
  const message = await throughSdk(frames);
  assert.deepEqual(
    message.content.map((one) => one.type === 'tool_use' && one.input),
    [{ a: 1 }, { b: 2 }],
  );
});

test('pitfall 036: arguments that are no JSON come as an object that holds them', async () => {
  const message = await throughSdk(encoded([start(0), grow(0, '{"a": oops'), end(0)]));
  assert.deepEqual((message.content[0] as { input: unknown }).input, { _raw: '{"a": oops' });
});

test('pitfall 037: arguments that are no object come as one', async () => {
  const message = await throughSdk(encoded([start(0), grow(0, '[1]'), end(0)]));
  assert.deepEqual((message.content[0] as { input: unknown }).input, { _raw: [1] });
});

test('free text of a tool comes as its input', async () => {
  const message = await throughSdk(encoded([start(0, { custom: true }), grow(0, 'a "b"\n'), end(0)]));
  assert.deepEqual((message.content[0] as { input: unknown }).input, { input: 'a "b"\n' });
});

test('a tool with eager input streams its arguments as they come', () => {
  const context = replyContext({ request: { tools: [{ name: 'tool0', eager_input_streaming: true }] } });
  const encoder = messagesCodec.createEncoder(context);
  assert.ok(encoder.event(start(0)).includes('content_block_start'));
  assert.ok(encoder.event(grow(0, '{"a"')).includes('"partial_json":"{\\"a\\""'));
  assert.ok(encoder.event(grow(0, ':1}')).includes('"partial_json":":1}"'));
  assert.ok(encoder.event(end(0)).startsWith('event: content_block_stop'));
});

test('a call that is held sends pings', () => {
  const encoder = messagesCodec.createEncoder(replyContext());
  encoder.event(start(0));
  const frames = Array.from({ length: 10 }, () => encoder.event(grow(0, ' '.repeat(500)))).filter(
    (text) => text !== '',
  );
  assert.deepEqual(frames, Array(2).fill('event: ping\ndata: {"type":"ping"}\n\n'));
});

test('the signature of a call stands in an empty thinking block in front of it', async () => {
  const message = await throughSdk(encoded([start(0), grow(0, '{}'), end(0, 'S')]));
  assert.deepEqual(message.content[0], { type: 'thinking', thinking: '', signature: 'gw1.S' });
  assert.equal(message.content[1]?.type, 'tool_use');
});

test('pitfall 052: an id that clients could not send back is replaced by one that follows from it', async () => {
  const message = await throughSdk(encoded([start(0, { id: 'functions.look:0' }), end(0)]));
  assert.match((message.content[0] as { id: string }).id, /^toolu_[A-Za-z0-9]{24}$/);
});

test('text behind an open call waits for it', async () => {
  const text: Event[] = [
    { type: 'text-start', block: 1, choice: 0 },
    { type: 'text-delta', block: 1, choice: 0, text: 'x', logprobs: undefined },
    { type: 'text-end', block: 1, choice: 0, opaqueState: undefined },
  ];
  const message = await throughSdk(encoded([start(0), ...text, grow(0, '{}'), end(0)]));
  assert.deepEqual(
    message.content.map(({ type }) => type),
    ['tool_use', 'text'],
  );
});

test('pitfall 108: a refusal is reported as text and as the reason, whatever reason the upstream gave', async () => {
  const refusal: Event[] = [
    { type: 'refusal-start', block: 0, choice: 0 },
    { type: 'refusal-delta', block: 0, choice: 0, text: 'No.' },
    { type: 'refusal-end', block: 0, choice: 0 },
    { type: 'stop', choice: 0, reason: 'stop', sequence: undefined },
  ];
  const message = await throughSdk(encoded(refusal));
  assert.equal(message.stop_reason, 'refusal');
  assert.deepEqual(message.stop_details, { type: 'refusal', category: null, explanation: 'No.' });
  assert.deepEqual(message.content, [{ type: 'text', text: 'No.' }]);
});

test("a vendor's explanation of its refusal is reported as a refusal", () => {
  const events = eventsOf([ending('refusal', { stop_details: { type: 'refusal', explanation: 'Because.' } })]);
  assert.deepEqual(types(events), ['reply-start', 'refusal-start', 'refusal-delta', 'refusal-end', 'stop']);
});

test('pitfall 172: the beginning tells an estimate of the prompt, the end the exact usage', () => {
  const frames = encoded([], replyContext({ usage: {} }));
  assert.ok(frames.startsWith('event: message_start\n'));
  assert.match(frames, /"message_start".*"input_tokens":42/);
  const usage = {
    input: 5,
    cache_read: 3,
    cache_write_5m: 2,
    cache_write_1h: 1,
    output: 4,
    reasoning: 6,
    web_search: 2,
  };
  const end = payloadsOf(Buffer.from(encoded([], replyContext({ usage })))).at(-2);
  assert.deepEqual(end?.['usage'], {
    input_tokens: 5,
    cache_creation_input_tokens: 3,
    cache_read_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
    output_tokens: 10,
    output_tokens_details: { thinking_tokens: 6 },
    server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
    service_tier: 'standard',
    inference_geo: null,
  });
});

test('an image becomes a picture in markdown', async () => {
  const media: Event = {
    type: 'media',
    block: 0,
    choice: 0,
    media: { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'AAAA' } },
  };
  const message = await throughSdk(encoded([media]));
  assert.deepEqual(message.content, [{ type: 'text', text: '![image](data:image/png;base64,AAAA)' }]);
});

test('other choices than the first are not reported', async () => {
  const text: Event[] = [0, 1].flatMap((choice): Event[] => [
    { type: 'text-start', block: choice, choice },
    { type: 'text-delta', block: choice, choice, text: `${choice}`, logprobs: undefined },
  ]);
  assert.deepEqual((await throughSdk(encoded(text))).content, [{ type: 'text', text: '0' }]);
});

test('pitfall 014: an answer that broke ends with an error event, and held calls stay back', async () => {
  const encoder = messagesCodec.createEncoder(replyContext());
  const frames = [start(0), grow(0, '{"a":1}')].map((event) => encoder.event(event)).join('');
  const failed = frames + encoder.fail(new GatewayError('overloaded', 'Too much.'));
  assert.ok(failed.endsWith('\n\n') && !failed.includes('message_stop') && !failed.includes('"tool_use"'));
  await assert.rejects(throughSdk(failed), /overloaded_error/);
});

test('pitfall 040: blocks are distinguished by their order, not by the index that upstreams may forget', async () => {
  const payloads = [
    ...[block(0, { type: 'text', text: 'x' }), stop(0), block(1, callBlock), delta(1, json('{"a":1}')), stop(1)],
    ...[block(2, { ...callBlock, id: 'toolu_2' }), delta(2, json('{"b":2}')), stop(2), ending('tool_use')],
  ].map(({ index: _index, ...payload }) => payload);
  const message = await throughSdk(encoded(eventsOf(payloads)));
  assert.deepEqual(
    message.content.map((one) => (one.type === 'tool_use' ? one.input : one.type)),
    ['text', { a: 1 }, { b: 2 }],
  );
});

test('pitfall 139: an answer with calls ends with them, whatever reason was given', async () => {
  const events = eventsOf([block(0, callBlock), delta(0, json('{}')), stop(0), ending('end_turn')]);
  assert.equal((await throughSdk(encoded(events))).stop_reason, 'tool_use');
});

test('arguments that come whole in the start of a call are reported', async () => {
  const events = eventsOf([block(0, { ...callBlock, input: { a: 1 } }), stop(0), ending('tool_use')]);
  const message = await throughSdk(encoded(events));
  assert.deepEqual((message.content[0] as { input: unknown }).input, { a: 1 });
});
