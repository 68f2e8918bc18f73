/** Streams and answers for responses clients: what official SDKs insist on, and what terminal clients need. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { collected } from '../canonical/collect-events.ts';
import { completed, textDelta } from './responses-frames.ts';
import {
  endOf,
  eventsOf,
  eventsOfReply,
  framesOf,
  openSeal,
  readBySdk,
  replyContext,
  saidIn,
  streamOf,
} from './responses-helpers.ts';

/** Two calls at once, then text, a citation, a refusal, a search and an image: all that a stream can hold. */
const rich: readonly Event[] = [
  { type: 'reply-start', id: 'up', createdAt: 1_700_000_000, serviceTier: 'priority' },
  { type: 'reasoning-start', block: 0, choice: 0 },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'Hm.' },
  { type: 'reasoning-end', block: 0, choice: 0, opaqueState: 'sign', redacted: false },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'Sky', logprobs: [{ token: 'Sky', logprob: -0.5 }] },
  { type: 'citation', block: 1, choice: 0, citation: { url: 'https://a.example', title: 'A' } },
  { type: 'text-end', block: 1, choice: 0, opaqueState: undefined },
  { type: 'text-start', block: 2, choice: 0 },
  { type: 'text-delta', block: 2, choice: 0, text: ' blue', logprobs: undefined },
  { type: 'citation', block: 2, choice: 0, citation: { url: 'https://b.example', start: 1, end: 5 } },
  { type: 'text-end', block: 2, choice: 0, opaqueState: 'mine' },
  { type: 'search', block: 3, choice: 0, search: { kind: 'search', id: 'x', queries: ['sky'], results: [] } },
  { type: 'tool-start', block: 4, choice: 0, id: 'c1', name: 'f', namespace: 'ns', custom: false },
  { type: 'tool-start', block: 5, choice: 0, id: 'c2', name: 'g', namespace: undefined, custom: true },
  { type: 'tool-delta', block: 5, choice: 0, text: 'raw' },
  { type: 'tool-delta', block: 4, choice: 0, text: '{"a":' },
  { type: 'tool-delta', block: 4, choice: 0, text: '1}' },
  { type: 'tool-end', block: 5, choice: 0, opaqueState: undefined, isCut: false },
  { type: 'tool-end', block: 4, choice: 0, opaqueState: 'thought', isCut: false },
  {
    type: 'media',
    block: 6,
    choice: 0,
    media: { kind: 'image', source: { form: 'bytes', mediaType: 'image/webp', base64: 'UklGRg==' } },
  },
  { type: 'refusal-start', block: 7, choice: 0 },
  { type: 'refusal-delta', block: 7, choice: 0, text: 'No more.' },
  { type: 'refusal-end', block: 7, choice: 0 },
  { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined },
];

test('pitfall 154: every item and part of a stream is begun and ended, numbered from zero, as the official SDK insists', async () => {
  const stream = streamOf(rich);
  const frames = framesOf(stream);
  assert.deepEqual(
    frames.map(({ data }) => data['sequence_number']),
    [...frames.keys()],
  );
  assert.ok(frames.every(({ event: name, data }) => name === data['type']));
  for (const index of [0, 1, 2, 3, 4, 5, 6, 7, 8]) {
    const own = frames.filter(({ data }) => data['output_index'] === index).map(({ event: name }) => name);
    assert.equal(own[0], 'response.output_item.added');
    assert.equal(own.at(-1), 'response.output_item.done');
  }
  const read = await readBySdk(stream);
  assert.equal(read.output_text, 'Sky blue');
  assert.deepEqual(saidIn(read as unknown as JsonObject), saidIn(endOf(stream)));
});

test('pitfall 155: the whole text stands in its done events, in the item and in the end', () => {
  const frames = framesOf(streamOf(rich));
  const find = (type: string) => frames.find(({ event: name }) => name === type)!.data;
  assert.equal(find('response.output_text.done')['text'], 'Sky blue');
  assert.equal((find('response.content_part.done')['part'] as JsonObject)['text'], 'Sky blue');
  const ended = frames.flatMap(({ event: name, data }) => (name === 'response.output_item.done' ? [data['item']] : []));
  const byIndex = frames
    .filter(({ event: name }) => name === 'response.output_item.done')
    .sort((one, other) => Number(one.data['output_index']) - Number(other.data['output_index']))
    .map(({ data }) => data['item']);
  assert.equal(ended.length, 9);
  assert.deepEqual((frames.at(-1)!.data['response'] as JsonObject)['output'], byIndex);
});

test('pitfall 208: parts of messages carry their lists, empty or not', () => {
  const frames = framesOf(streamOf(eventsOf([textDelta('Hi'), completed(null)])));
  const item = frames.find(({ event: name }) => name === 'response.output_item.done')!.data['item'] as JsonObject;
  assert.deepEqual(item['content'], [{ type: 'output_text', annotations: [], logprobs: [], text: 'Hi' }]);
});

test('citations without a place are of their whole block, others are moved to where the block stands', () => {
  const said = saidIn(endOf(streamOf(rich))).annotations as JsonObject[];
  assert.deepEqual(
    said.map(({ url, start_index: start, end_index: end }) => [url, start, end]),
    [
      ['https://a.example', 0, 3],
      ['https://b.example', 4, 8],
    ],
  );
});

test('a whole answer has the same content as the stream', () => {
  const whole = responsesCodec.encodeReply(collected(rich), replyContext());
  const streamed = endOf(streamOf(rich));
  const sorted = (response: JsonObject) =>
    (response['output'] as JsonObject[]).map(({ id: _id, ...item }) => JSON.stringify(item)).sort();
  assert.deepEqual(sorted(whole), sorted(streamed));
  const { output: _one, ...head } = whole;
  const { output: _other, ...streamedHead } = streamed;
  assert.deepEqual(head, streamedHead);
});

test('the answer tells all of its texts in `output_text`, whole and at the end of a stream, without reasoning and refusals', () => {
  const said = (events: readonly Event[]) => [
    responsesCodec.encodeReply(collected(events), replyContext())['output_text'],
    endOf(streamOf(events))['output_text'],
  ];
  assert.deepEqual(said(rich), ['Sky blue', 'Sky blue']);
  const refusal = rich.slice(-4, -1).map((one) => ({ ...one, block: 1 }) as Event);
  const silent = [...rich.slice(0, 4), ...refusal, rich.at(-1)!];
  assert.deepEqual(said(silent), ['', '']);
});

test('opaque states of calls and texts travel in reasoning items and come back to their owners', () => {
  const { output } = endOf(streamOf(rich));
  const prompt = responsesCodec.decodeRequest(
    { model: 'm', input: output },
    { dropped: new DroppedParameters(responsesCodec.spelling), open: (text) => openSeal(text) },
  );
  const parts = prompt.turns.flatMap((turn) => turn.parts);
  const kept = parts.flatMap((part) => ('opaqueState' in part ? [[part.kind, part.opaqueState?.value]] : []));
  assert.deepEqual(kept, [
    ['reasoning', 'sign'],
    ['text', 'mine'],
    ['tool-call', 'thought'],
  ]);
});

test('pitfall 209: the answer names the model as the client did', () => {
  const frames = framesOf(streamOf(eventsOf([completed([], { model: 'real-model-2026' })])));
  assert.equal((frames[0]!.data['response'] as JsonObject)['model'], 'asked-model');
});

test('the client’s own settings stand in the response, and the vendor’s id does not', () => {
  const request = {
    model: 'asked-model',
    input: 'Hi',
    instructions: 'Be brief.',
    temperature: 0.3,
    store: false,
    tools: [{ type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true }],
    metadata: { a: 'b' },
    presence_penalty: 0.5,
    frequency_penalty: -0.5,
  };
  const response = endOf(streamOf(rich, replyContext({ request })));
  assert.equal(response['id'], 'resp_0197f3c2-aaaa-7bbb-8ccc-0123456789ab');
  assert.equal(response['created_at'], 1_700_000_000);
  assert.equal(response['service_tier'], 'priority');
  assert.equal(response['completed_at'], 1_800_000_009);
  const names = ['instructions', 'temperature', 'store', 'tools', 'metadata', 'presence_penalty', 'frequency_penalty'];
  for (const name of names as (keyof typeof request)[]) {
    assert.deepEqual(response[name], request[name]);
  }
});

test('pitfall 169: usage has both details objects, full of numbers, and sums that hold', () => {
  assert.deepEqual(endOf(streamOf(rich))['usage'], {
    input_tokens: 16,
    input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
    output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 3 },
    total_tokens: 26,
  });
  const bare = replyContext({ usage: () => ({ usage: {}, estimated: true }) });
  const usage = endOf(streamOf(rich, bare))['usage'] as JsonObject;
  assert.deepEqual(usage['input_tokens_details'], { cached_tokens: 0, cache_write_tokens: 0 });
  assert.deepEqual(usage['output_tokens_details'], { reasoning_tokens: 0 });
});

test('pitfall 152: an answer that was held back is incomplete, one that refuses in words is whole', () => {
  const stop: Event = { type: 'stop', choice: 0, reason: 'refusal', sequence: undefined };
  const held = endOf(streamOf([stop]));
  assert.equal(held['status'], 'incomplete');
  assert.deepEqual(held['incomplete_details'], { reason: 'content_filter' });
  const refused = endOf(streamOf([...rich.slice(-4, -1), stop]));
  assert.equal(refused['status'], 'completed');
});

test('pitfall 138: reasoning alone is an answer', async () => {
  const events = eventsOfReply({ output: [{ type: 'reasoning', summary: [{ text: 'Hm.' }] }] });
  const read = await readBySdk(streamOf(events));
  assert.equal(read.status, 'completed');
  assert.deepEqual(
    read.output.map(({ type }) => type),
    ['reasoning'],
  );
});

test('pitfall 153: a broken stream ends with error and response.failed, with codes that terminal clients know', () => {
  const cases = [
    [new GatewayError('rate_limited', 'Slow down.', { retryAfterMs: 1500 }), 'rate_limit_exceeded'],
    [new GatewayError('insufficient_balance', 'Empty.'), 'insufficient_quota'],
    [new GatewayError('invalid_request', 'Too long.', { code: 'context_length_exceeded' }), 'context_length_exceeded'],
    [new GatewayError('upstream_failed', 'Broke.', { code: 'anything' }), 'server_error'],
  ] as const;
  for (const [error, code] of cases) {
    const encoder = responsesCodec.createEncoder(replyContext());
    const text =
      rich
        .slice(0, 6)
        .map((one) => encoder.event(one))
        .join('') + encoder.fail(error);
    const frames = framesOf(text);
    assert.ok(text.endsWith('\n\n'));
    assert.deepEqual(
      frames.map(({ data }) => data['sequence_number']),
      [...frames.keys()],
    );
    assert.deepEqual(
      frames.slice(-2).map(({ event: name }) => name),
      ['error', 'response.failed'],
    );
    const response = frames.at(-1)!.data['response'] as JsonObject;
    assert.equal(response['status'], 'failed');
    assert.equal((response['error'] as JsonObject)['code'], code);
    assert.equal(frames.at(-2)!.data['code'], code);
  }
  const encoder = responsesCodec.createEncoder(replyContext());
  assert.match(encoder.fail(cases[0][0]), /try again in 1\.5s/);
});

test('pitfall 006: the last event ends with a blank line', () => {
  assert.ok(streamOf(rich).endsWith('}\n\n'));
  assert.ok(streamOf([]).endsWith('}\n\n'));
});

test('pitfall 014: a stream that breaks before its first event still begins, and then fails', () => {
  const encoder = responsesCodec.createEncoder(replyContext());
  const frames = framesOf(encoder.fail(new GatewayError('upstream_failed', 'Broke.')));
  assert.deepEqual(
    frames.map(({ event: name }) => name),
    ['response.created', 'response.in_progress', 'error', 'response.failed'],
  );
});

test('answers beside the first are left out: the protocol gives one', () => {
  const other = rich.map((one) => (one.type === 'reply-start' ? one : { ...one, choice: 1 }));
  assert.deepEqual(endOf(streamOf(other))['output'], []);
});

test('the AI SDK reads the stream: text, reasoning, calls, sources, usage', async () => {
  const provider = createOpenAI({
    apiKey: 'key',
    fetch: async () => new Response(streamOf(rich), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const { stream } = await provider.responses('m').doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    tools: [{ type: 'function', name: 'f', inputSchema: { type: 'object' } }],
  });
  const parts = [];
  for await (const part of stream) parts.push(part);
  assert.deepEqual(
    parts.filter(({ type }) => type === 'error'),
    [],
  );
  const texts = parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []));
  assert.equal(texts.join(''), 'Sky blueNo more.');
  const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
  assert.ok(calls.includes('c1'));
  const finish = parts.find((part) => part.type === 'finish');
  assert.equal(finish?.usage.inputTokens.total, 16);
  assert.equal(finish?.usage.outputTokens.reasoning, 3);
});
