import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { ToolCallPart } from '../../../../plugins/common/canonical/prompt.ts';
import { assertLegal } from '../../../helpers/event-rules.ts';
import { fc } from '../../../helpers/properties.ts';
import { eventsOf, replyOf } from './collect-events.ts';

const callsOf = (report: (events: ReplyEvents) => void) =>
  replyOf(report).choices[0]!.parts.filter((part): part is ToolCallPart => part.kind === 'tool-call');

test('interleaved fragments of parallel calls are put together by their key', () => {
  const calls = callsOf((events) => {
    events.call(0, 0, { id: 'a', name: 'one', input: '{"x"' });
    events.call(0, 1, { id: 'b', name: 'two', input: '{"y"' });
    events.call(0, 0, { input: ':1}' });
    events.call(0, 1, { input: ':2}' });
    events.stop(0, 'tool-calls');
  });
  assert.deepEqual(
    calls.map(({ id, name, input }) => [id, name, input]),
    [
      ['a', 'one', '{"x":1}'],
      ['b', 'two', '{"y":2}'],
    ],
  );
});

test('arguments that come before the name are emitted after it', () => {
  const events = eventsOf((reported) => {
    reported.call(0, 0, { id: 'a', input: '{"x"' });
    reported.call(0, 0, { name: 'one' });
    reported.call(0, 0, { input: ':1}' });
    reported.stop(0, 'stop');
  });
  assertLegal(events);
  assert.deepEqual(
    events.map((event) => event.type),
    ['reply-start', 'tool-start', 'tool-delta', 'tool-delta', 'tool-end', 'stop'],
  );
});

test('a call without arguments takes an empty object, a custom one an empty text', () => {
  const report = (custom: boolean) => (events: ReplyEvents) => {
    events.call(0, 0, { id: 'a', name: 'one', custom });
    events.stop(0, 'stop');
  };
  assert.equal(callsOf(report(false))[0]!.input, '{}');
  assert.equal(callsOf(report(true))[0]!.input, '');
});

test('a call without an id gets the same one each time', () => {
  const report = (events: ReplyEvents) => {
    events.call(0, 0, { name: 'one' });
    events.call(0, 1, { id: '', name: 'two' });
    events.stop(0, 'stop');
  };
  assert.deepEqual(
    callsOf(report).map(({ id }) => id),
    ['call_seed_0', 'call_seed_1'],
  );
});

test('a stop with calls is reported as tool calls, a length stop stays and cuts the open call', () => {
  const stopOf = (reason: 'stop' | 'length') =>
    replyOf((events) => {
      events.call(0, 0, { id: 'a', name: 'one', input: '{"x"' });
      events.stop(0, reason);
    }).choices[0]!;
  assert.equal(stopOf('stop').stop, 'tool-calls');
  assert.equal(stopOf('length').stop, 'length');
  assert.deepEqual([...stopOf('length').cutCalls], ['a']);
});

test('an answer that ends for tool calls and has none ends plainly, in each choice by itself', () => {
  const { choices } = replyOf((events) => {
    events.text(0, 'x');
    events.call(1, 0, { id: 'a', name: 'one', input: '{}' });
    for (const choice of [0, 1]) events.stop(choice, 'tool-calls');
  });
  assert.deepEqual(
    choices.map(({ stop }) => stop),
    ['stop', 'tool-calls'],
  );
});

test('the whole of the arguments fills only the gap that deltas left', () => {
  const calls = callsOf((events) => {
    events.call(0, 0, { id: 'a', name: 'one', input: '{"x"' });
    events.endCall(0, 0, { input: '{"x":1}' });
    events.call(0, 0, { input: 'too late' });
    events.stop(0, 'stop');
  });
  assert.equal(calls[0]!.input, '{"x":1}');
});

test('names go back to what the client declared', () => {
  const names = new Map([['ns__one', { name: 'one', namespace: 'ns' }]]);
  const [start] = eventsOf((events) => events.call(0, 0, { id: 'a', name: 'ns__one' }), { names }).slice(1);
  assert.deepEqual(start, {
    type: 'tool-start',
    block: 0,
    choice: 0,
    id: 'a',
    name: 'one',
    namespace: 'ns',
    custom: false,
  });
});

const step = fc.oneof(
  fc.record({ kind: fc.constant('text' as const), choice: fc.nat(1), text: fc.string({ maxLength: 5 }) }),
  fc.record({ kind: fc.constant('refusal' as const), choice: fc.nat(1), text: fc.string({ maxLength: 5 }) }),
  fc.record({ kind: fc.constant('reasoning' as const), choice: fc.nat(1), text: fc.string({ maxLength: 5 }) }),
  fc.record({ kind: fc.constant('close' as const), choice: fc.nat(1), text: fc.string({ maxLength: 5 }) }),
  fc.record({ kind: fc.constant('redacted' as const), choice: fc.nat(1), text: fc.string({ maxLength: 5 }) }),
  fc.record({
    kind: fc.constant('call' as const),
    choice: fc.nat(1),
    key: fc.nat(3),
    id: fc.option(fc.constantFrom('', 'a', 'b'), { nil: undefined }),
    name: fc.option(fc.constantFrom('', 'one', 'two'), { nil: undefined }),
    input: fc.option(fc.string({ maxLength: 5 }), { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('stop' as const), choice: fc.nat(1) }),
  fc.record({ kind: fc.constant('end-call' as const), choice: fc.nat(1), key: fc.nat(3) }),
);

test('whatever an upstream tells, the events are legal and no text is lost or reported twice', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let text = '';
      const stopped = new Set<number>();
      const events = eventsOf((reported) => {
        for (const one of steps) {
          if (one.kind === 'text') {
            reported.text(one.choice, one.text);
            if (!stopped.has(one.choice)) text += one.text;
          } else if (one.kind === 'stop') {
            reported.stop(one.choice, 'stop');
            stopped.add(one.choice);
          } else if (one.kind === 'refusal') reported.refusal(one.choice, one.text);
          else if (one.kind === 'reasoning') reported.reasoning(one.choice, one.text);
          else if (one.kind === 'close') reported.close(one.choice, one.text);
          else if (one.kind === 'redacted') reported.redacted(one.choice, one.text);
          else if (one.kind === 'call') reported.call(one.choice, one.key, one);
          else reported.endCall(one.choice, one.key);
        }
        for (const { choice } of steps) if (!stopped.has(choice)) reported.stop(choice, 'stop');
      });
      assertLegal(events);
      assert.equal(events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : [])).join(''), text);
    }),
  );
});

test('calls of one answer have different ids, whatever the upstream sends', () => {
  const ids = eventsOf((reported) => {
    reported.call(0, 0, { id: 'same', name: 'one' });
    reported.call(0, 1, { id: 'same', name: 'two' });
    reported.call(0, 2, { name: 'three' });
    reported.call(1, 0, { id: 'same', name: 'four' });
    reported.call(1, 1, { name: 'five' });
    for (const choice of [0, 1]) reported.stop(choice, 'tool-calls');
  }).flatMap((event) => (event.type === 'tool-start' ? [event.id] : []));
  assert.equal(ids[0], 'same');
  assert.equal(new Set(ids).size, 5, ids.join(' '));
});
