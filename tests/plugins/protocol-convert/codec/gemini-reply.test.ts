import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GoogleGenAI } from '@google/genai';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import type { Choice, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { type Body, type ClientOptions, maker, replyContext, requestThoughts } from './gemini-harness.ts';

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
