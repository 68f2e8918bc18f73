/** Keepsakes that clients drop: found again by account and call, for an hour, within bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplyEvents } from '../../../plugins/common/canonical/events.ts';
import type { Part, ToolCallPart, Turn } from '../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../plugins/common/canonical/reply.ts';
import { legalCallId } from '../../../plugins/common/encoding/tool-ids.ts';
import { SignatureCache } from '../../../plugins/protocol-convert/translate/signature-cache.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const keepsake = (value: string, maker = '') => ({ maker, value });
const call = (id: string, value?: string, input = '{"a":1,"b":2}'): ToolCallPart => ({
  kind: 'tool-call',
  id,
  name: 'read',
  input,
  ...(value === undefined ? {} : { opaqueState: keepsake(value) }),
});
const thought = (text: string, value?: string): Part => ({
  kind: 'reasoning',
  text,
  ...(value === undefined ? {} : { opaqueState: keepsake(value) }),
});
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const longId = 'call_0123456789abcdef';
const memoryOf = (options = {}) => {
  const host = fakeHost();
  return { host, memory: new SignatureCache(host.clock, options) };
};

test('pitfall 123: calls that come back alone get their reasoning and signatures back', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId, 'call sig'), call(`${longId}2`)]);
  const turn = assistant({ kind: 'text', text: 'ok' }, call(longId), call(`${longId}2`));
  const [recalled] = memory.recall('anna', [turn]);
  assert.deepEqual(recalled!.parts, [
    { kind: 'reasoning', text: 'hm', opaqueState: keepsake('sig', 'maker') },
    { kind: 'text', text: 'ok' },
    { ...call(longId), opaqueState: keepsake('call sig', 'maker') },
    call(`${longId}2`),
  ]);
});

test('nobody else is given them', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [assistant(call(longId))];
  assert.deepEqual(memory.recall('bert', turns), turns);
});

test('they are forgotten after an hour', () => {
  const { host, memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [assistant(call(longId))];
  host.advance(3_599_000);
  assert.equal(memory.recall('anna', turns)[0]!.parts.length, 2);
  host.advance(2_000);
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('a turn that brings any keepsake, or no call, stays as it is', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [
    assistant(thought('mine', 'x'), call(longId)),
    assistant({ kind: 'text', text: 'ok' }),
    { role: 'user', parts: [call(longId)] } as Turn,
  ];
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('reasoning that came back unsigned is replaced by what was signed', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const [recalled] = memory.recall('anna', [assistant(thought('hm, shortened'), call(longId))]);
  assert.deepEqual(recalled!.parts[0], { kind: 'reasoning', text: 'hm', opaqueState: keepsake('sig', 'maker') });
  assert.equal(recalled!.parts.length, 2);
});

test('answers that a client joined get each its own reasoning, in front of its call', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('one', 's1'), call(`${longId}1`)]);
  memory.remember('anna', 'maker', [thought('two', 's2'), call(`${longId}2`)]);
  const [recalled] = memory.recall('anna', [assistant(call(`${longId}1`), call(`${longId}2`))]);
  const drawn = recalled!.parts.map((part) => (part.kind === 'reasoning' ? part.text : (part as ToolCallPart).id));
  assert.deepEqual(drawn, ['one', `${longId}1`, 'two', `${longId}2`]);
});

test('an id that a client’s protocol did not take is found under the one it got', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call('functions.read:0|0123456789')]);
  const [recalled] = memory.recall('anna', [assistant(call(legalCallId('functions.read:0|0123456789', 'messages')))]);
  assert.equal(recalled!.parts.length, 2);
});

test('ids that are counters are told apart by their arguments, however these are worded', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('one', 's1'), call('call_0', undefined, '{"a":1,"b":2}')]);
  memory.remember('anna', 'maker', [thought('two', 's2'), call('call_0', undefined, '{"a":2}')]);
  const recall = (input: string) => memory.recall('anna', [assistant(call('call_0', undefined, input))])[0]!.parts[0];
  assert.equal((recall('{ "b": 2, "a": 1 }') as { text: string }).text, 'one');
  assert.equal((recall('{"a":2}') as { text: string }).text, 'two');
  assert.equal(recall('{"a":3}')!.kind, 'tool-call');
});

test('answers without anything signed are not remembered', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm'), call(longId)]);
  const turns = [assistant(call(longId))];
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('the memory stays within its bytes: the oldest go', () => {
  const { memory } = memoryOf({ maxBytes: 100_000 });
  const ids = Array.from({ length: 50 }, (_, index) => `${longId}_${index}`);
  for (const id of ids) memory.remember('anna', 'maker', [thought('x'.repeat(5_000), 'sig'), call(id)]);
  const found = ids.filter((id) => memory.recall('anna', [assistant(call(id))])[0]!.parts.length === 2);
  assert.ok(found.length >= 5 && found.length <= 10, String(found.length));
  assert.equal(found.at(-1), ids.at(-1));
});

test('a giant answer is not remembered', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('x'.repeat(1_000_001), 'sig'), call(longId)]);
  const turns = [assistant(call(longId))];
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('a stream is remembered like the answer it amounts to, each choice by itself', () => {
  const { memory } = memoryOf();
  const collector = memory.collector('anna', 'maker');
  const events = new ReplyEvents((event: Event) => collector.event(event), { names: new Map(), idSeed: 'x' });
  events.reasoning(0, 'h');
  events.reasoning(0, 'm');
  events.close(0, 'sig');
  events.redacted(0, 'hidden');
  events.text(0, 'words');
  events.call(0, 0, { id: longId, name: 'read', input: '{"a"' });
  events.call(0, 0, { input: ':1}' });
  events.endCall(0, 0, { opaqueState: 'call sig' });
  events.reasoning(1, 'other');
  events.close(1, 'other sig');
  events.call(1, 0, { id: 'c1', name: 'read', input: '{"a":1}' });
  const bare = [assistant(call(longId)), assistant(call('c1', undefined, '{"a":1}'))];
  assert.deepEqual(memory.recall('anna', bare), bare);
  events.stop(0, 'stop');
  events.stop(1, 'stop');
  const [first, second] = memory.recall('anna', bare);
  assert.deepEqual(first!.parts, [
    { kind: 'reasoning', text: 'hm', opaqueState: keepsake('sig', 'maker') },
    { kind: 'reasoning', text: '', opaqueState: keepsake('hidden', 'maker'), redacted: true },
    { ...call(longId), opaqueState: keepsake('call sig', 'maker') },
  ]);
  assert.equal(second!.parts.length, 2);
});
