/** Streams and answers of responses upstreams: odd ones are read as they are meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { collected } from '../canonical/collect-events.ts';
import { added, argumentsOf, completed, done, event, textDelta, types } from './responses-frames.ts';
import { endOf, eventsOf, eventsOfReply, framesOf, readBySdk, streamOf } from './responses-helpers.ts';

test('pitfall 015: events without names are read by the type in them', () => {
  const frames = [textDelta('Hi'), completed(null)].map(({ data }) => ({ event: undefined, data }));
  assert.deepEqual(types(eventsOf(frames)), ['reply-start', 'text-start', 'text-delta', 'text-end', 'stop']);
});

test('pitfall 016: keepalive events and unknown ones are skipped', () => {
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

test('pitfall 043: arguments in deltas, in their done event, in the item and in the end are reported once', () => {
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

test('pitfall 046: an answer that ends inside arguments is incomplete, and so is the call that it ends', () => {
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
  const done = stream.filter(({ event: name }) => name?.endsWith('.done'));
  assert.deepEqual(
    done.map(({ event: name }) => name),
    ['response.function_call_arguments.done', 'response.output_item.done'],
  );
  assert.equal((done[1]!.data['item'] as JsonObject)['status'], 'incomplete');
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

test('pitfall 156: an end without output keeps what its events held', () => {
  const frames = [
    added(0, { type: 'function_call', call_id: 'c1', name: 'f' }),
    event('response.function_call_arguments.done', { output_index: 0, arguments: '{"a":1}' }),
    completed(null),
  ];
  const events = eventsOf(frames);
  assert.equal(argumentsOf(events), '{"a":1}');
  assert.deepEqual(events.at(-1), { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined });
});

test('pitfall 127: one reasoning item is one block, its parts a blank line apart, its opaque state at the end', () => {
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
  const streamed = collected(eventsOf(frames)).choices[0]!.parts[0];
  const whole = collected(eventsOfReply({ output: [item] })).choices[0]!.parts[0];
  assert.deepEqual(streamed, {
    kind: 'reasoning',
    text: 'One.\n\nTwo.',
    opaqueState: { maker: '', value: 'later' },
  });
  assert.deepEqual(whole, streamed);
});

test('reasoning that another item has interrupted keeps its opaque state in a block of its own', () => {
  const frames = [
    event('response.reasoning_summary_text.delta', { output_index: 0, summary_index: 0, delta: 'Hm.' }),
    textDelta('Hi', 1),
    done(0, { type: 'reasoning', summary: [{ text: 'Hm.' }], encrypted_content: 'sign' }),
    completed(null),
  ];
  const ends = eventsOf(frames).flatMap((one) =>
    one.type.endsWith('-end') ? [[one.type, 'opaqueState' in one && one.opaqueState]] : [],
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

test('a custom tool’s input is raw text, and what it ends with is reported once', async () => {
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

test('pitfall 054: a tool of a namespace is reported with its namespace', () => {
  const names = new Map([['ns__f', { name: 'f', namespace: 'ns' }]]);
  const item = { type: 'function_call', call_id: 'c1', name: 'ns__f', arguments: '{}' };
  const [call] = endOf(streamOf(eventsOfReply({ output: [item] }, names)))['output'] as JsonObject[];
  assert.equal(call!['name'], 'f');
  assert.equal(call!['namespace'], 'ns');
});

test('pitfall 108: a refusal is reported as a refusal', () => {
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

test('pitfall 036: arguments that are no JSON, and pitfall 037: those that are no object, stay as they are', () => {
  for (const input of ['{"a":', '"abc"', '[1]']) {
    const item = { type: 'function_call', call_id: 'c', name: 'f', arguments: input };
    const events = eventsOfReply({ output: [item] });
    const [call] = endOf(streamOf(events))['output'] as JsonObject[];
    assert.equal(call!['arguments'], input);
  }
});

test('pitfall 106: text, call and text stay in their order', () => {
  const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] });
  const item = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const events = eventsOfReply({ output: [message('a'), item, message('b')] });
  const order = (endOf(streamOf(events))['output'] as JsonObject[]).map(({ type }) => type);
  assert.deepEqual(order, ['message', 'function_call', 'message']);
});

test('an end that lists the items in another order tells nothing twice', () => {
  const message = { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] };
  const item = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const frames = [added(0, item), done(0, item), textDelta('Hi', 2), done(2, message), completed([message, item])];
  const events = eventsOf(frames);
  assert.equal(types(events).filter((type) => type === 'text-delta').length, 1);
  assert.equal(types(events).filter((type) => type === 'tool-start').length, 1);
});

test('an annotation that comes after another item has spoken opens no text of its own', () => {
  const annotation = { type: 'url_citation', url: 'https://a.example', start_index: 0, end_index: 1 };
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const late = event('response.output_text.annotation.added', { output_index: 0, content_index: 0, annotation });
  const inTime = eventsOf([textDelta('Hi'), late, completed(null)]);
  assert.ok(types(inTime).includes('citation'));
  const tooLate = eventsOf([textDelta('Hi'), added(1, call), late, completed(null)]);
  assert.equal(types(tooLate).filter((type) => type === 'text-start').length, 1);
});

test('pitfall 032: a call without an id gets one that is the same in all its events', () => {
  const frames = [
    added(0, { type: 'function_call', name: 'f' }),
    event('response.function_call_arguments.delta', { output_index: 0, delta: '{}' }),
    done(0, { type: 'function_call', name: 'f', arguments: '{}' }),
    completed(null),
  ];
  const starts = eventsOf(frames).filter((one) => one.type === 'tool-start');
  assert.deepEqual(
    starts.map(({ id }) => id),
    ['call_seed_0'],
  );
});
