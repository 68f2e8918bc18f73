import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { decodeSlot } from '../../../../plugins/protocol-convert/protocols/gemini/signatures.ts';
import { fc } from '../../../helpers/properties.ts';
import { recording } from '../../../helpers/recordings.ts';
import {
  type Body,
  chunk,
  chunksOf,
  eventsOf,
  last,
  openSeal,
  parsedFrames,
  replyContext,
  requestThoughts,
  streamOf,
  turnsOf,
} from './gemini-harness.ts';

const kinds = (events: readonly Event[]) => events.map((event) => event.type).join(' ');
const ofType = <T extends Event['type']>(events: readonly Event[], type: T) =>
  events.filter((event) => event.type === type) as Extract<Event, { type: T }>[];
const textIn = (events: readonly Event[]) =>
  ofType(events, 'text-delta')
    .map((event) => event.text)
    .join('');
const stopIn = (events: readonly Event[]) => ofType(events, 'stop').map((event) => event.reason);
const call = (name: string, args: unknown, more: object = {}) => ({ functionCall: { name, args, ...more } });

test('pitfall 038: a call that comes whole is reported with its id, name and all its arguments', () => {
  const { events } = eventsOf([chunk({ text: 'a' }, call('f', { x: 1 }, { id: 'one' }), call('g', {})), last('STOP')]);
  assert.deepEqual(
    ofType(events, 'tool-start').map(({ id, name }) => [id, name]),
    [
      ['one', 'f'],
      ['call_seed_1', 'g'],
    ],
  );
  assert.deepEqual(
    ofType(events, 'tool-delta').map((event) => event.text),
    ['{"x":1}', '{}'],
  );
});

test('pitfall 032: a repeated or missing id is made up, the same in every run', () => {
  const run = () => eventsOf([chunk(call('f', {}, { id: 'x' }), call('f', {}, { id: 'x' }), call('f', {}))]).events;
  const ids = ofType(run(), 'tool-start').map((event) => event.id);
  assert.deepEqual(ids, ['x', 'call_seed_1', 'call_seed_2']);
  assert.deepEqual(run(), run());
});

test('pitfall 039: arguments that come as JSON paths are put together, and never touch a prototype', () => {
  const piece = (jsonPath: string, value: object, more: object = {}) => ({ jsonPath, ...value, ...more });
  const { events } = eventsOf([
    chunk({ functionCall: { name: 'f', id: 'c', willContinue: true } }),
    chunk({ functionCall: { partialArgs: [piece('$.city', { stringValue: 'Flo' })], willContinue: true } }),
    chunk({
      functionCall: {
        partialArgs: [
          piece('$.city', { stringValue: 'rence' }),
          piece('$.list[0].n', { numberValue: 0 }),
          piece('$.list[1].ok', { boolValue: false }),
          piece("$['a.b']", { nullValue: 'NULL_VALUE' }),
          piece('$.__proto__.polluted', { stringValue: 'yes' }),
          piece('$.list[99999999]', { numberValue: 1 }),
          piece('nonsense', { numberValue: 1 }),
        ],
        willContinue: true,
      },
    }),
    chunk({ functionCall: {} }),
    last('STOP'),
  ]);
  assert.deepEqual(
    ofType(events, 'tool-delta').map((event) => JSON.parse(event.text)),
    [{ city: 'Florence', list: [{ n: 0 }, { ok: false }], 'a.b': null }],
  );
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.deepEqual(stopIn(events), ['tool-calls']);
});

test('pitfall 046: a call whose pieces are cut off by the bound on the answer is marked, and not handed on', () => {
  const { events } = eventsOf([
    chunk({ functionCall: { name: 'f', partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }], willContinue: true } }),
    last('MAX_TOKENS'),
  ]);
  assert.deepEqual(
    ofType(events, 'tool-end').map((event) => event.isCut),
    [true],
  );
  assert.deepEqual(stopIn(events), ['length']);
  const frames = parsedFrames(streamOf(events));
  assert.equal(frames.length, 1);
  assert.equal(frames[0].candidates[0].finishReason, 'MAX_TOKENS');
});

test('pitfall 121: a signature on an empty text is kept, with the text or the thought before it or alone', () => {
  const signed = { text: '', thoughtSignature: 'sig' };
  const text = eventsOf([chunk({ text: 'a' }), last('STOP', signed)]).events;
  assert.equal(ofType(text, 'text-end')[0]!.opaqueState, 'sig');
  const alone = eventsOf([chunk(call('f', {})), last('STOP', signed)]).events;
  assert.equal(kinds(alone), 'reply-start tool-start tool-delta tool-end reasoning-start reasoning-end stop');
  assert.equal(ofType(alone, 'reasoning-end')[0]!.opaqueState, 'sig');
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
  assert.equal(
    kinds(eventsOf([chunk(image), last('STOP', signed)]).events),
    'reply-start media reasoning-start reasoning-end stop',
  );
});

test('pitfall 122: of parallel calls only the signed one carries a signature', () => {
  const { events } = eventsOf([chunk({ ...call('f', {}), thoughtSignature: 's' }, call('g', {}))]);
  assert.deepEqual(
    ofType(events, 'tool-end').map((event) => event.opaqueState),
    ['s', undefined],
  );
});

test('a signed text is not merged with the text that follows', () => {
  const { events } = eventsOf([chunk({ text: 'a', thoughtSignature: 's' }), chunk({ text: 'b' }), last('STOP')]);
  assert.equal(kinds(events), 'reply-start text-start text-delta text-end text-start text-delta text-end stop');
  assert.deepEqual(
    ofType(events, 'text-end').map((event) => event.opaqueState),
    ['s', undefined],
  );
});

test('pitfall 130: thoughts after text open a block of their own', () => {
  const thought = { text: 't', thought: true };
  const { events } = eventsOf([chunk(thought), chunk({ text: 'a' }), chunk(thought), last('STOP')]);
  const block = (kind: string) => `${kind}-start ${kind}-delta ${kind}-end`;
  assert.equal(kinds(events), `reply-start ${block('reasoning')} ${block('text')} ${block('reasoning')} stop`);
});

test('pitfall 138: thoughts alone are an answer that stopped', () => {
  const { events, failure } = eventsOf([last('STOP', { text: 't', thought: true })]);
  assert.deepEqual([stopIn(events), failure], [['stop'], undefined]);
});

test('pitfall 139, 141: a plain stop with calls is reported as tool calls', () => {
  assert.deepEqual(stopIn(eventsOf([last('STOP', call('f', {}))]).events), ['tool-calls']);
});

test('pitfall 142: the bound on tokens ends an answer by length, and so does a pause between parts of it', () => {
  assert.deepEqual(stopIn(eventsOf([last('MAX_TOKENS', { text: 'a' })]).events), ['length']);
  assert.deepEqual(stopIn(eventsOf([last('CONTINUATION', { text: 'a' })]).events), ['length']);
});

test('pitfall 143: a candidate without content has its reason and nothing else', () => {
  for (const [reason, stop] of [
    ['SAFETY', 'refusal'],
    ['MAX_TOKENS', 'length'],
    ['NO_IMAGE', 'refusal'],
    ['IMAGE_SAFETY', 'refusal'],
  ]) {
    const { events, failure } = eventsOf([{ candidates: [{ finishReason: reason }] }]);
    assert.equal(kinds(events), 'reply-start stop');
    assert.deepEqual([stopIn(events), failure], [[stop], undefined]);
  }
});

test('pitfall 144: a blocked prompt is a refusal, with the vendor’s words where it has some', () => {
  const blocked = { promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'no' } };
  const { events } = eventsOf([blocked]);
  assert.equal(kinds(events), 'reply-start refusal-start refusal-delta refusal-end stop');
  assert.deepEqual(stopIn(events), ['refusal']);
});

test('pitfall 145: a malformed call without anything else is no answer, and neither are thoughts before it', () => {
  for (const before of [[], [chunk({ text: 't', thought: true })]]) {
    const { events, failure } = eventsOf([...before, last('MALFORMED_FUNCTION_CALL')]);
    assert.match(failure!, /MALFORMED_FUNCTION_CALL/);
    assert.deepEqual(stopIn(events), []);
  }
  const { events, failure } = eventsOf([chunk({ text: 'a' }), last('MALFORMED_FUNCTION_CALL')]);
  assert.deepEqual([stopIn(events), failure], [['stop'], undefined]);
});

test('pitfall 146: a call beside the news that it is malformed is not handed on', () => {
  const { events, failure } = eventsOf([last('MALFORMED_FUNCTION_CALL', call('f', {}))]);
  assert.equal(ofType(events, 'tool-start').length, 0);
  assert.notEqual(failure, undefined);
});

test('pitfall 148: an unknown reason is a stop', () => {
  assert.deepEqual(stopIn(eventsOf([last('SOMETHING_NEW', { text: 'a' })]).events), ['stop']);
});

test('pitfall 157: a stream without candidates is no answer', () => {
  assert.notEqual(eventsOf([{ usageMetadata: {} }]).failure, undefined);
});

test('pitfall 158: what comes after the chunk with the reason is still sent, and the last reason counts', () => {
  const web = { web: { uri: 'https://a.example', title: 'A' } };
  const support = { segment: { startIndex: 0, endIndex: 1 }, groundingChunkIndices: [0] };
  const late = { candidates: [{ groundingMetadata: { groundingChunks: [web], groundingSupports: [support] } }] };
  const { events } = eventsOf([last('STOP', { text: 'a' }), last('STOP', { text: 'b' }), late]);
  assert.equal(kinds(events), 'reply-start text-start text-delta text-delta citation text-end stop');
});

test('pitfall 168: chunks in snake case are read like the official ones', () => {
  const camel = [chunk({ ...call('f', { a_b: 1 }), thoughtSignature: 's' }), last('STOP')];
  const part = { function_call: { name: 'f', args: { a_b: 1 } }, thought_signature: 's' };
  const snake = [
    { candidates: [{ content: { parts: [part] }, index: 0 }], response_id: 'r' },
    { candidates: [{ finish_reason: 'STOP', index: 0 }] },
  ];
  assert.deepEqual(eventsOf(snake), eventsOf(camel));
});

test('pitfall 221: places in a text are counted in bytes by the vendor and in UTF-16 units here, and back', () => {
  const text = 'ä😀 Ruby 4 is out';
  const bytes = (until: string) => Buffer.byteLength(text.slice(0, text.indexOf(until)));
  const segment = { startIndex: bytes('Ruby'), endIndex: bytes(' is'), text: 'Ruby 4' };
  const groundingMetadata = {
    webSearchQueries: ['ruby'],
    groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
    groundingSupports: [{ segment, groundingChunkIndices: [0] }],
  };
  const grounded = { candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP', groundingMetadata }] };
  const { events } = eventsOf([grounded]);
  const { citation } = ofType(events, 'citation')[0]!;
  assert.equal(text.slice(citation.start, citation.end), 'Ruby 4');
  const [search] = ofType(events, 'search');
  assert.deepEqual(search!.search.queries, ['ruby']);
  assert.deepEqual(parsedFrames(streamOf(events)).at(-1).candidates[0].groundingMetadata, groundingMetadata);
});

test('code that the vendor ran is fenced text', () => {
  const code = { executableCode: { language: 'PYTHON', code: 'print(1)' } };
  const result = { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } };
  assert.equal(
    textIn(eventsOf([chunk(code, result), last('STOP')]).events),
    '\n```python\nprint(1)\n```\n\n```\n1\n```\n',
  );
});

test('probabilities of tokens are reported with the text and encoded again', () => {
  const logprobsResult = {
    chosenCandidates: [{ token: 'a', logProbability: -0.5 }],
    topCandidates: [{ candidates: [{ token: 'b', logProbability: -1 }] }],
  };
  const { events } = eventsOf([
    { candidates: [{ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP', logprobsResult }] },
  ]);
  assert.deepEqual(ofType(events, 'text-delta').at(-1)!.logprobs, [
    { token: 'a', logprob: -0.5, top: [{ token: 'b', logprob: -1 }] },
  ]);
  const sent = parsedFrames(streamOf(events)).map((frame) => frame.candidates[0].logprobsResult);
  assert.deepEqual(
    sent.filter((one) => one !== undefined),
    [logprobsResult],
  );
});

test('text goes out at once, the reason and the usage in the last chunk, for every candidate', () => {
  const events: Event[] = eventsOf([
    {
      candidates: [
        { content: { parts: [{ text: 'a' }] }, index: 0 },
        { content: { parts: [{ text: 'b' }] }, index: 1 },
      ],
    },
    {
      candidates: [
        { finishReason: 'STOP', index: 0 },
        { finishReason: 'MAX_TOKENS', index: 1 },
      ],
    },
  ]).events;
  const usage = { input: 5, cache_read: 3, cache_write_5m: 2, input_audio: 4, output: 7, reasoning: 6 };
  const frames = parsedFrames(streamOf(events, { usage }));
  assert.deepEqual(
    frames.slice(0, 2).map((frame) => [frame.candidates[0].index, frame.candidates[0].content.parts[0].text]),
    [
      [0, 'a'],
      [1, 'b'],
    ],
  );
  assert.deepEqual(
    frames[2].candidates.map((one: Body) => one.finishReason),
    ['STOP', 'MAX_TOKENS'],
  );
  const { promptTokensDetails, candidatesTokensDetails, ...counts } = frames[2].usageMetadata;
  assert.deepEqual(counts, {
    promptTokenCount: 14,
    candidatesTokenCount: 7,
    thoughtsTokenCount: 6,
    cachedContentTokenCount: 3,
    totalTokenCount: 27,
  });
  assert.deepEqual(promptTokensDetails, [
    { modality: 'TEXT', tokenCount: 10 },
    { modality: 'AUDIO', tokenCount: 4 },
  ]);
  assert.deepEqual(candidatesTokensDetails, [{ modality: 'TEXT', tokenCount: 7 }]);
  for (const frame of frames) assert.equal(frame.modelVersion, 'asked');
});

test('thoughts are shown to clients that asked for them, and their opaque state comes back with the call behind them', () => {
  const events: Event[] = [
    { type: 'reply-start', id: 'id', createdAt: 1, serviceTier: undefined },
    { type: 'reasoning-start', block: 0, choice: 0 },
    { type: 'reasoning-delta', block: 0, choice: 0, text: 'hm' },
    { type: 'reasoning-end', block: 0, choice: 0, opaqueState: 'K1', redacted: false },
    { type: 'reasoning-start', block: 1, choice: 0 },
    { type: 'reasoning-end', block: 1, choice: 0, opaqueState: 'K2', redacted: true },
    { type: 'tool-start', block: 2, choice: 0, id: 'c', name: 'f', namespace: undefined, custom: false },
    { type: 'tool-delta', block: 2, choice: 0, text: '{"n":12345678901234567890}' },
    { type: 'tool-end', block: 2, choice: 0, opaqueState: 'K3', isCut: false },
    { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined },
  ];
  const hidden = parsedFrames(streamOf(events));
  assert.equal(hidden.length, 2);
  const shown = streamOf(events, { request: requestThoughts });
  assert.match(shown, /12345678901234567890/);
  const frames = parsedFrames(shown);
  assert.deepEqual(frames[0].candidates[0].content.parts, [{ text: 'hm', thought: true }]);
  const [part] = frames[1].candidates[0].content.parts;
  assert.match(part.thoughtSignature, /^[A-Za-z0-9+/]+=*$/, 'official clients decode it as base64');
  assert.equal(decodeSlot(part.thoughtSignature, openSeal)!.length, 3);
  const opaqueState = (value: string) => ({ maker: 'maker', value });
  const parts = frames.flatMap((frame) => frame.candidates[0].content.parts);
  const [turn] = turnsOf({ role: 'model', parts });
  assert.deepEqual(turn!.parts.slice(0, 2), [
    { kind: 'reasoning', text: 'hm', opaqueState: opaqueState('K1') },
    { kind: 'reasoning', text: '', opaqueState: opaqueState('K2'), redacted: true },
  ]);
  assert.deepEqual('opaqueState' in turn!.parts[2]! && turn!.parts[2]!.opaqueState, opaqueState('K3'));
});

test('pitfall 036, 037: arguments that are no object are wrapped in one, and line ends do not break the frame', () => {
  const sent = (text: string) => {
    const events: Event[] = [
      { type: 'tool-start', block: 0, choice: 0, id: 'c', name: 'f', namespace: undefined, custom: false },
      { type: 'tool-delta', block: 0, choice: 0, text },
      { type: 'tool-end', block: 0, choice: 0, opaqueState: undefined, isCut: false },
    ];
    return parsedFrames(streamOf(events))[0].candidates[0].content.parts[0].functionCall;
  };
  assert.deepEqual(sent('{"a":').args, { _raw: '{"a":' });
  assert.deepEqual(sent('[1]').args, { value: [1] });
  assert.deepEqual(sent('{\n\n"a": 1}').args, { a: 1 });
  assert.deepEqual(sent('').args, {});
  assert.deepEqual(sent('{}'), { id: 'c', name: 'f', args: {} });
});

test('pitfall 108: a refusal is reported as text that ended for safety', () => {
  const events: Event[] = [
    { type: 'refusal-start', block: 0, choice: 0 },
    { type: 'refusal-delta', block: 0, choice: 0, text: 'no' },
    { type: 'refusal-end', block: 0, choice: 0 },
    { type: 'stop', choice: 0, reason: 'stop', sequence: undefined },
  ];
  const frames = parsedFrames(streamOf(events));
  assert.equal(frames[0].candidates[0].content.parts[0].text, 'no');
  assert.equal(frames[1].candidates[0].finishReason, 'SAFETY');
});

test('a client of the specification reads its own case, one object on each line', () => {
  const { events } = eventsOf([chunk({ text: 'a\nb' }), last('STOP')]);
  const request = { contents: [], max_output_tokens: 9 };
  const lines = streamOf(events, { request, query: '' })
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.length, 2);
  assert.deepEqual(lines[0].candidates, [{ index: 0, content: { parts: [{ text: 'a\nb' }], role: 'model' } }]);
  assert.equal(lines[0].model_version, 'asked');
  assert.equal(lines[0].created, 1_700_000_000);
  assert.equal(lines[1].candidates[0].finish_reason, 'STOP');
  assert.equal(lines[1].usage_metadata.prompt_token_count, 0);
});

test('a stream that breaks ends with an error object in the client’s form', () => {
  const error = new GatewayError('overloaded', 'Try later.');
  const sse = geminiCodec.createEncoder(replyContext()).fail(error);
  assert.equal(JSON.parse(sse.replace('data: ', '')).error.status, 'UNAVAILABLE');
  assert.ok(sse.endsWith('\n\n'));
  const line = geminiCodec.createEncoder(replyContext({ query: '' })).fail(error);
  assert.equal(JSON.parse(line).error.code, 503);
});

test('whatever an upstream sends, the decoder does not throw and tells legal events', () => {
  const member = fc.constantFrom(
    'text',
    'thought',
    'thoughtSignature',
    'functionCall',
    'inlineData',
    'executableCode',
    'fileData',
  );
  const part = fc.dictionary(member, fc.oneof(fc.jsonValue(), fc.boolean(), fc.string()));
  const content = fc.record({ content: fc.record({ parts: fc.array(part) }), finishReason: fc.string() });
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.jsonValue(), fc.record({ candidates: fc.array(content) }))), (chunks) => {
      const objects = chunks.filter((one) => typeof one === 'object' && one !== null && !Array.isArray(one));
      const { events } = eventsOf(objects);
      const open = new Set<number>();
      for (const event of events) {
        if (event.type.endsWith('-start') && 'block' in event) open.add(event.block);
        else if (event.type.endsWith('-end') && 'block' in event) assert.ok(open.delete(event.block));
        else if (event.type.endsWith('-delta') && 'block' in event) assert.ok(open.has(event.block));
      }
      streamOf(events);
    }),
  );
});

test('a recorded answer with a signature is encoded for its client under seal', () => {
  const { response } = recording('gemini', 'google-gemini-3-pro-preview-tools-stream-9198');
  const { events } = eventsOf(chunksOf(response, true));
  const [vendors] = ofType(events, 'tool-end');
  const part = parsedFrames(streamOf(events))[0].candidates[0].content.parts[0];
  assert.deepEqual(decodeSlot(part.thoughtSignature, openSeal), [
    { kind: 'own', content: { maker: 'maker', value: vendors!.opaqueState } },
  ]);
});
