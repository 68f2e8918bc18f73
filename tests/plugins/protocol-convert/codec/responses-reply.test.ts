/** Streams and answers for responses clients: what official SDKs insist on, and what terminal clients need. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { endOf, framesOf, openSeal, replyContext, streamOf } from './responses-helpers.ts';

/** Two calls at once, then text, a citation, a refusal, a search and an image: all that a stream can hold. */
const rich: readonly Event[] = [
  { type: 'reply-start', id: 'up', createdAt: 1_700_000_000, serviceTier: 'priority' },
  { type: 'reasoning-start', block: 0, choice: 0 },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'Hm.' },
  { type: 'reasoning-end', block: 0, choice: 0, opaqueState: 'sign', redacted: false },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'Sky', logprobs: [{ token: 'Sky', logprob: -0.5 }] },
  { type: 'citation', block: 1, choice: 0, citation: { url: 'https://a.example', title: 'A' } },
  { type: 'text-end', block: 1, choice: 0, opaqueState: undefined },
  { type: 'text-start', block: 2, choice: 0 },
  { type: 'text-delta', block: 2, choice: 0, text: ' blue', logprobs: undefined },
  { type: 'citation', block: 2, choice: 0, citation: { url: 'https://b.example', start: 1, end: 5 } },
  { type: 'text-end', block: 2, choice: 0, opaqueState: 'mine' },
  { type: 'search', block: 3, choice: 0, search: { kind: 'search', id: 'x', queries: ['sky'], results: [] } },
  { type: 'tool-start', block: 4, choice: 0, id: 'c1', name: 'f', namespace: 'ns', custom: false },
  { type: 'tool-start', block: 5, choice: 0, id: 'c2', name: 'g', namespace: undefined, custom: true },
  { type: 'tool-delta', block: 5, choice: 0, text: 'raw' },
  { type: 'tool-delta', block: 4, choice: 0, text: '{"a":' },
  { type: 'tool-delta', block: 4, choice: 0, text: '1}' },
  { type: 'tool-end', block: 5, choice: 0, opaqueState: undefined, isCut: false },
  { type: 'tool-end', block: 4, choice: 0, opaqueState: 'thought', isCut: false },
  {
    type: 'media',
    block: 6,
    choice: 0,
    media: { kind: 'image', source: { form: 'bytes', mediaType: 'image/webp', base64: 'UklGRg==' } },
  },
  { type: 'refusal-start', block: 7, choice: 0 },
  { type: 'refusal-delta', block: 7, choice: 0, text: 'No more.' },
  { type: 'refusal-end', block: 7, choice: 0 },
  { type: 'stop', choice: 0, reason: 'tool-calls', sequence: undefined },
];

test('opaque states of calls and texts travel in reasoning items and come back to their owners', () => {
  const { output } = endOf(streamOf(rich));
  const prompt = responsesCodec.decodeRequest(
    { model: 'm', input: output },
    { dropped: new DroppedParameters(responsesCodec.spelling), open: (text) => openSeal(text) },
  );
  const parts = prompt.turns.flatMap((turn) => turn.parts);
  const kept = parts.flatMap((part) => ('opaqueState' in part ? [[part.kind, part.opaqueState?.value]] : []));
  assert.deepEqual(kept, [
    ['reasoning', 'sign'],
    ['text', 'mine'],
    ['tool-call', 'thought'],
  ]);
});

test('pitfall 153: a broken stream ends with error and response.failed, with codes that terminal clients know', () => {
  const cases = [
    [new GatewayError('rate_limited', 'Slow down.', { retryAfterMs: 1500 }), 'rate_limit_exceeded'],
    [new GatewayError('insufficient_balance', 'Empty.'), 'insufficient_quota'],
    [new GatewayError('invalid_request', 'Too long.', { code: 'context_length_exceeded' }), 'context_length_exceeded'],
    [new GatewayError('upstream_failed', 'Broke.', { code: 'anything' }), 'server_error'],
  ] as const;
  for (const [error, code] of cases) {
    const encoder = responsesCodec.createEncoder(replyContext());
    const text =
      rich
        .slice(0, 6)
        .map((one) => encoder.event(one))
        .join('') + encoder.fail(error);
    const frames = framesOf(text);
    assert.ok(text.endsWith('\n\n'));
    assert.deepEqual(
      frames.map(({ data }) => data['sequence_number']),
      [...frames.keys()],
    );
    assert.deepEqual(
      frames.slice(-2).map(({ event: name }) => name),
      ['error', 'response.failed'],
    );
    const response = frames.at(-1)!.data['response'] as JsonObject;
    assert.equal(response['status'], 'failed');
    assert.equal((response['error'] as JsonObject)['code'], code);
    assert.equal(frames.at(-2)!.data['code'], code);
  }
  const encoder = responsesCodec.createEncoder(replyContext());
  assert.match(encoder.fail(cases[0][0]), /try again in 1\.5s/);
});

test('the AI SDK reads the stream: text, reasoning, calls, sources, usage', async () => {
  const provider = createOpenAI({
    apiKey: 'key',
    fetch: async () => new Response(streamOf(rich), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const { stream } = await provider.responses('m').doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    tools: [{ type: 'function', name: 'f', inputSchema: { type: 'object' } }],
  });
  const parts = [];
  for await (const part of stream) parts.push(part);
  assert.deepEqual(
    parts.filter(({ type }) => type === 'error'),
    [],
  );
  const texts = parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []));
  assert.equal(texts.join(''), 'Sky blueNo more.');
  const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
  assert.ok(calls.includes('c1'));
  const finish = parts.find((part) => part.type === 'finish');
  assert.equal(finish?.usage.inputTokens.total, 16);
  assert.equal(finish?.usage.outputTokens.reasoning, 3);
});
