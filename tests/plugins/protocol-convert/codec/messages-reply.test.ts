/** The messages codec on whole answers; and the AI SDK as a second reader of what comes out, whole and streamed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import type { Message } from '@anthropic-ai/sdk/resources/messages';
import { generateText, streamText } from 'ai';
import type { JsonObject } from '../../../../core/json/json.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { recordings } from '../../../helpers/recordings.ts';
import {
  encoded,
  essence,
  eventsOf,
  eventsOfReply,
  payloadsOf,
  plainSeal,
  replyContext,
  replyOf,
} from './messages-harness.ts';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const answered = recordings('messages').filter((one) => one.status === 200);

for (const recording of answered.filter((one) => !one.isStream)) {
  test(`${recording.name} is decoded whole and encoded whole without loss`, () => {
    const before = JSON.parse(recording.response.toString()) as Message;
    const events = eventsOfReply(before as unknown as JsonObject);
    const after = messagesCodec.encodeReply(replyOf(events), replyContext({ seal: plainSeal }));
    const sent = essence(after as unknown as Message);
    // Code that the vendor ran is reported as text in fences.
    const content = sent.content.filter(([, text]) => !String(text).startsWith('\n```'));
    assert.deepEqual({ ...sent, content }, essence(before));
  });
}

test('every recorded answer is accepted by the AI SDK, whole and streamed, with the same text', async () => {
  for (const { isStream, name, response } of answered) {
    const events = isStream
      ? eventsOf(payloadsOf(response))
      : eventsOfReply(JSON.parse(response.toString()) as JsonObject);
    const whole = JSON.stringify(messagesCodec.encodeReply(replyOf(events), replyContext()));
    const sent = await generateText({ model: modelThatSays(whole, 'application/json'), prompt: 'x', maxRetries: 0 });
    const stream = streamText({
      model: modelThatSays(encoded(events), 'text/event-stream'),
      prompt: 'x',
      maxRetries: 0,
      onError: ({ error }) => assert.fail(`${name}: ${String(error)}`),
    });
    assert.equal(await stream.text, sent.text, name);
    assert.equal(await stream.finishReason, sent.finishReason, name);
    const texts = events.map((event) => (event.type === 'text-delta' ? event.text : ''));
    assert.equal(sent.text, texts.join(''), name);
  }
});

function modelThatSays(body: string, type: string) {
  const answer = async () => new Response(body, { headers: { 'content-type': type } });
  return createAnthropic({ apiKey: 'none', baseURL: 'http://127.0.0.1:1', fetch: answer })('m');
}
