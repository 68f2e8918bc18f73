/** Vendors that fail, lie and break off over HTTP: none of their answers is given again, in any pair of protocols, whole or streamed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type Script,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../plugins/common/author/testing.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  const v1 = `${vendor.origin}/v1`;
  const addresses = { chat: v1, responses: v1, messages: vendor.origin, gemini: `${vendor.origin}/v1beta` };
  const provider = (name: DialectName) => ({ keys: `key-of-${name}`, speaks: { [name]: addresses[name] } });
  gateway = await startGateway({
    plugins: ['providers', 'models', 'cache', 'route', 'protocol-convert', 'endpoints'],
    cache: { largest: '64KB', of: [{ keep: '1h', price: 0.1 }] },
    providers: {
      ...Object.fromEntries(dialectNames.map((name) => [name, provider(name)])),
      vectors: { keys: 'key-of-vectors', speaks: { 'gemini-embeddings': `${vendor.origin}/v1beta` } },
    },
    models: {
      ...Object.fromEntries(dialectNames.map((name) => [name, { owned_by: 'v', targets: [name], price: 'free' }])),
      vectors: { kind: 'embedding', owned_by: 'v', targets: ['vectors'], price: 'free' },
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

type Json = Record<string, unknown>;

const base = { id: 'a1', model: 'm' };
const usage = { input_tokens: 10, output_tokens: 1, total_tokens: 11 };
const chatUsage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
const geminiUsage = { promptTokenCount: 10, candidatesTokenCount: 1, totalTokenCount: 11 };
const item = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Fine.', annotations: [] }],
};
const response = { ...base, object: 'response', created_at: 1, status: 'completed', output: [item], usage };

/** Good answers; `mark` is put into the object that an error may stand in beside the answer, `inner` into its choice. */
const wholes: Record<DialectName, (mark: Json, inner: Json) => Json> = {
  chat: (mark, inner) => ({
    ...{ ...base, object: 'chat.completion', created: 1, usage: chatUsage },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop', ...inner }],
    ...mark,
  }),
  responses: (mark, inner) => ({ ...response, ...mark, ...inner }),
  messages: (mark) => ({
    ...{ ...base, type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Fine.' }] },
    ...{ stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } },
    ...mark,
  }),
  gemini: (mark, inner) => ({
    ...{ responseId: 'a1', modelVersion: 'm', usageMetadata: geminiUsage },
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Fine.' }] }, finishReason: 'STOP', ...inner }],
    ...mark,
  }),
};

const chunk = (delta: Json, reason: string | null, more: Json = {}) => ({
  ...{ ...base, object: 'chat.completion.chunk', created: 1 },
  choices: [{ index: 0, delta, finish_reason: reason, ...more }],
});

/** The frames of a good stream; `mark` stands in the last one that has data, `inner` in the choice or answer within it. */
const streams: Record<DialectName, (mark: Json, inner: Json) => (Json | string)[]> = {
  chat: (mark, inner) => [
    chunk({ role: 'assistant', content: 'Fine.' }, null),
    { ...chunk({}, 'stop', inner), usage: chatUsage, ...mark },
    '[DONE]',
  ],
  responses: (mark, inner) => [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    {
      ...{ type: 'response.content_part.added', item_id: 'msg_1', output_index: 0, content_index: 0 },
      part: { type: 'output_text', text: '', annotations: [] },
    },
    {
      ...{ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0 },
      delta: 'Fine.',
    },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { ...response, ...inner }, ...mark },
  ],
  messages: (mark) => [
    {
      type: 'message_start',
      message: {
        ...wholes.messages({}, {}),
        content: [],
        stop_reason: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Fine.' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 1 },
      ...mark,
    },
    { type: 'message_stop' },
  ],
  gemini: (mark, inner) => [
    { ...wholes.gemini({}, {}), candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Fi' }] } }] },
    {
      ...{ responseId: 'a1', modelVersion: 'm', usageMetadata: geminiUsage },
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'ne.' }] }, finishReason: 'STOP', ...inner }],
      ...mark,
    },
  ],
};

function framed(frame: Json | string): string {
  if (typeof frame === 'string') return `data: ${frame}\n\n`;
  const { type } = frame;
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(frame)}\n\n`;
}

const json = { 'content-type': 'application/json' };
const sse = { 'content-type': 'text/event-stream' };

function good(
  name: DialectName,
  stream: boolean,
  mark: Json = {},
  inner: Json = {},
): Omit<Script, 'body'> & { readonly body: string } {
  return stream
    ? { headers: sse, body: streams[name](mark, inner).map(framed).join('') }
    : { headers: json, body: JSON.stringify(wholes[name](mark, inner)) };
}

const error = { message: 'the model broke', type: 'server_error', code: 500 };
/** Without everything that ends it. */
function cut(name: DialectName, stream: boolean): Omit<Script, 'body'> & { readonly body: string } {
  const { headers, body } = good(name, stream);
  if (!stream) return { headers: headers!, body: body.slice(0, -1) };
  const ends = { chat: 2, responses: 1, messages: 2, gemini: 1 };
  return { headers: headers!, body: streams[name]({}, {}).slice(0, -ends[name]).map(framed).join('') };
}

const half = ({ body }: { body: string }) => Math.floor(body.length / 2);

/** `leaves`: nothing ends, and the client goes. */
const faults: Record<string, { of: (name: DialectName, stream: boolean) => Script; leaves?: true }> = {
  'has an error beside it': { of: (name, stream) => good(name, stream, { error }) },
  'has an error in words beside it': { of: (name, stream) => good(name, stream, { error: 'the model broke' }) },
  'has an error within it': {
    of: (name, stream) => good(name, stream, name === 'messages' ? { error } : {}, { error }),
  },
  'is an error with the status 200': { of: () => ({ headers: json, body: JSON.stringify({ error }) }) },
  'is refused': { of: () => ({ status: 400, headers: json, body: JSON.stringify({ error }) }) },
  'is cut, with its connection ended': { of: cut },
  'is cut, with its connection broken': {
    of: (name, stream) => ({ ...good(name, stream), dieAfter: half(good(name, stream)) }),
  },
  'is longer than its content-length': {
    of(name, stream) {
      const whole = good(name, stream);
      return { ...whole, headers: { ...whole.headers, 'content-length': `${half(whole)}` } };
    },
  },
  'is shorter than its content-length': {
    of(name, stream) {
      const part = cut(name, stream);
      const headers = { ...part.headers, 'content-length': `${good(name, stream).body.length}` };
      return { ...part, headers, dieAfter: part.body.length };
    },
  },
  'is a page': { of: () => ({ headers: { 'content-type': 'text/html' }, body: '<html>Fine.</html>' }) },
  'never ends': { leaves: true, of: (name, stream) => ({ ...cut(name, stream), hang: true }) },
};

let questions = 0;

/** How the gateway has answered, and with what. */
async function ask(client: DialectName, model: DialectName, prompt: string, stream: boolean, leaves = false) {
  const question = { model, prompt, stream, ...(client === 'responses' ? { more: { store: false } } : {}) };
  const leaving = new AbortController();
  const asked = vendor.requests.length;
  const pending = fetch(gateway.origin + dialects[client].path(question), {
    method: 'POST',
    signal: leaving.signal,
    headers: { ...json, ...dialects[client].key('none') },
    body: JSON.stringify(dialects[client].body(question)),
  });
  const read = pending.then(async (answer) => ({
    how: answer.headers.get('x-cache'),
    status: answer.status,
    text: await answer.text().catch(() => 'broken'),
  }));
  if (!leaves) return read;
  read.catch(() => undefined);
  while (vendor.requests.length === asked) await new Promise((resolve) => setTimeout(resolve, 2));
  await new Promise((resolve) => setTimeout(resolve, 15));
  leaving.abort();
  return undefined;
}

for (const client of dialectNames)
  for (const model of dialectNames)
    for (const stream of [false, true]) {
      const pair = `a client of ${client}, a vendor of ${model}, ${stream ? 'streamed' : 'whole'}`;
      test(`${pair}: a good answer is given again, and none that fails`, async () => {
        const fine = `question ${questions++}`;
        vendor.play(good(model, stream));
        assert.equal((await ask(client, model, fine, stream))?.how, 'miss');
        const again = await ask(client, model, fine, stream);
        assert.deepEqual([again?.how, again?.text.includes('Fine.') || again?.text.includes('ne.')], ['hit', true]);
        for (const [what, { of, leaves }] of Object.entries(faults)) {
          const prompt = `question ${questions++}`;
          vendor.play(of(model, stream));
          await ask(client, model, prompt, stream, leaves);
          vendor.play(good(model, stream));
          const next = await ask(client, model, prompt, stream);
          assert.deepEqual([next?.status, next?.how], [200, 'miss'], `an answer that ${what}: ${next?.text}`);
        }
      });
    }

test('vectors of a vendor of another protocol are given again, and none beside which it has named an error', async () => {
  const answers = { embeddings: [{ values: [1, 0] }] };
  const embed = async (input: string, mark: Json = {}) => {
    vendor.play({ headers: json, body: JSON.stringify({ ...answers, ...mark }) });
    const answer = await gateway.post('/v1/embeddings', { model: 'vectors', input });
    await answer.text();
    return [answer.status, answer.headers.get('x-cache')];
  };
  assert.deepEqual(
    [await embed('fine'), await embed('fine')],
    [
      [200, 'miss'],
      [200, 'hit'],
    ],
  );
  assert.deepEqual(
    [await embed('marred', { error: 'half of it' }), await embed('marred')],
    [
      [200, 'miss'],
      [200, 'miss'],
    ],
  );
});
