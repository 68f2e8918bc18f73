import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GoogleGenAI } from '@google/genai';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import type { Choice, Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { decodeSlot } from '../../../../plugins/protocol-convert/protocols/gemini/signatures.ts';
import { type Body, type ClientOptions, maker, openSeal, replyContext, requestThoughts } from './gemini-harness.ts';

function encodedReply(choices: readonly Partial<Choice>[], options: ClientOptions = {}): Body {
  const whole = choices.map(
    (choice): Choice => ({ parts: [], stop: 'stop', sequence: undefined, cutCalls: new Set(), ...choice }),
  );
  const reply: Reply = { id: 'id', createdAt: 5, serviceTier: 'default', choices: whole };
  return geminiCodec.encodeReply(reply, replyContext(options));
}
const opaqueState = (value: string) => ({ maker, value });
const text = (words: string): Part => ({ kind: 'text', text: words });
const parts: Part[] = [
  { kind: 'reasoning', text: 'hm', opaqueState: opaqueState('K1') },
  text('a'),
  { kind: 'tool-call', id: 'c', name: 'f', input: '{"x":1}', opaqueState: opaqueState('K2') },
  { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: 'iVBORw0KGgo=' } },
];

test('a whole answer has its parts in order, its usage, and the model as it was asked for', () => {
  const answer = encodedReply([{ parts, stop: 'tool-calls' }], {
    usage: { input: 3, cache_read: 2, output: 4, reasoning: 5 },
  });
  const [candidate] = answer.candidates;
  assert.deepEqual(
    candidate.content.parts.map((part: Body) => Object.keys(part)[0]),
    ['text', 'functionCall', 'inlineData'],
  );
  assert.deepEqual(candidate.content.parts[1].functionCall, { id: 'c', name: 'f', args: { x: 1 } });
  assert.deepEqual([candidate.finishReason, candidate.index, candidate.content.role], ['STOP', 0, 'model']);
  assert.deepEqual([answer.modelVersion, answer.responseId], ['asked', 'id']);
  const {
    promptTokenCount,
    candidatesTokenCount,
    thoughtsTokenCount,
    cachedContentTokenCount,
    totalTokenCount,
    serviceTier,
  } = answer.usageMetadata;
  assert.deepEqual(
    [promptTokenCount, candidatesTokenCount, thoughtsTokenCount, cachedContentTokenCount, totalTokenCount, serviceTier],
    [5, 4, 5, 2, 14, 'standard'],
  );
});

test('a signature of reasoning goes with the part behind it, whether thoughts are shown or not', () => {
  for (const request of [{ contents: [] }, requestThoughts]) {
    const all: Body[] = encodedReply([{ parts }], { request }).candidates[0].content.parts;
    assert.equal(
      all.some((part) => part.thought === true),
      request === requestThoughts,
    );
    const [said, call] = all.filter((part) => part.thought !== true);
    assert.deepEqual(decodeSlot(said.thoughtSignature, openSeal), [{ kind: 'reasoning', content: opaqueState('K1') }]);
    assert.deepEqual(decodeSlot(call.thoughtSignature, openSeal), [{ kind: 'own', content: opaqueState('K2') }]);
  }
  const alone = encodedReply([{ parts: [parts[0]!] }]).candidates[0].content.parts;
  assert.deepEqual([alone.length, alone[0].text], [1, '']);
  assert.deepEqual(decodeSlot(alone[0].thoughtSignature, openSeal), [
    { kind: 'reasoning', content: opaqueState('K1') },
  ]);
});

test('pitfall 046: a call that was cut off is not handed on', () => {
  const [candidate] = encodedReply([{ parts, stop: 'length', cutCalls: new Set(['c']) }]).candidates;
  assert.equal(
    candidate.content.parts.some((part: Body) => part.functionCall),
    false,
  );
  assert.equal(candidate.finishReason, 'MAX_TOKENS');
});

test('pitfall 108, 109: each choice is a candidate with its own reason, refusals end for safety', () => {
  const refusal: Part = { kind: 'refusal', text: 'no' };
  const { candidates } = encodedReply([
    { parts: [text('a')] },
    { parts: [refusal] },
    { stop: 'refusal' },
    { stop: 'pause' },
  ]);
  assert.deepEqual(
    candidates.map((one: Body) => [one.index, one.finishReason, one.content.parts[0].text]),
    [
      [0, 'STOP', 'a'],
      [1, 'SAFETY', 'no'],
      [2, 'SAFETY', ''],
      [3, 'STOP', ''],
    ],
  );
});

test('citations and searches become grounding', () => {
  const cited: Part = {
    kind: 'text',
    text: 'äb',
    citations: [{ url: 'https://a.example', title: 'A', start: 1, end: 2 }],
  };
  const [candidate] = encodedReply([{ parts: [text('é'), cited] }]).candidates;
  assert.deepEqual(candidate.groundingMetadata, {
    groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
    groundingSupports: [{ segment: { startIndex: 4, endIndex: 5, text: 'b' }, groundingChunkIndices: [0] }],
  });
});

test('a client of the specification reads a whole answer in its own case', () => {
  const request = { contents: [], max_output_tokens: 5 };
  const answer = encodedReply([{ parts: [text('a')] }], { request, usage: { output: 1 } });
  assert.equal(answer.candidates[0].finish_reason, 'STOP');
  assert.equal(answer.usage_metadata.candidates_token_count, 1);
  assert.deepEqual([answer.model_version, answer.created], ['asked', 1_700_000_000]);
});

test('a whole answer is read with a stop for each candidate', () => {
  const sent: Event[] = [];
  const events = new ReplyEvents((event) => sent.push(event), { names: new Map(), idSeed: 's' });
  const candidate = (index: number) => ({ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP', index });
  geminiCodec.decodeReply(
    {
      candidates: [candidate(0), candidate(1)],
      responseId: 'r',
      createTime: '2026-08-19T14:34:41.183610Z',
      usageMetadata: { serviceTier: 'flex' },
    },
    events,
  );
  assert.deepEqual(sent[0], { type: 'reply-start', id: 'r', createdAt: 1_787_150_081, serviceTier: 'flex' });
  assert.deepEqual(
    sent.filter((event) => event.type === 'stop').map((event) => event.choice),
    [0, 1],
  );
});

test('the official SDK reads a translated whole answer', async () => {
  const body = JSON.stringify(
    encodedReply([{ parts, stop: 'tool-calls' }], { request: requestThoughts, usage: { input: 1, output: 2 } }),
  );
  const fetch = async () => new Response(body, { headers: { 'content-type': 'application/json' } });
  const sdk = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: 'http://127.0.0.1:1', fetch } });
  const answer = await sdk.models.generateContent({ model: 'm', contents: 'x' });
  assert.deepEqual(answer.functionCalls, [{ id: 'c', name: 'f', args: { x: 1 } }]);
  assert.equal(answer.usageMetadata?.totalTokenCount, 3);
  assert.equal(answer.candidates?.[0]?.finishReason, 'STOP');
});
