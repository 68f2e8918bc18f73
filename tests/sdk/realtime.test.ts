/** The official clients' realtime classes before the demo gateway. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { GoogleGenAI, type LiveServerMessage, Modality } from '@google/genai';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import { caFile, startTlsFront } from '../helpers/tls-front.ts';
import { type Demo, startDemo } from './demo.ts';

const ca = readFileSync(caFile);
let demo: Demo;
/** The OpenAI client's class connects with TLS alone. */
let front: Awaited<ReturnType<typeof startTlsFront>>;
before(async () => {
  demo = await startDemo();
  front = await startTlsFront(demo.origin);
});
after(async () => {
  front.close();
  await demo.stop();
});

const clientWith = (apiKey: string) => new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey, maxRetries: 0 });

function socketOf(apiKey: string, model = 'gpt-realtime-1.5'): OpenAIRealtimeWS {
  const client = new OpenAI({ baseURL: `${front.origin}/v1`, apiKey, maxRetries: 0 });
  return new OpenAIRealtimeWS({ model, options: { ca } }, client);
}

/** Says something, and resolves with the events up to the response's end. */
function spoken(socket: OpenAIRealtimeWS): Promise<RealtimeServerEvent[]> {
  const events: RealtimeServerEvent[] = [];
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('event', (event) => {
      events.push(event);
      if (event.type === 'session.created') {
        socket.send({
          type: 'conversation.item.create',
          item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello, gateway' }] },
        });
        socket.send({ type: 'response.create' });
      }
      if (event.type === 'response.done') resolve(events);
    });
  });
}

test('OpenAIRealtimeWS sends text and gets real PCM and a usage', async () => {
  const socket = socketOf(demo.keys.good);
  const events = await spoken(socket);
  socket.close();
  const audio = events.flatMap((event) =>
    event.type === 'response.output_audio.delta' ? [Buffer.from(event.delta, 'base64')] : [],
  );
  assert.ok(Buffer.concat(audio).length > 10_000);
  const done = events.at(-1)!;
  assert.ok(done.type === 'response.done' && done.response.usage!.output_token_details!.audio_tokens! > 0);
});

test('a client secret of the official client opens a session', async () => {
  const session = { type: 'realtime', model: 'gpt-realtime-1.5', instructions: 'Be brief.' } as const;
  const { value } = await clientWith(demo.keys.good).realtime.clientSecrets.create({ session });
  const socket = socketOf(value);
  const events = await spoken(socket);
  socket.close();
  assert.ok(events.some((event) => event.type === 'session.updated'));
});

test('a wrong key and an unknown model are errors of the official client', async () => {
  for (const [key, model] of [
    ['sk-wrong', 'gpt-realtime-1.5'],
    [demo.keys.good, 'gpt-nowhere'],
  ] as const)
    await assert.rejects(spoken(socketOf(key, model)), /40[14]/);
});

test("Google's live.connect has turns in text and audio", async () => {
  const ai = new GoogleGenAI({ apiKey: demo.keys.good, httpOptions: { baseUrl: demo.origin } });
  const messages: LiveServerMessage[] = [];
  let wake = () => {};
  const session = await ai.live.connect({
    model: 'gemini-2.5-flash-native-audio-preview-12-2025',
    config: { responseModalities: [Modality.AUDIO] },
    callbacks: {
      onmessage: (message) => {
        messages.push(message);
        wake();
      },
    },
  });
  session.sendClientContent({ turns: 'Hello, gateway', turnComplete: true });
  while (!messages.some(({ serverContent }) => serverContent?.turnComplete === true))
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  session.close();
  const parts = messages.flatMap(({ serverContent }) => serverContent?.modelTurn?.parts ?? []);
  assert.ok(
    parts.length > 0 && parts.every(({ inlineData }) => inlineData?.mimeType?.startsWith('audio/pcm') === true),
  );
  assert.ok(messages.at(-1)!.usageMetadata!.responseTokenCount! > 0);
});

test('a token of the official client opens its number of live sessions, with its own settings', async () => {
  const version = { baseUrl: demo.origin, apiVersion: 'v1alpha' };
  const model = 'gemini-2.5-flash-native-audio-preview-12-2025';
  const { authTokens } = new GoogleGenAI({ apiKey: demo.keys.good, httpOptions: version });
  const token = await authTokens.create({
    config: {
      uses: 1,
      expireTime: new Date(Date.now() + 600_000).toISOString(),
      liveConnectConstraints: { model, config: { responseModalities: [Modality.TEXT] } },
      lockAdditionalFields: [],
    },
  });
  assert.match(token.name!, /^auth_tokens\/[0-9a-f]{64}$/);
  const ai = new GoogleGenAI({ apiKey: token.name!, httpOptions: version });
  let answered: (text: string) => void = () => {};
  const text = new Promise<string>((resolve) => {
    answered = resolve;
  });
  let said = '';
  const onmessage = ({ serverContent }: LiveServerMessage) => {
    for (const part of serverContent?.modelTurn?.parts ?? []) said += part.text ?? part.inlineData?.mimeType ?? '';
    if (serverContent?.turnComplete === true) answered(said);
  };
  const requested = {
    model: 'another-model',
    config: { responseModalities: [Modality.AUDIO] },
    callbacks: { onmessage },
  };
  const session = await ai.live.connect(requested);
  session.sendClientContent({ turns: 'Hello, gateway', turnComplete: true });
  assert.match(await text, /Hello, gateway/);
  session.close();
  await assert.rejects(ai.live.connect(requested), /1008.*as many sessions/);
  await assert.rejects(ai.models.generateContent({ model: 'gpt-5.4-mini', contents: 'x' }));
});
