/** Chat streams for clients: events become chunks in the protocol's exact order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import {
  type ClientChunk,
  call,
  calls,
  clientChunks,
  deltas,
  encodeStream,
  open,
  parts,
  payloads,
  replyContext,
  streamEvents,
} from './chat-harness.ts';

test('pitfall 028: calls without an index are distinguished by id, pieces without either go to the last one', () => {
  const events = deltas([
    call(undefined, 'a', 'f', '{"x"'),
    call(undefined, undefined, undefined, ':1}'),
    call(undefined, 'b', 'g', '{}'),
    call(undefined, 'a', undefined, ' '),
  ]);
  assert.deepEqual(calls(events), [
    ['a', 'f', '{"x":1} '],
    ['b', 'g', '{}'],
  ]);
  const sparse = deltas([call(3, 'a', 'f', '{}'), call(7, 'b', 'g', '{}')]);
  const out = clientChunks(sparse);
  assert.deepEqual(
    out
      .flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? [])
      .filter((entry) => entry.id)
      .map((entry) => entry.index),
    [0, 1],
  );
});

test('pitfall 038: a whole call in one event is one piece with id, name and arguments', () => {
  const events: Event[] = [
    { type: 'reply-start', id: undefined, createdAt: undefined, serviceTier: undefined },
    { type: 'text-start', block: 0, choice: 0 },
    { type: 'text-delta', block: 0, choice: 0, text: 'Hi', logprobs: undefined },
    { type: 'text-end', block: 0, choice: 0, opaqueState: undefined },
    { type: 'tool-start', block: 1, choice: 0, id: 'a', name: 'f', namespace: undefined, custom: false },
    { type: 'tool-delta', block: 1, choice: 0, text: '{"x":1}' },
    { type: 'tool-end', block: 1, choice: 0, opaqueState: 'sig', isCut: false },
    { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined },
  ];
  const chunks = clientChunks(events);
  const sent = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.deepEqual(sent[0], { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } });
  assert.deepEqual(sent[1], { index: 0, function: { arguments: '{"x":1}' } });
  assert.equal(open(sent[2]!.extra_content!.google.thought_signature)?.value, 'sig');
});

test('pitfall 040: the index of a call counts calls alone, whatever block it is', () => {
  const events = deltas([{ content: 'Hi' }, call(4, 'a', 'f', '{}')]);
  const chunks = clientChunks(events);
  assert.equal(chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? [])[0]!.index, 0);
});

test('pitfall 048: a missing, null or empty role changes nothing, and an encoded answer begins with one', () => {
  for (const role of [undefined, null, '']) assert.equal(parts(deltas([{ role, content: 'Hi' }]))[0]!.text, 'Hi');
  const first = clientChunks(deltas([{ content: 'Hi' }]));
  assert.deepEqual(first[0]!.choices[0].delta, { role: 'assistant', content: '' });
});

test('pitfall 128: reasoning is read under all of its names, once where several say the same', () => {
  const thought = [{ type: 'reasoning.text', text: 'Hm', index: 0 }];
  for (const delta of [
    { reasoning: 'Hm' },
    { reasoning_content: 'Hm' },
    { reasoning_details: thought },
    { reasoning: 'Hm', reasoning_content: 'Hm', reasoning_details: thought },
    { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] },
  ])
    assert.deepEqual(
      parts(deltas([delta, { content: 'Yes' }])).map(({ kind, text }) => [kind, text]),
      [
        ['reasoning', 'Hm'],
        ['text', 'Yes'],
      ],
    );
  const out = clientChunks(deltas([{ reasoning: 'Hm' }]));
  assert.equal(out[1]!.choices[0].delta.reasoning_content, 'Hm');
});

test('pitfall 159: a chunk without choices is no answer, and usage goes out only where it was asked for', () => {
  const events = streamEvents([
    { id: '', choices: [], prompt_filter_results: [] },
    { id: 'chatcmpl-1', created: 7, choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] },
    { choices: [], usage: {} },
  ]);
  assert.deepEqual(events[0], { type: 'reply-start', id: 'chatcmpl-1', createdAt: 7, serviceTier: undefined });
  const usage = { input: 5, cache_read: 3, cache_write_5m: 2, cache_write_1h: 1, output: 4, reasoning: 6 };
  const silent = encodeStream(events, replyContext({ stream_options: { include_usage: false } }, usage));
  assert.ok(!silent.includes('usage') && silent.endsWith('data: [DONE]\n\n'));
  const sent = clientChunks(events, replyContext({ stream_options: { include_usage: true } }, usage));
  assert.deepEqual(
    sent.slice(0, -1).map((chunk) => chunk.usage),
    sent.slice(0, -1).map(() => null),
  );
  const last = sent.at(-1)!;
  assert.deepEqual(last.choices, []);
  assert.deepEqual([last.usage!.prompt_tokens, last.usage!.completion_tokens, last.usage!.total_tokens], [11, 10, 21]);
  assert.deepEqual(last.usage!.prompt_tokens_details, {
    cached_tokens: 3,
    cache_write_tokens: 3,
    audio_tokens: 0,
    image_tokens: 0,
  });
  assert.equal(last.usage!.completion_tokens_details.reasoning_tokens, 6);
});

test('pitfall 110: empty lists of log probabilities are none, filled ones go both ways', () => {
  const chunk = (logprobs: unknown) =>
    streamEvents([{ choices: [{ index: 0, delta: { content: 'Hi' }, logprobs, finish_reason: 'stop' }] }]);
  assert.equal(parts(chunk({ content: [], refusal: null }))[0]!.logprobs, undefined);
  const sent = {
    token: 'Hi',
    logprob: -0.5,
    bytes: [72, 105],
    top_logprobs: [{ token: 'Ho', logprob: -2, bytes: [72, 111] }],
  };
  const out = clientChunks(chunk({ content: [sent], refusal: null }));
  assert.deepEqual(out[1]!.choices[0].logprobs, { content: [sent], refusal: null });
});

test('pitfall 220: a citation without a position is sent as one', () => {
  const events = deltas([
    { content: 'Sky' },
    { annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.b', title: 'A' } }] },
  ]);
  assert.deepEqual(parts(events)[0]!.citations, [{ url: 'https://a.b', title: 'A' }]);
  const out = clientChunks(events);
  assert.deepEqual(
    out.flatMap((chunk) => chunk.choices[0].delta.annotations ?? []),
    [{ type: 'url_citation', url_citation: { start_index: 0, end_index: 3, title: 'A', url: 'https://a.b' } }],
  );
});

test('pitfall 109: the choices of one stream stay apart, each with a role, a reason and calls from 0', () => {
  const chunk = (index: number, delta: object, finish_reason: string | null = null) => ({
    choices: [{ index, delta, finish_reason }],
  });
  const events = streamEvents([
    chunk(0, { content: 'A' }),
    chunk(1, { content: 'B' }),
    chunk(1, call(0, 'b', 'f', '{}')),
    chunk(0, {}, 'stop'),
    chunk(1, {}, 'tool_calls'),
  ]);
  const out = clientChunks(events, replyContext({ n: 2 }));
  for (const index of [0, 1]) {
    const own = out.filter(({ choices }) => choices[0].index === index).map(({ choices }) => choices[0]);
    assert.equal(own[0]!.delta.role, 'assistant');
    assert.equal(own.at(-1)!.finish_reason, ['stop', 'tool_calls'][index]);
  }
});

test('pitfall 200: images of an answer are decoded and encoded as images', () => {
  const url = `data:image/png;base64,${Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64')}`;
  const events = deltas([{ images: [{ type: 'image_url', index: 0, image_url: { url } }] }]);
  assert.equal(parts(events)[0]!.source!.mediaType, 'image/png');
  const out = clientChunks(events);
  assert.deepEqual(out[1]!.choices[0].delta.images, [{ index: 0, type: 'image_url', image_url: { url } }]);
});

test('signed reasoning goes to the client sealed, with the very words that were signed, and comes back for its maker', () => {
  const details = (rest: object) => ({
    reasoning_details: [{ type: 'reasoning.text', index: 0, format: 'f1', ...rest }],
  });
  const events = deltas([
    { reasoning: 'Let me ', ...details({ text: 'Let me ' }) },
    { reasoning: 'see.', ...details({ text: 'see.' }) },
    details({ signature: 'SIG' }),
    { content: 'Done' },
  ]);
  const out = clientChunks(events);
  const detail = out.flatMap((chunk) => chunk.choices[0].delta.reasoning_details ?? []);
  assert.equal(detail[0]!.text, 'Let me see.');
  assert.deepEqual(JSON.parse(open(detail[0]!.signature)!.value), [
    { type: 'reasoning.text', index: 0, format: 'f1', text: 'Let me see.', signature: 'SIG' },
  ]);
});

test('sounds are sent piece by piece, with their transcript', () => {
  const events = deltas([
    { audio: { id: 'au', transcript: 'He' } },
    { audio: { data: 'AAAA' } },
    { audio: { expires_at: 9 } },
  ]);
  assert.deepEqual(
    parts(events).map((part) => [part.kind, part.source?.base64, part.transcript]),
    [
      ['audio', '', 'He'],
      ['audio', 'AAAA', undefined],
    ],
  );
  const out = clientChunks(events);
  assert.deepEqual(
    out.flatMap((chunk) => chunk.choices[0].delta.audio ?? []),
    [
      { id: 'audio_0198-exchange', transcript: 'He' },
      { id: 'audio_0198-exchange', data: 'AAAA' },
    ],
  );
});

test('clients that send "functions" get "function_call"', () => {
  const events = deltas(
    [{ function_call: { name: 'f', arguments: '' } }, { function_call: { arguments: '{"x":1}' } }],
    'function_call',
  );
  assert.deepEqual(calls(events), [['call_s_0', 'f', '{"x":1}']]);
  const out = clientChunks(events, replyContext({ functions: [{ name: 'f' }] }));
  assert.deepEqual(out.map((chunk) => chunk.choices[0].delta.function_call).filter(Boolean), [
    { name: 'f', arguments: '' },
    { arguments: '{"x":1}' },
  ]);
  assert.equal(out.at(-1)!.choices[0].finish_reason, 'function_call');
});

test('a refusal stays one in decoding and encoding', () => {
  const events = deltas([{ refusal: 'I am ' }, { refusal: 'sorry' }]);
  assert.deepEqual(parts(events), [{ kind: 'refusal', text: 'I am sorry' }]);
  const out = clientChunks(events);
  assert.equal(out.map((chunk) => chunk.choices[0].delta.refusal ?? '').join(''), 'I am sorry');
});

test('a stream that breaks ends with an error object and no end mark', () => {
  const encoder = chatCodec.createEncoder(replyContext());
  const [frame, ...more] = payloads(
    Buffer.from(encoder.fail(new GatewayError('upstream_failed', 'The model broke off.'))),
  );
  assert.equal((frame as unknown as ClientChunk).error?.message, 'The model broke off.');
  assert.equal(more.length, 0);
});

test('citations come all at once before the end: clients keep only the last list that they receive', () => {
  const cite = (url: string): Event => ({ type: 'citation', block: 0, choice: 0, citation: { url, start: 0, end: 2 } });
  const out = clientChunks([
    { type: 'reply-start', id: undefined, createdAt: undefined, serviceTier: undefined },
    { type: 'text-start', block: 0, choice: 0 },
    { type: 'text-delta', block: 0, choice: 0, text: 'Hi', logprobs: undefined },
    cite('https://a.example'),
    cite('https://b.example'),
    { type: 'text-end', block: 0, choice: 0, opaqueState: undefined },
    { type: 'stop', choice: 0, reason: 'stop', sequence: undefined },
  ]);
  const lists = out.flatMap((chunk) => {
    const delta = chunk.choices[0].delta as { annotations?: { url_citation: { url: string } }[] };
    const { annotations } = delta;
    return annotations === undefined ? [] : [annotations.map((annotation) => annotation.url_citation.url)];
  });
  assert.deepEqual(lists, [['https://a.example', 'https://b.example']]);
});
