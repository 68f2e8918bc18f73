/** The marks for the prompt cache that upstreams of the messages protocol get. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { promptOf, word } from './messages-harness.ts';
import { assistant, marksIn, messagesOf, text, tool, user } from './messages-samples.ts';

test('the usual places are marked where the client marks nothing', () => {
  const turns: Turn[] = [
    { role: 'system', parts: [text('s')] },
    ...[1, 2, 3].flatMap((number) => [user(text(`u${number}`)), assistant(text('a'))]),
    user(text('last')),
  ];
  const { body: json } = word(promptOf({ turns, tools: [tool, { ...tool, name: 'go' }] }));
  assert.equal(marksIn(json).length, 4);
  assert.ok('cache_control' in (json['tools'] as JsonObject[])[1]!);
  assert.deepEqual(
    messagesOf({ body: json })
      .filter(({ content }) => 'cache_control' in content[0]!)
      .map(({ content }) => content[0]!['text']),
    ['u3', 'last'],
  );
});

test("pitfall 187: of more than four marks the last of tools and system and the latest stay; the client's are kept", () => {
  const marked = (words: string): Part => ({ kind: 'text', text: words, cache: 'short' });
  const turns: Turn[] = [
    { role: 'system', parts: [marked('s1'), marked('s2')] },
    user(marked('a'), marked('b'), marked('c')),
  ];
  const { body: json, dropped } = word(promptOf({ turns, tools: [{ ...tool, cache: 'short' }] }));
  assert.deepEqual([marksIn(json).length, dropped], [4, ['cache_control']]);
  assert.ok(!('cache_control' in (json['system'] as JsonObject[])[0]!));
});

test('pitfall 188: a tool that waits to be found is declared plainly, so that its mark may stay', () => {
  const { body: json } = word(promptOf({ tools: [{ ...tool, deferred: true, cache: 'short' }] }));
  assert.deepEqual(Object.keys((json['tools'] as JsonObject[])[0]!), ['name', 'input_schema', 'cache_control']);
});

test('pitfall 189: a mark for an hour behind one for five minutes is lowered', () => {
  const turns: Turn[] = [
    {
      role: 'system',
      parts: [
        { kind: 'text', text: 'a', cache: 'long' },
        { kind: 'text', text: 'b', cache: 'short' },
      ],
    },
    user({ kind: 'text', text: 'c', cache: 'long' }),
  ];
  assert.deepEqual(marksIn(word(promptOf({ turns })).body), [
    '"cache_control":{"type":"ephemeral","ttl":"1h"}',
    '"cache_control":{"type":"ephemeral"}',
    '"cache_control":{"type":"ephemeral"}',
  ]);
});

test('pitfall 190: an upstream that knows no marks gets none', () => {
  const turns = [user({ kind: 'text', text: 'c', cache: 'long' })];
  const { body: json, dropped } = word(promptOf({ turns }), { traits: { cache_marks: false } });
  assert.deepEqual([marksIn(json), dropped], [[], ['cache_control']]);
});
