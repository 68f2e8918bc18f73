/** Histories: results beside their calls, roles in turn, nothing empty, and no words lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part, ToolCallPart, ToolResultPart, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import {
  callsById,
  mergedTurns,
  noOutputText,
  noResultText,
  pairedTurns,
  withoutEmpty,
} from '../../../../plugins/common/encoding/history.ts';
import { fc } from '../../../helpers/properties.ts';

const text = (words: string): Part => ({ kind: 'text', text: words });
const call = (id: string, name = 'tool'): ToolCallPart => ({ kind: 'tool-call', id, name, input: '{}' });
const result = (callId: string, words = `result of ${callId}`): ToolResultPart => ({
  kind: 'tool-result',
  callId,
  parts: words === '' ? [] : [{ kind: 'text', text: words }],
});
const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const system = (...parts: Part[]): Turn => ({ role: 'system', parts });
/** `u:r(a)r(b)hello` and the like. */
const drawn = (turns: readonly Turn[]) => turns.map((turn) => `${turn.role[0]}:${turn.parts.map(drawnPart).join(' ')}`);
function drawnPart(part: Part): string {
  if (part.kind === 'tool-call') return `c(${part.id})`;
  if (part.kind === 'tool-result') return `r(${part.callId}=${part.parts.map(drawnPart).join('+')})`;
  return part.kind === 'text' ? part.text : part.kind;
}

test('pitfall 056: three results in three turns become one turn, in the order of the calls', () => {
  const turns = [assistant(call('a'), call('b'), call('c')), user(result('c')), user(result('a')), user(result('b'))];
  assert.deepEqual(drawn(pairedTurns(turns)), [
    'a:c(a) c(b) c(c)',
    'u:r(a=result of a) r(b=result of b) r(c=result of c)',
  ]);
});

test('pitfall 057: a result too few is made up, a result too many is left out', () => {
  const turns = [assistant(call('a'), call('b')), user(result('a'), result('z'))];
  assert.deepEqual(drawn(pairedTurns(turns)), ['a:c(a) c(b)', `u:r(a=result of a) r(b=${noResultText})`]);
});

test('pitfall 058: what the user says stands after the results', () => {
  const turns = [assistant(call('a')), user(text('hello'), result('a'), text('more'))];
  assert.deepEqual(drawn(pairedTurns(turns)), ['a:c(a)', 'u:r(a=result of a) hello more']);
});

test('pitfall 059: of two results for a call the last counts', () => {
  const turns = [assistant(call('a')), user(result('a', 'old'), result('a', 'new'))];
  assert.deepEqual(drawn(pairedTurns(turns)), ['a:c(a)', 'u:r(a=new)']);
});

test('pitfall 060: a result without a call is left out, a call without a result gets one', () => {
  const turns = [user(result('z'), text('hi')), assistant(text('ok'), call('a')), user(text('next'))];
  assert.deepEqual(drawn(pairedTurns(turns)), ['u:hi', 'a:ok c(a)', `u:r(a=${noResultText}) next`]);
});

test('pitfall 060: a result that stands before its call is dropped', () => {
  const turns = [user(result('a')), assistant(call('a'))];
  assert.deepEqual(drawn(pairedTurns(turns)), ['a:c(a)', `u:r(a=${noResultText})`]);
});

test('a call at the very end gets a made-up result', () => {
  assert.deepEqual(drawn(pairedTurns([assistant(call('a'))])), ['a:c(a)', `u:r(a=${noResultText})`]);
});

test('results that come late move to their calls; a system turn between stays behind them', () => {
  const turns = [assistant(call('a')), system(text('rule')), assistant(call('b')), user(result('b'), result('a'))];
  assert.deepEqual(drawn(pairedTurns(turns)), [
    'a:c(a)',
    'u:r(a=result of a)',
    's:rule',
    'a:c(b)',
    'u:r(b=result of b)',
  ]);
});

test('pitfall 063: empty and repeated ids are made up again, on both sides and alike each time', () => {
  const turns = [
    assistant(call('', 'x'), call('', 'y')),
    user(result('', 'one'), result('', 'two')),
    assistant(call('call_0')),
    user(result('call_0', 'three')),
    assistant(call('call_0')),
    user(result('call_0', 'four')),
  ];
  const paired = pairedTurns(turns);
  assert.deepEqual(pairedTurns(turns), paired);
  const calls = paired.flatMap((turn) => turn.parts.filter((part) => part.kind === 'tool-call'));
  const results = paired.flatMap((turn) => turn.parts.filter((part) => part.kind === 'tool-result'));
  assert.equal(new Set(calls.map(({ id }) => id)).size, 4);
  assert.ok(calls.every(({ id }) => id !== ''));
  assert.equal(calls[2]!.id, 'call_0');
  assert.deepEqual(
    results.map((part) => [part.callId, drawnPart(part.parts[0]!)]),
    calls.map(({ id }, index) => [id, ['one', 'two', 'three', 'four'][index]]),
  );
});

test('pitfall 066: a result without content becomes a text', () => {
  for (const empty of [result('a', ''), { ...result('a'), parts: [{ kind: 'text', text: '' }] } as ToolResultPart]) {
    const turns = pairedTurns([assistant(call('a')), user(empty)]);
    assert.deepEqual(drawn(turns), ['a:c(a)', `u:r(a=${noOutputText})`]);
  }
});

test('a result learns the name of its tool, and a made-up one its kind', () => {
  const custom = { ...call('b', 'patch'), custom: true };
  const [, answers] = pairedTurns([assistant(call('a', 'read'), custom), user(result('a'))]);
  const [one, other] = answers!.parts as ToolResultPart[];
  assert.equal(one!.name, 'read');
  assert.deepEqual([other!.name, other!.custom], ['patch', true]);
});

test('errors and marks of a result stay', () => {
  const failed = { ...result('a'), isError: true, cache: 'long' as const };
  const [, answers] = pairedTurns([assistant(call('a')), user(failed)]);
  assert.deepEqual(answers!.parts[0], { ...failed, name: 'tool' });
});

test('a participant’s turn does not take in another’s', () => {
  const anna: Turn = { ...user(text('hi')), name: 'anna' };
  const bert: Turn = { ...user(text('ho')), name: 'bert' };
  const paired = pairedTurns([assistant(call('a')), user(result('a')), anna, bert]);
  assert.deepEqual(drawn(paired), ['a:c(a)', 'u:r(a=result of a) hi', 'u:ho']);
  assert.deepEqual([paired[1]!.name, paired[2]!.name], ['anna', 'bert']);
});

test('callsById finds the name of a result’s tool', () => {
  assert.equal(callsById([assistant(call('a', 'read'))]).get('a')?.name, 'read');
});

test('pitfall 096: neighbours of one role become one turn, system turns stay apart', () => {
  const turns = [system(text('1')), system(text('2')), user(text('a')), user(text('b')), assistant(text('c'))];
  assert.deepEqual(drawn(mergedTurns(turns)), ['s:1', 's:2', 'u:a b', 'a:c']);
});

test('a merged turn keeps a name or phase that all have', () => {
  const turn = (name: string, words: string): Turn => ({ role: 'user', name, parts: [text(words)] });
  assert.equal(mergedTurns([turn('anna', 'a'), turn('anna', 'b')])[0]!.name, 'anna');
  assert.equal(mergedTurns([turn('anna', 'a'), turn('bert', 'b')])[0]!.name, undefined);
});

test('pitfall 098: texts that say nothing go, and turns that are left empty', () => {
  const turns = [user(text('')), assistant(text(''), text('a'), { kind: 'refusal', text: '' }), user(text(' '))];
  assert.deepEqual(drawn(withoutEmpty(turns)), ['a:a', 'u: ']);
  assert.deepEqual(drawn(withoutEmpty(turns, { blanks: true })), ['a:a']);
});

test('pitfall 099: a cache mark on an empty text moves to the part before it', () => {
  const marked = { kind: 'text', text: '', cache: 'short' } as const;
  assert.deepEqual(withoutEmpty([user(text('a'), marked)])[0]!.parts, [{ kind: 'text', text: 'a', cache: 'short' }]);
  const [before] = withoutEmpty([user(text('a')), assistant(marked)]);
  assert.deepEqual(before!.parts, [{ kind: 'text', text: 'a', cache: 'short' }]);
  const long = { kind: 'text', text: 'a', cache: 'long' } as const;
  assert.deepEqual(withoutEmpty([user(long, marked)])[0]!.parts, [long]);
  assert.deepEqual(withoutEmpty([user(marked)]), []);
});

test('empty texts inside results go, and their mark moves to the result', () => {
  const full = { ...result('a'), parts: [{ kind: 'text', text: '', cache: 'long' }] } as ToolResultPart;
  assert.deepEqual(withoutEmpty([user(full)])[0]!.parts, [{ ...full, parts: [], cache: 'long' }]);
});

test('pitfall 121: an empty text or thought with a signature stays', () => {
  const opaqueState = { maker: 'm', value: 's' };
  const turns = [
    assistant(
      { kind: 'text', text: '', opaqueState: opaqueState },
      { kind: 'reasoning', text: '', opaqueState: opaqueState },
    ),
  ];
  assert.deepEqual(withoutEmpty(turns), turns);
});

const id = fc.constantFrom('', 'a', 'b', 'c');
const anyPart = fc.oneof(
  fc.string({ maxLength: 3 }).map(text),
  id.map((name) => call(name)),
  fc.tuple(id, fc.string({ maxLength: 2 })).map(([name, words]) => result(name, words)),
);
const anyTurns = fc.array(
  fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), parts: fc.array(anyPart, { maxLength: 4 }) }),
  { maxLength: 8 },
);
const texts = (turns: readonly Turn[]) =>
  turns.flatMap((turn) => turn.parts.filter((part) => part.kind === 'text').map((part) => part.text));

test('every call has one result right behind its turn, in order, ids are unique, and no text is lost or moved', () => {
  fc.assert(
    fc.property(anyTurns, (turns) => {
      const paired = pairedTurns(turns as Turn[]);
      const ids: string[] = [];
      for (const [index, turn] of paired.entries()) {
        const calls = turn.parts.filter((part) => part.kind === 'tool-call');
        ids.push(...calls.map((part) => part.id));
        if (calls.length === 0) continue;
        const next = paired[index + 1]!;
        assert.equal(next.role, 'user');
        assert.deepEqual(
          next.parts.slice(0, calls.length).map((part) => (part as ToolResultPart).callId),
          calls.map((part) => part.id),
        );
        for (const part of next.parts.slice(0, calls.length)) assert.ok((part as ToolResultPart).parts.length > 0);
      }
      const count = (kind: string) => paired.flatMap((turn) => turn.parts).filter((part) => part.kind === kind).length;
      assert.equal(count('tool-result'), count('tool-call'));
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(!ids.includes(''));
      assert.deepEqual(texts(paired), texts(turns as Turn[]));
      assert.deepEqual(pairedTurns(paired), paired);
    }),
    { numRuns: 500 },
  );
});

test('merging and dropping loses no words and leaves no two neighbours of one role', () => {
  fc.assert(
    fc.property(anyTurns, (turns) => {
      const merged = mergedTurns(withoutEmpty(turns as Turn[]));
      assert.equal(texts(merged).join(''), texts(turns as Turn[]).join(''));
      for (const [index, turn] of merged.entries()) {
        assert.ok(turn.parts.length > 0);
        if (index > 0 && turn.role !== 'system') assert.notEqual(turn.role, merged[index - 1]!.role);
      }
    }),
  );
});
