/** Messages for chat upstreams: results beside their calls, media where they may stand, thoughts for their maker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import { encode } from './chat-harness.ts';
import { assistant, call, messages, png, refused, result, system, text, url, user } from './chat-upstream-samples.ts';

test('pitfall 065: an image in a tool result is shown in a message of the user behind all results', () => {
  const sent = messages([
    assistant(call('a'), call('b', 'g')),
    user(result('a', text('see'), png), result('b', text('ok')), text('So?')),
  ]);
  assert.deepEqual(sent.slice(1), [
    { role: 'tool', tool_call_id: 'a', content: 'see\n(image: shown in the next message)' },
    { role: 'tool', tool_call_id: 'b', content: 'ok' },
    {
      role: 'user',
      content: [
        { type: 'text', text: '(image given by the tool "f":)' },
        { type: 'image_url', image_url: { url } },
        { type: 'text', text: 'So?' },
      ],
    },
  ]);
  const inside = messages([assistant(call('a')), user(result('a', png))], { traits: { tool_result_media: true } });
  assert.deepEqual(inside[1]!.content, [{ type: 'image_url', image_url: { url } }]);
});

test('pitfall 066: a result that holds nothing, and a call without one, get words', () => {
  assert.deepEqual(
    messages([assistant(call('a'), call('b')), user(result('a'))])
      .slice(1)
      .map(({ content }) => content),
    ['(no output)', '(no result)'],
  );
});

test('pitfall 068: a failed tool is distinguished from one that worked', () => {
  const [, sent] = messages([
    assistant(call('a')),
    user({ ...result('a', text('no such file')), isError: true } as Part),
  ]);
  assert.equal(sent!.content, 'Error: no such file');
});

test('pitfall 063: calls with empty ids get one that their results have too', () => {
  const [one, two] = messages([assistant(call('')), user(result('', text('ok')))]);
  assert.ok(one!.tool_calls![0]!.id !== '' && one!.tool_calls![0]!.id === two!.tool_call_id);
});

test('ids of calls have the form that the model takes', () => {
  const [one, two] = messages([assistant(call('toolu_0123456789')), user(result('toolu_0123456789', text('ok')))], {
    traits: { tool_ids: 'nine' },
  });
  assert.match(one!.tool_calls![0]!.id, /^[A-Za-z0-9]{9}$/);
  assert.equal(one!.tool_calls![0]!.id, two!.tool_call_id);
});

test('calls of one step stand in one message with the text before them', () => {
  const sent = messages([
    user(text('Go')),
    assistant(text('I look.')),
    assistant(call('a')),
    assistant(call('b')),
    user(result('a', text('1'))),
    user(result('b', text('2'))),
  ]);
  assert.deepEqual(
    sent.map(({ role, content }) => [role, content]),
    [
      ['user', 'Go'],
      ['assistant', 'I look.'],
      ['tool', '1'],
      ['tool', '2'],
    ],
  );
  assert.equal(sent[1]!.tool_calls!.length, 2);
});

test('pitfall 094: system messages stay in their place, or become marked text for models that take one in front', () => {
  const turns = [system(text('A')), system(text('B')), user(text('Hi')), system(text('C'))];
  assert.deepEqual(
    messages(turns).map(({ role }) => role),
    ['system', 'system', 'user', 'system'],
  );
  assert.deepEqual(messages(turns, { traits: { system_anywhere: false } }), [
    { role: 'system', content: 'A\n\nB' },
    { role: 'user', content: 'Hi' },
    { role: 'user', content: '<system-reminder>\nC\n</system-reminder>' },
  ]);
});

test('pitfall 129: models that miss their thoughts in turns with calls are given them back, others are not', () => {
  const thought: Part = { kind: 'reasoning', text: 'Hm', opaqueState: { maker: 'maker', value: '' } };
  const turns = [
    user(text('Go')),
    assistant(thought, call('a')),
    user(result('a', text('ok'))),
    assistant(thought, text('Done')),
    user(text('More')),
  ];
  const replayed = messages(turns, { traits: { reasoning_replay: true } });
  assert.deepEqual([replayed[1]!['reasoning_content'], replayed[3]!['reasoning_content']], ['Hm', undefined]);
  assert.equal(messages(turns)[1]!['reasoning_content'], undefined);
});

test('pitfall 114: thoughts of another maker are left out, and named where the model could have used them', () => {
  const thought: Part = { kind: 'reasoning', text: 'Hm', opaqueState: { maker: 'other', value: 'SIG' } };
  const turns = [user(text('Go')), assistant(thought, call('a'))];
  const { body, dropped } = encode({ turns }, { traits: { reasoning_replay: true } });
  assert.deepEqual([body.messages[1]!['reasoning_content'], dropped], ['', ['reasoning_content']]);
  assert.ok(!JSON.stringify(encode({ turns }).body).includes('SIG'));
});

test('opaque details and signatures go back to their maker as it wrote them', () => {
  const details = [{ type: 'reasoning.text', text: 'Hm', signature: 'S', format: 'f1', index: 0 }];
  const opaqueState = (value: unknown, maker = 'maker') => ({ maker, value: JSON.stringify(value) });
  const extra = { google: { thought_signature: 'T' } };
  const turns = [
    user(text('Go')),
    assistant(
      { kind: 'reasoning', text: 'Hm', opaqueState: opaqueState(details) },
      { kind: 'text', text: 'A', opaqueState: opaqueState(extra) },
      call('a', 'f', { opaqueState: opaqueState(extra) }),
    ),
  ];
  const own = messages(turns)[1]!;
  assert.deepEqual(
    [own['reasoning_details'], own['extra_content'], own.tool_calls![0]!.extra_content],
    [details, extra, extra],
  );
  const foreign = JSON.stringify(messages(turns, { maker: 'another' }));
  assert.ok(!foreign.includes('reasoning_details') && !foreign.includes('extra_content'));
});

test('media that a model cannot see are refused in a message of the user, and named in an earlier tool result', () => {
  const traits = { inputs: [] };
  refused(() => messages([user(png)], { traits }), 'image_url');
  refused(() => messages([user({ kind: 'document', source: { form: 'file', id: 'x' } })]), 'file.file_id');
  refused(() => messages([user({ kind: 'video', source: { form: 'url', url: 'https://a.b' } })]), 'video_url');
  refused(
    () => messages([user({ kind: 'audio', source: { form: 'bytes', mediaType: 'audio/ogg', base64: 'AA' } })]),
    'input_audio',
  );
  const { body, dropped } = encode({ turns: [assistant(call('a')), user(result('a', png))] }, { traits });
  assert.deepEqual([body.messages[1]!.content, dropped], ['(image that cannot be shown)', ['image_url']]);
});

test('pitfall 197: a document goes by content with a file name, text as text, an address is refused', () => {
  const pdf: Part = {
    kind: 'document',
    name: 'a.pdf',
    source: { form: 'bytes', mediaType: 'application/pdf', base64: 'AAAA' },
  };
  assert.deepEqual(
    messages([user(pdf, { kind: 'document', name: 'b', source: { form: 'text', text: 'B' } })])[0]!.content,
    [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'text', text: 'b:\n\nB' },
    ],
  );
  refused(() => messages([user({ kind: 'document', source: { form: 'url', url: 'https://a.b/c.pdf' } })]), 'file');
});

test('an image that the model drew is shown to it by the user, a refusal stays a refusal', () => {
  const sent = messages([user(text('Draw')), assistant(text('Here.'), png), user(text('Bluer'))]);
  assert.deepEqual(sent[2]!.content, [
    { type: 'text', text: '(image of your answer before:)' },
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: 'Bluer' },
  ]);
  assert.deepEqual(messages([assistant({ kind: 'refusal', text: 'No.' })])[0], {
    role: 'assistant',
    content: '',
    refusal: 'No.',
  });
});
