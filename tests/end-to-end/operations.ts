/** Every operation that is charged, with the settings of a gateway that has them all on vendors of the sandbox and one with batches of its own. */
import { until } from '../helpers/until.ts';
import { talk } from './sockets.ts';

const price = { input: 1, output: 2 };
const entry = (kind: string, cost: object, ...targets: string[]) => ({ kind, owned_by: 'test', targets, price: cost });

/** `native`: the origin of a vendor with batches. */
export function operationSections(native: string): Readonly<Record<string, object>> {
  const v1 = 'sandbox:/v1';
  const speaks = { chat: v1, responses: v1, messages: 'sandbox:', gemini: 'sandbox:/v1beta' };
  return {
    providers: {
      vendor: { keys: 'k', speaks },
      gone: { keys: 'k', speaks: { chat: 'http://127.0.0.1:9/v1' } },
      others: {
        keys: 'k',
        speaks: {
          ...{ 'openai-embeddings': v1, 'openai-images': v1, 'openai-speech': v1, 'openai-transcriptions': v1 },
          ...{ 'openai-moderations': v1, 'cohere-rerank': 'sandbox:/v2', 'openai-realtime': v1 },
          ...{ 'gemini-live': 'sandbox:', 'ark-videos': 'sandbox:/api/v3' },
        },
      },
      native: { keys: 'key', speaks: { chat: `${native}/v1` }, dialect: { chat: { batches: 'native' } } },
    },
    models: {
      m: entry('chat', price, 'vendor'),
      fallback: entry('chat', price, 'gone', 'vendor'),
      gone: entry('chat', price, 'gone'),
      lines: {
        ...entry('chat', { ...price, service: { batch: 0.5 } }, 'native/real'),
        context: '100k',
        max_output: 100,
      },
      e: entry('embedding', { input: 1 }, 'others'),
      i: entry('image', { image: 0.01 }, 'others'),
      v: entry('video', { second: 0.01, output: 1 }, 'others'),
      s: entry('speech', { character: 15 }, 'others'),
      t: entry('transcription', { audio: 0.36 }, 'others'),
      r: entry('rerank', { search: 0.002 }, 'others'),
      mod: entry('moderation', { input: 1 }, 'others'),
      talk: entry('realtime', { input: 1, output: 2, input_audio: 2, output_audio: 4 }, 'others'),
    },
    batches: { native: { poll: '50ms', settle: '200ms' } },
    'task-store': { expose: ['images', 'videos'] },
    sandbox: { listen: '127.0.0.1:0' },
  };
}

/** Lines of YAML. */
export const yamlOf = (sections: Readonly<Record<string, object>>): string =>
  Object.entries(sections)
    .map(([name, section]) => `${name}: ${JSON.stringify(section)}`)
    .join('\n');

export interface Caller {
  readonly origin: string;
  readonly key: string;
}

export async function post(
  { origin, key }: Caller,
  path: string,
  body: object | FormData,
  headers: Record<string, string> = {},
): Promise<Response> {
  const type = body instanceof FormData ? {} : { 'content-type': 'application/json' };
  const sent = body instanceof FormData ? body : JSON.stringify(body);
  return fetch(origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...type, ...headers },
    body: sent,
  });
}

export const messages = [{ role: 'user', content: 'Hello' }];
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];

function form(fields: Record<string, string | Blob>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') made.set(name, value);
    else made.set(name, value, 'a.bin');
  return made;
}

/** One second of silence. */
function wav(): Blob {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + 16_000, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(16_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(16_000, 40);
  return new Blob([head, Buffer.alloc(16_000)]);
}

/** The answer to the order, of as many lines. */
export async function batchOf(client: Caller, model: string, lines = 1, content = 'Hello'): Promise<Response> {
  const body = { model, max_tokens: 50, messages: [{ role: 'user', content }] };
  const line = (id: number) =>
    JSON.stringify({ custom_id: `line ${id}`, method: 'POST', url: '/v1/chat/completions', body });
  const text = Array.from({ length: lines }, (_, id) => line(id)).join('\n');
  const file = await post(client, '/v1/files', form({ purpose: 'batch', file: new Blob([text]) }));
  const { id: input } = (await file.json()) as { id: string };
  const order = { input_file_id: input, endpoint: '/v1/chat/completions', completion_window: '24h' };
  return post(client, '/v1/batches', order);
}

async function turnOfResponses({ origin, key }: Caller): Promise<void> {
  const client = await talk(origin, key);
  await client.turn({ model: 'm', input: 'Hello' });
  await client.close();
}

async function realtimeResponse({ origin, key }: Caller): Promise<void> {
  const client = await talk(origin, key, '/v1/realtime?model=talk');
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] };
  client.send({ type: 'conversation.item.create', item });
  client.send({ type: 'response.create', response: { output_modalities: ['text'] } });
  await until('the response is done', () => client.messages.some(({ type }) => type === 'response.done'));
  await client.close();
}

async function liveTurn({ origin, key }: Caller): Promise<void> {
  const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
  const client = await talk(origin, key, path, { 'x-goog-api-key': key });
  client.send({ setup: { model: 'models/talk' } });
  await until('it is set up', () => client.messages.length > 0);
  client.send({ clientContent: { turns: contents, turnComplete: true } });
  await until('the turn has ended', () => client.messages.some(({ serverContent: one }) => one?.turnComplete === true));
  await client.close();
}

/** Each makes one call that is charged; sessions open by another one, which costs nothing. */
export const operations: Readonly<
  Record<string, readonly [operation: string, request: (client: Caller) => Promise<unknown>]>
> = {
  chat: ['chat', (client) => post(client, '/v1/chat/completions', { model: 'm', messages })],
  'streamed chat': ['chat', (client) => post(client, '/v1/chat/completions', { model: 'm', messages, stream: true })],
  'chat by a second target': [
    'chat',
    (client) => post(client, '/v1/chat/completions', { model: 'fallback', messages }),
  ],
  responses: ['responses', (client) => post(client, '/v1/responses', { model: 'm', input: 'Hello' })],
  messages: ['messages', (client) => post(client, '/v1/messages', { model: 'm', max_tokens: 50, messages })],
  'generate-content': ['generate-content', (client) => post(client, '/v1beta/models/m:generateContent', { contents })],
  completions: ['completions', (client) => post(client, '/v1/completions', { model: 'm', prompt: 'Hello' })],
  embeddings: ['embeddings', (client) => post(client, '/v1/embeddings', { model: 'e', input: 'Hello' })],
  rerank: ['rerank', (client) => post(client, '/v1/rerank', { model: 'r', query: 'a', documents: ['a', 'b'] })],
  moderations: ['moderations', (client) => post(client, '/v1/moderations', { model: 'mod', input: 'Hello' })],
  speech: ['speech', (client) => post(client, '/v1/audio/speech', { model: 's', input: 'Hello', voice: 'alloy' })],
  transcriptions: [
    'transcriptions',
    (client) => post(client, '/v1/audio/transcriptions', form({ model: 't', file: wav() })),
  ],
  images: ['images', (client) => post(client, '/v1/images/generations', { model: 'i', prompt: 'a boat' })],
  videos: [
    'videos',
    (client) =>
      post(client, '/v1/contents/generations/tasks', { model: 'v', content: [{ type: 'text', text: 'a boat' }] }),
  ],
  'a line of a batch': ['chat', (client) => batchOf(client, 'm')],
  "a line of a vendor's batch": ['chat', (client) => batchOf(client, 'lines')],
  'a turn of responses over WebSocket': ['responses', turnOfResponses],
  'a response of a realtime session': ['realtime', realtimeResponse],
  'a turn of a live session': ['realtime', liveTurn],
};
