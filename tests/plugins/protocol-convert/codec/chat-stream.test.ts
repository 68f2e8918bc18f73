/** Chat streams from upstreams: whatever dialect they are written in, they become legal events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collected } from '../canonical/collect-events.ts';
import { call, calls, deltas, parts, stopOf, streamEvents } from './chat-harness.ts';

test('pitfall 027: interleaved arguments of parallel calls are put together by index', () => {
  const events = deltas(
    [
      call(0, 'a', 'f', ''),
      call(1, 'b', 'g', ''),
      call(0, undefined, undefined, '{"x"'),
      call(1, undefined, undefined, '{"y"'),
      call(0, undefined, undefined, ':1}'),
      call(1, undefined, undefined, ':2}'),
    ],
    'tool_calls',
  );
  assert.deepEqual(calls(events), [
    ['a', 'f', '{"x":1}'],
    ['b', 'g', '{"y":2}'],
  ]);
});

test('pitfall 029: a new id with a name begins a new call although the index is always 0', () => {
  const events = deltas([call(0, 'a', 'f', '{"x":1}'), call(0, 'b', 'f', '{"x":2}'), call(0, 'b', undefined, ' ')]);
  assert.deepEqual(calls(events), [
    ['a', 'f', '{"x":1}'],
    ['b', 'f', '{"x":2} '],
  ]);
});

test('pitfall 030: arguments that come before the name wait for it', () => {
  const events = deltas([
    call(0, 'a', undefined, '{"x"'),
    call(0, undefined, 'f', ':1'),
    call(0, undefined, undefined, '}'),
  ]);
  assert.deepEqual(calls(events), [['a', 'f', '{"x":1}']]);
});

test('pitfall 031: an empty id or name in later pieces overwrites nothing', () => {
  const events = deltas([call(0, 'a', 'f', '{"x"'), call(0, '', '', ':1}')]);
  assert.deepEqual(calls(events), [['a', 'f', '{"x":1}']]);
});

test('pitfall 032: a call without an id gets one, the same in all of its events', () => {
  const events = deltas([call(0, undefined, 'f', '{}'), call(1, undefined, 'g', '{}')]);
  assert.deepEqual(
    calls(events).map(([id]) => id),
    ['call_s_0', 'call_s_1'],
  );
});

test('pitfall 033: a call whose type is null is a function', () => {
  const events = deltas([
    { tool_calls: [{ index: 0, id: 'a', type: null, function: { name: 'f', arguments: '{}' } }] },
  ]);
  assert.equal(parts(events)[0]!.custom, undefined);
});

test('pitfall 034: arguments that can be parsed already may still go on', () => {
  assert.deepEqual(calls(deltas([call(0, 'a', 'f', '{"x":1}'), call(0, undefined, undefined, ' ')])), [
    ['a', 'f', '{"x":1} '],
  ]);
});

test('pitfall 035: a tool without parameters is called with an empty object', () => {
  for (const nothing of ['', null, undefined])
    assert.deepEqual(calls(deltas([call(0, 'a', 'f', nothing)])), [['a', 'f', '{}']]);
});

test('pitfall 036: arguments that are no JSON go through as they are', () => {
  assert.deepEqual(calls(deltas([call(0, 'a', 'f', '{x:')])), [['a', 'f', '{x:']]);
});

test('pitfall 037: arguments that are a scalar or a list stay what they are, and an object becomes its text', () => {
  assert.deepEqual(
    calls(deltas([call(0, 'a', 'f', '"abc"'), call(1, 'b', 'f', '[1]'), call(2, 'c', 'f', { x: 1 })])).map(
      ([, , input]) => input,
    ),
    ['"abc"', '[1]', '{"x":1}'],
  );
});

test('pitfall 045: a wrapper of parallel calls becomes the calls it holds', () => {
  const uses = {
    tool_uses: [
      { recipient_name: 'functions.f', parameters: { x: 1 } },
      { recipient_name: 'functions.g', parameters: {} },
    ],
  };
  const text = JSON.stringify(uses);
  const events = deltas(
    [call(0, 'a', 'multi_tool_use.parallel', text.slice(0, 20)), call(0, undefined, undefined, text.slice(20))],
    'tool_calls',
  );
  assert.deepEqual(calls(events), [
    ['a_0', 'f', '{"x":1}'],
    ['a_1', 'g', '{}'],
  ]);
  assert.equal(stopOf(events), 'tool-calls');
});

test('pitfall 046: a bound that is reached inside arguments cuts this call alone, and the reason stays', () => {
  const events = deltas([call(0, 'a', 'f', '{}'), call(1, 'b', 'g', '{"x')], 'length');
  const choice = collected(events).choices[0]!;
  assert.deepEqual([choice.stop, [...choice.cutCalls]], ['length', ['b']]);
});

test('pitfall 049: content that is null beside calls opens no text', () => {
  assert.deepEqual(
    parts(deltas([{ role: 'assistant', content: null, ...call(0, 'a', 'f', '{}') }])).map(({ kind }) => kind),
    ['tool-call'],
  );
});

test('pitfall 062: arguments in many pieces arrive whole', () => {
  const text = JSON.stringify({ path: '/tmp/ä.txt', lines: [1, 2, 3], nested: { quote: '"' } });
  assert.deepEqual(
    calls(deltas([call(0, 'a', 'f', ''), ...[...text].map((letter) => call(0, undefined, undefined, letter))])),
    [['a', 'f', text]],
  );
});

test('pitfall 130: reasoning that comes after text has begun is a block of its own', () => {
  assert.deepEqual(
    parts(deltas([{ content: 'A' }, { reasoning: 'B' }, { content: 'C' }])).map(({ kind, text }) => [kind, text]),
    [
      ['text', 'A'],
      ['reasoning', 'B'],
      ['text', 'C'],
    ],
  );
});

test('pitfall 138: an answer of reasoning alone is an answer', () => {
  assert.deepEqual([parts(deltas([{ reasoning: 'Hm' }])).length, stopOf(deltas([{ reasoning: 'Hm' }]))], [1, 'stop']);
});

test('pitfall 139: calls make the reason, whatever the upstream says', () => {
  assert.equal(stopOf(deltas([call(0, 'a', 'f', '{}')], 'stop')), 'tool-calls');
  assert.equal(stopOf(deltas([{ content: 'Hi' }], 'tool_calls')), 'stop');
});

test('pitfall 140: upper-case reasons of another protocol are understood', () => {
  const reasons = {
    SAFETY: 'refusal',
    MAX_TOKENS: 'length',
    STOP: 'stop',
    RECITATION: 'refusal',
    'content_filter: PROHIBITED_CONTENT': 'refusal',
    SOMETHING_NEW: 'stop',
  };
  for (const [word, reason] of Object.entries(reasons)) assert.equal(stopOf(deltas([{ content: 'Hi' }], word)), reason);
});

test('pitfall 141: STOP with a call ends as a tool call', () => {
  assert.equal(stopOf(deltas([call(0, 'a', 'f', '{}')], 'STOP')), 'tool-calls');
});

test('pitfall 142: MAX_TOKENS ends as a stop for length', () => {
  assert.equal(stopOf(deltas([{ content: 'Hi' }], 'MAX_TOKENS')), 'length');
});

test('pitfall 143: a choice without content is an empty answer with its reason', () => {
  const events = streamEvents([{ id: 'x', choices: [{ index: 0, finish_reason: 'SAFETY' }] }]);
  assert.deepEqual(
    collected(events).choices.map(({ parts: sent, stop }) => [sent.length, stop]),
    [[0, 'refusal']],
  );
});

test('pitfall 146: a call that its server could not read is not handed on as one to carry out', () => {
  const choice = collected(deltas([call(0, 'a', 'f', '{}')], 'function_call_filter: MALFORMED_FUNCTION_CALL'))
    .choices[0]!;
  assert.deepEqual([choice.stop, [...choice.cutCalls]], ['length', ['a']]);
  assert.equal(stopOf(deltas([], 'MALFORMED_FUNCTION_CALL')), 'refusal');
});

test('pitfall 149: the text that was hit learns where a server names it', () => {
  const chunk = (rest: object) =>
    streamEvents([
      { choices: [{ index: 0, delta: { content: 'Hi' } }] },
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...rest }] },
    ]);
  for (const rest of [{ stop_reason: 'END' }, { matched_stop: 'END' }]) {
    const choice = collected(chunk(rest)).choices[0]!;
    assert.deepEqual([choice.stop, choice.sequence], ['stop-sequence', 'END']);
  }
  for (const rest of [{ stop_reason: 42 }, { matched_stop: null }, { stop_reason: 'end_turn' }])
    assert.equal(collected(chunk(rest)).choices[0]!.stop, 'stop');
});

test('pitfall 011: a stream without a reason for an open choice ends as a stop', () => {
  const events = streamEvents([{ id: 'x', choices: [{ index: 0, delta: { content: 'Hi' } }] }]);
  assert.equal(stopOf(events), 'stop');
});

test('pitfall 158: what comes after a reason still belongs to the answer', () => {
  const chunk = (delta: object, finish_reason: string | null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  const events = streamEvents([chunk(call(0, 'a', 'f', '{}'), 'tool_calls'), chunk(call(1, 'b', 'g', '{}'), null)]);
  assert.equal(calls(events).length, 2);
});

test('encrypted reasoning without words is a redacted block before what follows it', () => {
  const events = deltas([
    { reasoning_details: [{ type: 'reasoning.encrypted', data: 'ENC', index: 0 }] },
    call(0, 'a', 'f', '{}'),
  ]);
  assert.deepEqual(
    parts(events).map(({ kind, redacted }) => [kind, redacted]),
    [
      ['reasoning', true],
      ['tool-call', undefined],
    ],
  );
});

test('a signature on a call or a text is kept as its vendor wrote it', () => {
  const extra_content = { google: { thought_signature: 'SIG' } };
  const events = deltas([
    { content: 'Hi', extra_content },
    { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' }, extra_content }] },
  ]);
  assert.deepEqual(
    parts(events).map((part) => JSON.parse(part.opaqueState!.value)),
    [extra_content, extra_content],
  );
});

test('malformed chunks are skipped, none throws', () => {
  const odd = [
    {},
    { choices: null },
    { choices: [null, 7, 'x'] },
    { choices: [{ index: -1, delta: { content: 'a' } }] },
    { choices: [{ delta: null }] },
    {
      choices: [
        {
          delta: {
            tool_calls: [null, {}, 3],
            images: [{}],
            audio: 5,
            annotations: [{}],
            content: [null, 3],
            reasoning_details: [1],
            function_call: 'x',
            extra_content: 1,
          },
        },
      ],
    },
  ];
  assert.equal(collected(streamEvents(odd)).choices[0]!.stop, 'stop');
});
