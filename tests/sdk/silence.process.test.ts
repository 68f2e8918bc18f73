/** The official clients and the AI SDK go on reading when a vendor is silent and the gateway sends signs of life; one silence for all. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { type LanguageModel, streamText } from 'ai';
import OpenAI from 'openai';
import { models, spoken, startSilence } from './silence.ts';

let stage: Awaited<ReturnType<typeof startSilence>>;
before(async () => {
  stage = await startSilence();
});
after(() => stage.stop());

const apiKey = 'any';

async function text(pieces: AsyncIterable<string | null | undefined>): Promise<string> {
  let whole = '';
  for await (const piece of pieces) whole += piece ?? '';
  return whole;
}

async function* map<From, To>(from: AsyncIterable<From>, to: (value: From) => To): AsyncGenerator<To> {
  for await (const value of from) yield to(value);
}

async function bySdk(model: LanguageModel): Promise<string> {
  const { textStream } = streamText({
    model,
    prompt: 'Hello?',
    maxRetries: 0,
    onError: ({ error }) => assert.fail(error as Error),
  });
  return text(textStream);
}

/** Each reads the text of one streamed answer. */
const clients: Readonly<Record<string, (model: string) => Promise<string>>> = {
  async chat(model) {
    const client = new OpenAI({ apiKey, baseURL: `${stage.origin}/v1`, maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Hello?' }],
      stream: true,
    });
    return text(map(stream, (chunk) => chunk.choices[0]?.delta.content));
  },
  async responses(model) {
    const client = new OpenAI({ apiKey, baseURL: `${stage.origin}/v1`, maxRetries: 0 });
    const stream = await client.responses.create({ model, input: 'Hello?', stream: true });
    return text(map(stream, (event) => (event.type === 'response.output_text.delta' ? event.delta : '')));
  },
  async messages(model) {
    const client = new Anthropic({ apiKey, baseURL: stage.origin, maxRetries: 0 });
    const stream = client.messages.stream({
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hello?' }],
    });
    return stream.finalText();
  },
  async gemini(model) {
    const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: stage.origin } });
    return text(map(await client.models.generateContentStream({ model, contents: 'Hello?' }), (chunk) => chunk.text));
  },
  'AI SDK chat': (model) => bySdk(createOpenAI({ apiKey, baseURL: `${stage.origin}/v1` }).chat(model)),
  'AI SDK responses': (model) => bySdk(createOpenAI({ apiKey, baseURL: `${stage.origin}/v1` })(model)),
  'AI SDK messages': (model) => bySdk(createAnthropic({ apiKey, baseURL: `${stage.origin}/v1` })(model)),
  'AI SDK gemini': (model) => bySdk(createGoogle({ apiKey, baseURL: `${stage.origin}/v1beta` })(model)),
};

/** The bytes of a stream. */
async function bytes(path: string, body: object): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${stage.origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.text();
}

test('every client reads the whole answer of a vendor that is silent for 17 seconds, in each protocol', async () => {
  const calls = Object.entries(clients).flatMap(([name, send]) =>
    models.map(async (model) => [`${name}: ${model}`, await send(model).catch((error: Error) => error)] as const),
  );
  const messages = [{ role: 'user', content: 'Hello?' }];
  const chats = models.map((model) => bytes('/v1/chat/completions', { model, stream: true, messages }));
  const contents = [{ role: 'user', parts: [{ text: 'Hello?' }] }];
  const generated = models.map((model) => bytes(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents }));
  for (const [name, read] of await Promise.all(calls)) assert.equal(read, spoken, name);
  for (const reported of await Promise.all(chats)) assert.match(reported, /\n\n: keep-alive\n(?:id: \d+\n)?data: /);
  for (const reported of await Promise.all(generated)) {
    assert.doesNotMatch(reported, /^:/m);
    assert.match(reported, /\}(?:\n{4}|(?:\r\n){4})data: \{/);
  }
});
