/** Streams of the responses protocol: recordings are read without loss, and what clients get is what official SDKs accept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/errors.ts';
import { isObject, type JsonObject, listOf } from '../../../../plugins/protocol-convert/json.ts';
import { Losses } from '../../../../plugins/protocol-convert/losses.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import type { Event } from '../../../../plugins/protocol-convert/reply.ts';
import {
  eventsOf,
  eventsOfReply,
  type Frame,
  framesOf,
  openSeal,
  readBySdk,
  recordings,
  replyContext,
  replyOf,
  streamOf,
} from './responses-helpers.ts';

/** What a response object says, told apart by kind. */
function saidIn(response: JsonObject) {
  const items = listOf(response['output']) as JsonObject[];
  const contents = items.flatMap((item) => listOf(item['content']) as JsonObject[]);
  return {
    text: contents.map((part) => (part['type'] === 'output_text' ? part['text'] : '')).join(''),
    refusal: contents.map((part) => part['refusal'] ?? '').join(''),
    reasoning: items
      .filter((item) => item['type'] === 'reasoning')
      .map((item) => listOf(listOf(item['summary']).length > 0 ? item['summary'] : item['content']) as JsonObject[])
      .map((parts) => parts.map((part) => part['text']).join('\n\n'))
      .filter((text) => text !== ''),
    calls: items
      .filter(({ type }) => type === 'function_call' || type === 'custom_tool_call')
      .map((item) => [item['call_id'], item['name'], item['arguments'] ?? item['input']]),
    annotations: contents.flatMap((part) => listOf(part['annotations'])),
    searches: items.filter(({ type }) => type === 'web_search_call').length,
    images: items.flatMap(({ result }) => (typeof result === 'string' ? [result] : [])),
    status: response['status'],
  };
}

function endOf(stream: string): JsonObject {
  const last = framesOf(stream).at(-1)!;
  assert.ok(isObject(last.data['response']), 'the stream ends with a response');
  return last.data['response'];
}

const answered = recordings.filter(({ status, body }) => status === 200 && body.includes('output'));

for (const { name, body, isStream } of answered) {
  if (body.includes('response.failed')) continue;
  test(`${name}: read and worded again, the answer says the same`, async () => {
    const original = isStream ? endOf(body) : (JSON.parse(body) as JsonObject);
    const events = isStream ? eventsOf(framesOf(body)) : eventsOfReply(original);
    const stream = streamOf(events);
    const wanted = saidIn(original);
    assert.deepEqual(saidIn(endOf(stream)), wanted);
    const whole = responsesCodec.encodeReply(replyOf(events), replyContext());
    assert.deepEqual(saidIn(whole), wanted);
    const read = await readBySdk(stream);
    assert.deepEqual(saidIn(read as unknown as JsonObject), wanted);
  });
}

function event(type: string, more: JsonObject): Frame {
  return { event: type, data: { type, ...more } };
}
const added = (index: number, item: JsonObject) => event('response.output_item.added', { output_index: index, item });
const done = (index: number, item: JsonObject) => event('response.output_item.done', { output_index: index, item });
const completed = (output: unknown, more: JsonObject = {}) =>
  event('response.completed', { response: { id: 'resp_1', status: 'completed', output, ...more } });
const types = (events: readonly Event[]) => events.map(({ type }) => type);
const argumentsOf = (events: readonly Event[]) =>
  events.flatMap((one) => (one.type === 'tool-delta' ? [one.text] : [])).join('');
const textDelta = (text: string, index = 0) =>
  event('response.output_text.delta', { output_index: index, item_id: 'm', content_index: 0, delta: text });

test('pitfall 015: events without names are read by the type in them', () => {
  const frames = [textDelta('Hi'), completed(null)].map(({ data }) => ({ event: undefined, data }));
  assert.deepEqual(types(eventsOf(frames)), ['reply-start', 'text-start', 'text-delta', 'text-end', 'stop']);
});

test('pitfall 016: keepalive events and unknown ones say nothing', () => {
  const frames = [
    event('keepalive', { sequence_number: 3 }),
    textDelta('Hi'),
    event('response.new_thing', {}),
    completed([]),
  ];
  assert.deepEqual(types(eventsOf(frames)), ['reply-start', 'text-start', 'text-delta', 'text-end', 'stop']);
});

test('pitfall 035: a call without arguments gets an empty object, streamed or whole', () => {
  const item = { type: 'function_call', call_id: 'c1', name: 'now', arguments: '' };
  assert.equal(argumentsOf(eventsOf([added(0, item), done(0, item), completed([item])])), '{}');
  assert.equal(argumentsOf(eventsOfReply({ output: [item] })), '{}');
});

test('pitfall 043: arguments in deltas, in their done event, in the item and in the end are told once', () => {
  const item = { id: 'fc_1', type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' };
  const frames = [
    added(0, { ...item, arguments: '' }),
    event('response.function_call_arguments.delta', { output_index: 0, delta: '{"a"' }),
    event('response.function_call_arguments.done', { output_index: 0, arguments: '{"a":1}' }),
    done(0, item),
    completed([item]),
  ];
  assert.equal(argumentsOf(eventsOf(frames)), '{"a":1}');
});

test('pitfall 044: an item whose id changes between its events stays one item', () => {
  const frames = [
    added(0, { id: 'a', type: 'function_call', call_id: 'c1', name: 'f' }),
    event('response.function_call_arguments.delta', { output_index: 0, item_id: 'b', delta: '{}' }),
    done(0, { id: 'd', type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}', status: 'completed' }),
    completed(null),
  ];
  const events = eventsOf(frames);
  assert.deepEqual(types(events), ['reply-start', 'tool-start', 'tool-delta', 'tool-end', 'stop']);
});

test('pitfall 046: an answer that ends inside arguments is incomplete, and the call is never told as done', () => {
  const frames = [
    added(0, { type: 'function_call', call_id: 'c1', name: 'f' }),
    event('response.function_call_arguments.delta', { output_index: 0, delta: '{"a' }),
    event('response.incomplete', {
      response: {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a', status: 'incomplete' }],
      },
    }),
  ];
  const events = eventsOf(frames);
  assert.ok(events.some((one) => one.type === 'tool-end' && one.isCut));
  const stream = framesOf(streamOf(events));
  assert.ok(!stream.some(({ event: name }) => name === 'response.output_item.done'));
  assert.equal(stream.at(-1)!.event, 'response.incomplete');
  const { output, incomplete_details: details } = stream.at(-1)!.data['response'] as JsonObject;
  assert.equal((output as JsonObject[])[0]!['status'], 'incomplete');
  assert.deepEqual(details, { reason: 'max_output_tokens' });
});

test('pitfall 047: a call whose done event never comes is ended by the end of the answer', () => {
  const item = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' };
  const frames = [added(0, { ...item, arguments: '' }), completed([item])];
  assert.equal(argumentsOf(eventsOf(frames)), '{"a":1}');
});

test('pitfall 156: an end without output leaves what its events told', () => {
  const frames = [
    added(0, { type: 'function_call', call_id: 'c1', name: 'f' }),
    event('response.function_call_arguments.done', { output_index: 0, arguments: '{"a":1}' }),
    completed(null),
  ];
  const events = eventsOf(frames);
  assert.equal(argumentsOf(events), '{"a":1}');
  assert.deepEqual(events.at(-1), { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined });
});

test('pitfall 127: one reasoning item is one block, its parts a blank line apart, its keepsake at the end', () => {
  const delta = (part: number, text: string) =>
    event('response.reasoning_summary_text.delta', { output_index: 0, summary_index: part, delta: text });
  const item = {
    id: '',
    type: 'reasoning',
    summary: [
      { type: 'summary_text', text: 'One.' },
      { type: 'summary_text', text: 'Two.' },
    ],
    encrypted_content: 'later',
  };
  const frames = [
    added(0, { id: '', type: 'reasoning', summary: [], encrypted_content: 'early' }),
    delta(0, 'On'),
    delta(0, 'e.'),
    delta(1, 'Two.'),
    done(0, item),
    textDelta('Hi', 1),
    completed([item]),
  ];
  const streamed = replyOf(eventsOf(frames)).choices[0]!.parts[0];
  const whole = replyOf(eventsOfReply({ output: [item] })).choices[0]!.parts[0];
  assert.deepEqual(streamed, { kind: 'reasoning', text: 'One.\n\nTwo.', keepsake: { maker: 'maker', value: 'later' } });
  assert.deepEqual(whole, streamed);
});

test('reasoning that another item has interrupted keeps its keepsake in a block of its own', () => {
  const frames = [
    event('response.reasoning_summary_text.delta', { output_index: 0, summary_index: 0, delta: 'Hm.' }),
    textDelta('Hi', 1),
    done(0, { type: 'reasoning', summary: [{ text: 'Hm.' }], encrypted_content: 'sign' }),
    completed(null),
  ];
  const ends = eventsOf(frames).flatMap((one) =>
    one.type.endsWith('-end') ? [[one.type, 'keepsake' in one && one.keepsake]] : [],
  );
  assert.deepEqual(ends, [
    ['reasoning-end', undefined],
    ['text-end', undefined],
    ['reasoning-end', 'sign'],
  ]);
});

test('messages that follow one another stay apart', () => {
  const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] });
  const events = eventsOfReply({ output: [message('One.'), message('Two.')] });
  assert.equal(types(events).filter((type) => type === 'text-start').length, 2);
});

test('a custom tool’s input is raw text, and what it ends with is told once', async () => {
  const item = { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** Begin' };
  const events = eventsOf([
    added(0, { ...item, input: '' }),
    event('response.custom_tool_call_input.delta', { output_index: 0, delta: '***' }),
    done(0, item),
    completed([item]),
  ]);
  assert.equal(argumentsOf(events), '*** Begin');
  const [call] = (await readBySdk(streamOf(events))).output;
  assert.equal(call?.type === 'custom_tool_call' && call.input, '*** Begin');
});

/** Two calls at once, then text, a citation, a refusal, a search and an image: all that a stream can hold. */
const rich: readonly Event[] = [
  { type: 'reply-start', id: 'up', createdAt: 1_700_000_000, serviceTier: 'priority' },
  { type: 'reasoning-start', block: 0, choice: 0 },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'Hm.' },
  { type: 'reasoning-end', block: 0, choice: 0, keepsake: 'sign', redacted: false },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'Sky', logprobs: [{ token: 'Sky', logprob: -0.5 }] },
  { type: 'citation', block: 1, choice: 0, citation: { url: 'https://a.example', title: 'A' } },
  { type: 'text-end', block: 1, choice: 0, keepsake: undefined },
  { type: 'text-start', block: 2, choice: 0 },
  { type: 'text-delta', block: 2, choice: 0, text: ' blue', logprobs: undefined },
  { type: 'citation', block: 2, choice: 0, citation: { url: 'https://b.example', start: 1, end: 5 } },
  { type: 'text-end', block: 2, choice: 0, keepsake: 'mine' },
  { type: 'search', block: 3, choice: 0, search: { kind: 'search', id: 'x', queries: ['sky'], results: [] } },
  { type: 'tool-start', block: 4, choice: 0, id: 'c1', name: 'f', namespace: 'ns', custom: false },
  { type: 'tool-start', block: 5, choice: 0, id: 'c2', name: 'g', namespace: undefined, custom: true },
  { type: 'tool-delta', block: 5, choice: 0, text: 'raw' },
  { type: 'tool-delta', block: 4, choice: 0, text: '{"a":' },
  { type: 'tool-delta', block: 4, choice: 0, text: '1}' },
  { type: 'tool-end', block: 5, choice: 0, keepsake: undefined, isCut: false },
  { type: 'tool-end', block: 4, choice: 0, keepsake: 'thought', isCut: false },
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

test('a whole answer says what the stream says', () => {
  const whole = responsesCodec.encodeReply(replyOf(rich), replyContext());
  const streamed = endOf(streamOf(rich));
  const sorted = (response: JsonObject) =>
    (response['output'] as JsonObject[]).map(({ id: _id, ...item }) => JSON.stringify(item)).sort();
  assert.deepEqual(sorted(whole), sorted(streamed));
  const { output: _one, ...head } = whole;
  const { output: _other, ...streamedHead } = streamed;
  assert.deepEqual(head, streamedHead);
});

test('keepsakes of calls and texts travel in reasoning items and come back to their owners', () => {
  const { output } = endOf(streamOf(rich));
  const prompt = responsesCodec.decodeRequest(
    { model: 'm', input: output },
    { losses: new Losses(responsesCodec.spelling), open: (text) => openSeal(text) },
  );
  const parts = prompt.turns.flatMap((turn) => turn.parts);
  const kept = parts.flatMap((part) => ('keepsake' in part ? [[part.kind, part.keepsake?.value]] : []));
  assert.deepEqual(kept, [
    ['reasoning', 'sign'],
    ['text', 'mine'],
    ['tool-call', 'thought'],
  ]);
});

test('pitfall 054: a tool of a namespace is told with its namespace', () => {
  const names = new Map([['ns__f', { name: 'f', namespace: 'ns' }]]);
  const item = { type: 'function_call', call_id: 'c1', name: 'ns__f', arguments: '{}' };
  const [call] = endOf(streamOf(eventsOfReply({ output: [item] }, names)))['output'] as JsonObject[];
  assert.equal(call!['name'], 'f');
  assert.equal(call!['namespace'], 'ns');
});

test('pitfall 209: the model is told as the client asked for it', () => {
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
    tools: [{ type: 'function', name: 'f' }],
    metadata: { a: 'b' },
  };
  const response = endOf(streamOf(rich, replyContext({ request })));
  assert.equal(response['id'], 'resp_0197f3c2-aaaa-7bbb-8ccc-0123456789ab');
  assert.equal(response['created_at'], 1_700_000_000);
  assert.equal(response['service_tier'], 'priority');
  for (const name of ['instructions', 'temperature', 'store', 'tools', 'metadata'] as const) {
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

test('pitfall 108: a refusal is told as a refusal', () => {
  const message = { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] };
  const events = eventsOfReply({ status: 'completed', output: [message] });
  assert.deepEqual(types(events), ['reply-start', 'refusal-start', 'refusal-delta', 'refusal-end', 'stop']);
  assert.deepEqual(events.at(-1), { type: 'stop', choice: 0, reason: 'refusal', sequence: undefined });
});

test('pitfall 110: empty lists of probabilities are none', () => {
  const frames = [event('response.output_text.delta', { output_index: 0, delta: 'Hi', logprobs: [] }), completed(null)];
  const delta = eventsOf(frames).find((one) => one.type === 'text-delta');
  assert.equal(delta?.logprobs, undefined);
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
