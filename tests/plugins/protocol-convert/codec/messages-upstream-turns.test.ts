/** The messages codec on requests to upstreams, the conversation: in the order and form that they insist on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Part, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { maker, promptOf, word } from './messages-harness.ts';
import { assistant, call, messagesOf, refusal, result, text, tool, user } from './messages-samples.ts';

test('pitfall 099: the mark of an empty text moves to what stands before it', () => {
  const turns = [user(text('a'), { kind: 'text', text: ' ', cache: 'long' })];
  assert.deepEqual(messagesOf(word(promptOf({ turns })))[0]?.content, [
    { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ]);
});

/** Three calls, whose results come apart, late, twice, or not at all. */
const scattered = [
  user(text('go')),
  assistant(call('a'), call('b'), call('c')),
  user(text('by the way')),
  user(result('b', 'one')),
  user(result('b', 'two')),
  user(result('a')),
  user(result('z')),
];
const gathered = () => messagesOf(word(promptOf({ turns: scattered, tools: [tool] })))[2]!.content;
const resultsOf = (blocks: readonly JsonObject[]) => blocks.filter((block) => block['type'] === 'tool_result');

test('pitfall 056: the results of a step stand together in one turn, in the order of the calls', () => {
  assert.deepEqual(
    resultsOf(gathered()).map((block) => block['tool_use_id']),
    ['a', 'b', 'c'],
  );
});

test('pitfall 058: what the user says beside results stands behind them', () => {
  assert.deepEqual(
    gathered().map((block) => block['type']),
    ['tool_result', 'tool_result', 'tool_result', 'text'],
  );
});

test('pitfall 059: of two results for one call the last counts', () => {
  assert.equal(gathered()[1]!['content'], 'two');
});

test('pitfall 060: a call without a result gets one, a result without a call goes', () => {
  assert.equal(gathered()[2]!['content'], '(no result)');
  assert.ok(!gathered().some((block) => block['tool_use_id'] === 'z'));
});

const oneResult = (part: Part) => {
  const turns = [user(text('go')), assistant(call('a')), user(part)];
  return messagesOf(word(promptOf({ turns, tools: [tool] }), { traits: { cache_marks: false } }))[2]!.content;
};

test('pitfall 066: an empty result becomes a text', () => {
  assert.deepEqual(oneResult(result('a', '')), [{ type: 'tool_result', tool_use_id: 'a', content: '(no output)' }]);
});

test('pitfall 068: a result that is an error is marked as one', () => {
  const failed = { ...result('a'), isError: true } as Part;
  assert.deepEqual(oneResult(failed), [{ type: 'tool_result', tool_use_id: 'a', content: 'seen', is_error: true }]);
});

const plain = (...turns: Turn[]) =>
  messagesOf(word(promptOf({ turns }), { traits: { cache_marks: false } })).map(({ role, content }) => [
    role,
    content.map((block) => block['text']),
  ]);

test('pitfall 096: neighbours of one role become one turn', () => {
  assert.deepEqual(plain(user(text('a')), user(text('b'))), [['user', ['a', 'b']]]);
});

test('pitfall 097: a conversation that the assistant begins gets a first turn of the user', () => {
  assert.deepEqual(plain(assistant(text('hi')), user(text('a'))), [
    ['user', ['.']],
    ['assistant', ['hi']],
    ['user', ['a']],
  ]);
});

test('pitfall 098: empty texts are left out', () => {
  assert.deepEqual(plain(user(text(''), text('a'), text(' \n'))), [['user', ['a']]]);
});

test('pitfall 101: the beginning of an answer is trimmed where it may be given, else the user asks to go on', () => {
  const turns = [user(text('go')), assistant(text('{ \n'))];
  assert.equal(messagesOf(word(promptOf({ turns }), { traits: { prefill: true } })).at(-1)?.content[0]?.['text'], '{');
  assert.equal(messagesOf(word(promptOf({ turns }))).at(-1)?.content[0]?.['text'], 'Continue.');
});

test('pitfall 094: a system message in the middle stays there, or becomes marked user text', () => {
  const turns: Turn[] = [
    { role: 'system', parts: [text('a')] },
    user(text('b')),
    { role: 'system', parts: [text('c')] },
    assistant(text('d')),
    user(text('e')),
  ];
  const native = word(promptOf({ turns }));
  assert.deepEqual(
    messagesOf(native).map(({ role }) => role),
    ['user', 'system', 'assistant', 'user'],
  );
  const old = word(promptOf({ turns }), { traits: { system_anywhere: false } });
  assert.equal(messagesOf(old)[0]?.content[1]?.['text'], '<system-reminder>\nc\n</system-reminder>');
  assert.equal((old.body['system'] as JsonObject[]).length, 1);
});

test('pitfall 102: the name of a speaker stands in front of what it says', () => {
  const turns: Turn[] = [{ role: 'user', parts: [text('hi')], name: 'Ann' }];
  assert.equal(messagesOf(word(promptOf({ turns })))[0]?.content[0]?.['text'], 'Ann: hi');
});

const strangeName = 'ns.look at it';
const strange = () => {
  const turns = [user(text('go')), assistant(call('x:1', strangeName)), user(result('x:1'))];
  const request = word(promptOf({ turns, tools: [{ kind: 'function', name: strangeName }] }));
  const [, step, answer] = messagesOf(request);
  return { ...request, sent: step!.content[0]!, answer: answer!.content[0]! };
};

test('pitfall 052: ids become legal, the same ones in calls and results', () => {
  const { sent, answer } = strange();
  assert.match(String(sent['id']), /^toolu_[A-Za-z0-9]+$/);
  assert.equal(answer['tool_use_id'], sent['id']);
});

test('pitfall 053: names become legal, and are known again', () => {
  const { sent, responseMapping: way, body: json } = strange();
  assert.match(String(sent['name']), /^ns_look_at_it_[A-Za-z0-9]{8}$/);
  assert.equal((json['tools'] as JsonObject[])[0]?.['name'], sent['name']);
  assert.deepEqual(way.names.get(String(sent['name'])), { name: strangeName });
});

const reasoning = (words: string, opaqueState: { maker: string; value: string }): Part => ({
  kind: 'reasoning',
  text: words,
  opaqueState: opaqueState,
});
const own = { maker, value: 'S' };

test('pitfall 113: redacted thinking goes back byte for byte', () => {
  const redacted: Part = { kind: 'reasoning', text: '', opaqueState: { maker, value: 'D' }, redacted: true };
  const turns = [user(text('go')), assistant(reasoning(' a ', own), redacted, call('a')), user(result('a'))];
  const [, step] = messagesOf(word(promptOf({ turns, tools: [tool] })));
  assert.deepEqual(step?.content.slice(0, 2), [
    { type: 'thinking', thinking: ' a ', signature: 'S' },
    { type: 'redacted_thinking', data: 'D' },
  ]);
});

const saysNothingOf = (opaqueState: { maker: string; value: string }) => {
  const turns = [user(text('go')), assistant(reasoning('a', opaqueState), text('b')), user(text('c'))];
  assert.ok(!JSON.stringify(word(promptOf({ turns })).body).includes('thinking'));
};

test('pitfall 114: thinking of another maker does not go to this one', () =>
  saysNothingOf({ maker: 'other', value: 'S' }));

test('pitfall 115: unsigned thinking is not sent back', () => saysNothingOf({ maker, value: '' }));

test('pitfall 116: what cannot be given back takes all thinking before it along, and none behind it', () => {
  const turns = [
    user(text('1')),
    assistant(reasoning('one', own), text('a')),
    user(text('2')),
    assistant(reasoning('two', { maker: 'other', value: 'X' })),
    user(text('3')),
    assistant(reasoning('three', own), text('c')),
    user(text('4')),
  ];
  const messages = messagesOf(word(promptOf({ turns }), { traits: { cache_marks: false } }));
  assert.deepEqual(
    messages.map(({ content }) => content.map((block) => block['thinking'] ?? block['text'])),
    [['1'], ['a'], ['2'], ['.'], ['3'], ['three', 'c'], ['4']],
  );
});

test('pitfall 118: a tool call without its thinking turns the thinking budget off', () => {
  const turns = [user(text('go')), assistant(call('a')), user(result('a'))];
  const wish = { turns, tools: [tool], reasoning: { effort: 'medium' } as const };
  const { body: json, dropped } = word(promptOf(wish), { traits: { reasoning: 'budget' } });
  assert.deepEqual([json['thinking'], dropped], [undefined, ['thinking']]);
  const whole = [user(text('go')), assistant(reasoning('hm', own), call('a')), user(result('a'))];
  const kept = word(promptOf({ ...wish, turns: whole }), { traits: { reasoning: 'budget' } });
  assert.equal((kept.body['thinking'] as JsonObject)['type'], 'enabled');
});

test('pitfall 196: pictures, PDFs and text documents are given; sounds, films and files of others are refused', () => {
  const parts: Part[] = [
    { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'AA==' } },
    { kind: 'image', source: { form: 'url', url: 'https://x.test/a.png' } },
    {
      kind: 'document',
      source: { form: 'bytes', mediaType: 'application/pdf', base64: 'AA==' },
      name: 'my.report.pdf',
    },
    { kind: 'document', source: { form: 'bytes', mediaType: 'text/csv', base64: 'YSxi' } },
  ];
  const [turn] = messagesOf(word(promptOf({ turns: [user(...parts)] }), { traits: { cache_marks: false } }));
  assert.deepEqual(turn?.content, [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
    { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' }, title: 'my report' },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
  ]);
  for (const mediaType of ['image/jpeg', 'image/gif', 'image/webp']) {
    const image: Part = { kind: 'image', source: { form: 'bytes', mediaType, base64: 'AA==' } };
    const [given] = messagesOf(word(promptOf({ turns: [user(image)] }), { traits: { cache_marks: false } }));
    const source = { type: 'base64', media_type: mediaType, data: 'AA==' };
    assert.deepEqual(given?.content, [{ type: 'image', source }]);
  }
  const refused = (part: Part, field: string, traits = {}) =>
    assert.throws(() => word(promptOf({ turns: [user(part)] }), { traits }), refusal(field));
  refused({ kind: 'audio', source: { form: 'bytes', mediaType: 'audio/wav', base64: '' } }, 'audio');
  refused({ kind: 'document', source: { form: 'file', id: 'f' } }, 'messages.content.source.file_id');
  refused({ kind: 'image', source: { form: 'bytes', mediaType: 'image/bmp', base64: '' } }, 'messages.content.image');
  refused(parts[0]!, 'messages.content.image', { inputs: ['document'] });
});

test('pitfall 065: pictures stay inside of results, or follow them where they may not', () => {
  const picture = { kind: 'image', source: { form: 'url', url: 'https://x.test/a.png' } } as const;
  const turns = [
    user(text('go')),
    assistant(call('a')),
    user({ kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'x' }, picture] }),
  ];
  const inside = messagesOf(word(promptOf({ turns, tools: [tool] }))).at(-1)!;
  assert.deepEqual(
    (inside.content[0]!['content'] as JsonObject[]).map((block) => block['type']),
    ['text', 'image'],
  );
  const beside = messagesOf(word(promptOf({ turns, tools: [tool] }), { traits: { tool_result_media: false } })).at(-1)!;
  assert.deepEqual(
    beside.content.map((block) => block['type']),
    ['tool_result', 'image'],
  );
});
