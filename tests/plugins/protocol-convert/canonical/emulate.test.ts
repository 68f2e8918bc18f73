import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import { assertLegal } from '../../../helpers/event-rules.ts';
import { fc } from '../../../helpers/properties.ts';
import { eventsOf, replyOf } from './collect-events.ts';

const textOf = (parts: readonly Part[]) => parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');

test('a free-text tool that was declared as a function gets its input out of the wrapper, escapes and all', () => {
  const { parts } = replyOf(
    (events) => {
      events.call(0, 0, { id: 'a', name: 'patch', input: '{"input":"line 1\\n' });
      events.call(0, 0, { input: '\\"two\\""}' });
      events.stop(0, 'stop');
    },
    { wrapped: new Set(['patch']) },
  ).choices[0]!;
  assert.deepEqual(parts, [{ kind: 'tool-call', id: 'a', name: 'patch', input: 'line 1\n"two"', custom: true }]);
});

test('a free-text call without its JSON wrapper is decoded as one with it', () => {
  const { parts } = replyOf(
    (events) => {
      events.call(0, 0, { id: 'a', name: 'patch', input: '*** Begin Patch' });
      events.stop(0, 'stop');
    },
    { wrapped: new Set(['patch']) },
  ).choices[0]!;
  assert.equal(parts[0]?.kind === 'tool-call' && parts[0].input, '*** Begin Patch');
});

test('pitfall 092: an answer through a forced tool comes as text, and its end is no tool call', () => {
  const choice = replyOf(
    (events) => {
      events.call(0, 0, { id: 'a', name: 'answer', input: '{"n":' });
      events.call(0, 0, { input: '1}' });
      events.stop(0, 'tool-calls');
    },
    { answerTool: 'answer' },
  ).choices[0]!;
  assert.deepEqual(choice.parts, [{ kind: 'text', text: '{"n":1}' }]);
  assert.equal(choice.stop, 'stop');
});

test('hidden reasoning keeps its block, for what it signs, and loses its text', () => {
  const events = eventsOf(
    (reported) => {
      reported.reasoning(0, 'secret thought');
      reported.close(0, 'signature');
      reported.text(0, 'hello');
      reported.stop(0, 'stop');
    },
    { hideReasoning: true },
  );
  assertLegal(events);
  assert.ok(!JSON.stringify(events).includes('secret thought'));
  assert.ok(JSON.stringify(events).includes('signature'));
});

test('an answer ends at the first stop text, wherever the stream was cut', () => {
  const answer = fc.string({ maxLength: 40, unit: fc.constantFrom('a', 'b', 'E', 'N', 'D', ' ') });
  const stops = fc.constantFrom(['END'], ['END', 'a b'], ['bb', 'ND'], ['ENDE', 'DE']);
  fc.assert(
    fc.property(answer, stops, fc.array(fc.nat(40), { maxLength: 8 }), (text, stop, cuts) => {
      const places = [0, ...cuts.filter((cut) => cut < text.length).sort((one, two) => one - two), text.length];
      const events = eventsOf(
        (reported) => {
          for (let at = 1; at < places.length; at++) reported.text(0, text.slice(places[at - 1], places[at]));
          reported.call(0, 0, { id: 'late', name: 'tool' });
          reported.stop(0, 'length');
        },
        { stop },
      );
      const hits = stop.map((word) => [text.indexOf(word), word] as const).filter(([at]) => at !== -1);
      const first = hits.sort(([one], [two]) => one - two)[0];
      const reported = events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : [])).join('');
      const end = events.at(-1)!;
      assert.equal(reported, first === undefined ? text : text.slice(0, first[0]));
      assert.equal(end.type === 'stop' && end.reason, first === undefined ? 'length' : 'stop-sequence');
      assert.equal(
        events.some((event) => event.type === 'tool-start'),
        first === undefined,
      );
      assert.equal(textOf([]), '');
    }),
  );
});
