/** Opaque state that clients drop: found again by account, conversation and call, for an hour, within bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplyEvents } from '../../../plugins/common/canonical/events.ts';
import type { Part, ToolCallPart, Turn } from '../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../plugins/common/canonical/reply.ts';
import { legalCallId } from '../../../plugins/common/encoding/tool-ids.ts';
import { ConversationDigest } from '../../../plugins/protocol-convert/translate/conversation-digest.ts';
import { SignatureCache } from '../../../plugins/protocol-convert/translate/signature-cache.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const opaqueState = (value: string, maker = '') => ({ maker, value });
const call = (id: string, value?: string, input = '{"a":1,"b":2}'): ToolCallPart => ({
  kind: 'tool-call',
  id,
  name: 'read',
  input,
  ...(value === undefined ? {} : { opaqueState: opaqueState(value) }),
});
const thought = (text: string, value?: string): Part => ({
  kind: 'reasoning',
  text,
  ...(value === undefined ? {} : { opaqueState: opaqueState(value) }),
});
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const longId = 'call_0123456789abcdef';
const memoryOf = (options = {}) => {
  const host = fakeHost();
  const cache = new SignatureCache(host.clock, options);
  const memory = {
    remember: (account: string, maker: string, parts: readonly Part[], before: readonly Turn[] = []) =>
      cache.remember(account, maker, new ConversationDigest(before).end(), parts),
    recall: (account: string, turns: readonly Turn[], maker = 'maker') =>
      cache.recall(account, maker, turns, new ConversationDigest(turns)),
    collector: (account: string, maker: string) => cache.collector(account, maker, new ConversationDigest([]).end()),
  };
  return { host, memory };
};
const user = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
const system = (text: string): Turn => ({ role: 'system', parts: [{ kind: 'text', text }] });
const result = (callId: string, text: string): Turn => ({
  role: 'user',
  parts: [{ kind: 'tool-result', callId, parts: [{ kind: 'text', text }] }],
});
const thoughtIn = (turn: Turn | undefined) =>
  turn?.parts.flatMap((part) => (part.kind === 'reasoning' ? [part.text] : [])).join();

test('pitfall 123: calls that come back alone get their reasoning and signatures back', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId, 'call sig'), call(`${longId}2`)]);
  const turn = assistant({ kind: 'text', text: 'ok' }, call(longId), call(`${longId}2`));
  const [recalled] = memory.recall('anna', [turn]);
  assert.deepEqual(recalled!.parts, [
    { kind: 'reasoning', text: 'hm', opaqueState: opaqueState('sig', 'maker') },
    { kind: 'text', text: 'ok' },
    { ...call(longId), opaqueState: opaqueState('call sig', 'maker') },
    call(`${longId}2`),
  ]);
});

test('other accounts do not get the remembered signatures', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [assistant(call(longId))];
  assert.deepEqual(memory.recall('bert', turns), turns);
});

test('remembered signatures are forgotten after an hour', () => {
  const { host, memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [assistant(call(longId))];
  host.advance(3_599_000);
  assert.equal(memory.recall('anna', turns)[0]!.parts.length, 2);
  host.advance(2_000);
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('a turn with any opaque state, or without a call, stays unchanged', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const turns = [
    assistant(thought('mine', 'x'), call(longId)),
    assistant({ kind: 'text', text: 'ok' }),
    { role: 'user', parts: [call(longId)] } as Turn,
  ];
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('reasoning that came back unsigned is replaced by the signed one', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('hm', 'sig'), call(longId)]);
  const [recalled] = memory.recall('anna', [assistant(thought('hm, shortened'), call(longId))]);
  assert.deepEqual(recalled!.parts[0], { kind: 'reasoning', text: 'hm', opaqueState: opaqueState('sig', 'maker') });
  assert.equal(recalled!.parts.length, 2);
});

test('answers to one conversation that a client joined get each its own reasoning, in front of its call', () => {
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

test('a call is found again however its arguments are encoded, and not with others', () => {
  const { memory } = memoryOf();
  memory.remember('anna', 'maker', [thought('one', 's1'), call('call_0', undefined, '{"a":1,"b":2}')]);
  memory.remember('anna', 'maker', [thought('two', 's2'), call('call_0', undefined, '{"a":2}')]);
  const recall = (input: string) => memory.recall('anna', [assistant(call('call_0', undefined, input))])[0]!.parts[0];
  assert.equal((recall('{ "b": 2, "a": 1 }') as { text: string }).text, 'one');
  assert.equal((recall('{"a":2}') as { text: string }).text, 'two');
  assert.equal(recall('{"a":3}')!.kind, 'tool-call');
});

const image = (base64: string): Turn => ({
  role: 'user',
  parts: [{ kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64 } }],
});
const counted = 'functions.list_directory:1';
const earlier = [user('Go'), assistant(call('functions.read:0')), result('functions.read:0', 'A')];
/** Pairs of conversations that differ in one thing. */
const apart: Record<string, [Turn[], Turn[]]> = {
  'the words of the user': [[user('A')], [user('B')]],
  'the system prompt': [
    [system('A'), user('Go')],
    [system('B'), user('Go')],
  ],
  'a result': [earlier, [...earlier.slice(0, 2), result('functions.read:0', 'B')]],
  'the arguments of an earlier call': [
    earlier,
    [user('Go'), assistant(call('functions.read:0', undefined, '{"a":3}')), earlier[2]!],
  ],
  'the words of the assistant': [
    [user('Go'), assistant({ kind: 'text', text: 'A' }), user('On')],
    [user('Go'), assistant({ kind: 'text', text: 'B' }), user('On')],
  ],
  'where a text ends': [
    [user('ab'), user('c')],
    [user('a'), user('bc')],
  ],
  'the speaker': [[user('A')], [system('A')]],
  'an image': [[image('QUFB')], [image('QkJC')]],
  'a later turn': [[user('A')], [user('A'), user('A')]],
};

for (const [difference, [one, other]] of Object.entries(apart)) {
  test(`conversations that differ in ${difference} get each its own reasoning for calls with the same id`, () => {
    const { memory } = memoryOf();
    memory.remember('anna', 'maker', [thought('PRIVATE-A', 's1'), call(counted)], one);
    assert.equal(thoughtIn(memory.recall('anna', [...other, assistant(call(counted))]).at(-1)), '');
    memory.remember('anna', 'maker', [thought('PRIVATE-B', 's2'), call(counted)], other);
    assert.equal(thoughtIn(memory.recall('anna', [...one, assistant(call(counted))]).at(-1)), 'PRIVATE-A');
    assert.equal(thoughtIn(memory.recall('anna', [...other, assistant(call(counted))]).at(-1)), 'PRIVATE-B');
  });
}

test('a call id that comes again within a conversation leaves each turn its own reasoning', () => {
  const { memory } = memoryOf();
  const said = assistant(call(counted));
  memory.remember('anna', 'maker', [thought('first', 's1'), call(counted)], [user('Go')]);
  memory.remember('anna', 'maker', [thought('second', 's2'), call(counted)], [user('Go'), said, result(counted, 'x')]);
  const turns = memory.recall('anna', [user('Go'), said, result(counted, 'x'), said, result(counted, 'x')]);
  assert.equal(thoughtIn(turns[1]), 'first');
  assert.equal(thoughtIn(turns[3]), 'second');
});

test('two answers to one conversation with the same call give neither its reasoning: it may be that of the other', () => {
  const { memory } = memoryOf();
  const turns = [user('Go'), assistant(call(counted))];
  for (const text of ['one', 'two', 'one'])
    memory.remember('anna', 'maker', [thought(text, text), call(counted)], [user('Go')]);
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('an answer without reasoning also makes such a call ambiguous', () => {
  const { memory } = memoryOf();
  const turns = [user('Go'), assistant(call(counted))];
  memory.remember('anna', 'maker', [thought('one', 'one'), call(counted)], [user('Go')]);
  memory.remember('anna', 'maker', [call(counted)], [user('Go')]);
  assert.deepEqual(memory.recall('anna', turns), turns);
});

test('makers that answered the same with the same call get their own reasoning each, and none that of another', () => {
  const { memory } = memoryOf();
  const turns = [user('Go'), assistant(call(counted))];
  const recall = (maker: string) => thoughtIn(memory.recall('anna', turns, maker)[1]);
  memory.remember('anna', 'one', [thought('of one', 's1'), call(counted)], [user('Go')]);
  assert.equal(recall('other'), 'of one', 'a failover goes on with the only answer that there was');
  memory.remember('anna', 'two', [thought('of two', 's2'), call(counted)], [user('Go')]);
  assert.deepEqual([recall('one'), recall('two'), recall('other')], ['of one', 'of two', '']);
  memory.remember('anna', 'two', [thought('again', 's3'), call(counted)], [user('Go')]);
  assert.deepEqual([recall('one'), recall('two')], ['of one', '']);
});

test('an answer without reasoning that came first also makes such a call ambiguous, in the order of any makers', () => {
  for (const [first, second] of [
    ['maker', 'maker'],
    ['one', 'two'],
  ] as const) {
    const { memory } = memoryOf();
    const turns = [user('Go'), assistant(call(counted))];
    memory.remember('anna', first, [call(counted)], [user('Go')]);
    memory.remember('anna', second, [thought('PRIVATE', 's1'), call(counted)], [user('Go')]);
    for (const maker of [first, second, 'other']) assert.deepEqual(memory.recall('anna', turns, maker), turns);
    memory.remember('anna', second, [thought('PRIVATE', 's1'), call(counted)], [user('Other')]);
    assert.equal(thoughtIn(memory.recall('anna', [user('Other'), turns[1]!], second)[1]), 'PRIVATE');
  }
});

test('an answer of one maker without reasoning leaves all makers none of what others answered', () => {
  const { memory } = memoryOf();
  const turns = [user('Go'), assistant(call(counted))];
  memory.remember('anna', 'one', [thought('of one', 's1'), call(counted)], [user('Go')]);
  memory.remember('anna', 'two', [call(counted)], [user('Go')]);
  const recall = (maker: string) => thoughtIn(memory.recall('anna', turns, maker)[1]);
  assert.deepEqual([recall('one'), recall('two'), recall('other')], ['', '', '']);
});

test('arguments of earlier calls that a client writes in another form keep the conversation the same', () => {
  const { memory } = memoryOf();
  const past = (input: string): Turn[] => [user('Go'), assistant(call('one', undefined, input)), result('one', 'x')];
  memory.remember('anna', 'maker', [thought('hm', 's1'), call(counted)], past('{"a":1,"b":{"c":"é","d":[1.0]}}'));
  const recall = (input: string) => thoughtIn(memory.recall('anna', [...past(input), assistant(call(counted))]).at(-1));
  assert.equal(recall('{ "b": {"d": [1], "c": "\\u00e9"}, "a": 1 }'), 'hm');
  assert.equal(recall('{"a":1,"b":{"c":"é","d":["1"]}}'), '');
  assert.equal(recall('['.repeat(200_000)), '', 'however deep they are');
});

test('members that clients leave out, rename or split between requests change nothing', () => {
  const { memory } = memoryOf();
  const before: Turn[] = [
    {
      role: 'user',
      parts: [
        { kind: 'text', text: 'a', cache: 'short' },
        { kind: 'text', text: 'b' },
      ],
    },
    assistant(thought('hm', 'x'), { kind: 'text', text: 'ok' }, call('one', 'signed')),
    result('one', 'x'),
  ];
  const later: Turn[] = [
    user('a'),
    user('b'),
    assistant({ kind: 'text', text: 'ok' }),
    assistant(call('two')),
    result('two', 'x'),
    assistant({ kind: 'text', text: 'I look.' }),
    assistant(call(counted)),
  ];
  memory.remember('anna', 'maker', [thought('one', 's1'), call(counted)], before);
  assert.equal(thoughtIn(memory.recall('anna', later).at(-1)), 'one');
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
  const bare = [assistant(call(longId, undefined, '{"a":1}')), assistant(call('c1', undefined, '{"a":1}'))];
  assert.deepEqual(memory.recall('anna', bare), bare);
  events.stop(0, 'stop');
  events.stop(1, 'stop');
  const [first, second] = memory.recall('anna', bare);
  assert.deepEqual(first!.parts, [
    { kind: 'reasoning', text: 'hm', opaqueState: opaqueState('sig', 'maker') },
    { kind: 'reasoning', text: '', opaqueState: opaqueState('hidden', 'maker'), redacted: true },
    { ...call(longId, undefined, '{"a":1}'), opaqueState: opaqueState('call sig', 'maker') },
  ]);
  assert.equal(second!.parts.length, 2);
});
