/** The probe of an upstream: each protocol in its own form, whole and streamed; failures are reported without secrets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamRequest } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { upstreamProbes } from '../../../plugins/common/domain/admin/upstreams.ts';
import { catalog, type Model } from '../../../plugins/common/domain/models.ts';
import type { Traits } from '../../../plugins/common/domain/traits.ts';
import { type Provider, providers } from '../../../plugins/common/domain/upstreams.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { families, recordings } from '../../helpers/recordings.ts';

const secret = 'a-key-of-an-unknown-form';
const host = fakeHost();
const speaks = {
  responses: 'http://vendor.test/v1',
  messages: 'http://vendor.test',
  gemini: 'http://vendor.test/v1beta',
  chat: 'http://vendor.test/v1',
};
let traits: Traits = {};
const provider = {
  name: 'vendor',
  speaks,
  traits: {
    auth: undefined,
    headers: { 'x-custom': 'yes' },
    dropFields: {},
    streamUsageOption: true,
    connectTimeoutMs: 60_000,
    firstByteTimeoutMs: 600_000,
    idleTimeoutMs: 1_000,
    drain: { longestMs: 60_000, maxBytes: 1_000 },
  },
} satisfies Provider;
const model = (id: string, kind: Model['kind'], providerName = 'vendor'): Model => ({
  id,
  kind,
  ownedBy: 'vendor',
  created: 0,
  displayName: id,
  targets: [
    { provider: 'elsewhere', model: `far-${id}`, weight: 0 },
    { provider: providerName, model: `up-${id}`, weight: 0, traits },
  ],
  contextTokens: undefined,
  maxOutputTokens: undefined,
  prices: undefined,
});
const models = () => [model('small', 'chat'), model('painter', 'image'), model('other', 'chat', 'elsewhere')];
host.provide(providers, {
  find: (name) => (name === 'vendor' ? provider : undefined),
  list: () => [provider],
  acquireKey: () => assert.fail('a trial takes no key from the pool'),
  findKey: (_, credential) =>
    credential === 'vendor#1' ? { key: { reveal: () => secret }, restsMs: 60_000, disabled: true } : undefined,
  coolDown: () => assert.fail('no key rests for a trial'),
});
host.provide(catalog, { list: models, find: (id) => models().find((each) => each.id === id) });
await setUp(protocolConvert, host);
const upstreamProbesService = host.get(upstreamProbes);

interface Requested {
  readonly protocol?: string;
  readonly model?: string;
  readonly credential?: string;
  readonly provider?: string;
}
/** One trial, of which the vendor makes `answer`. */
async function probe(requested: Requested, answer: (request: UpstreamRequest) => Answer | Promise<Answer>) {
  const sent: UpstreamRequest[] = [];
  const wanted = { provider: 'vendor', credential: 'vendor#1', model: 'small', ...requested };
  const result = await upstreamProbesService.probe(wanted, async (request) => {
    sent.push(request);
    return answer(request);
  });
  return { result, sent: sent[0]!, json: JSON.parse(String(sent[0]!.body)) };
}
const json = (body: object, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
/** In pieces of a few bytes, each of which takes ten milliseconds. */
function stream(...frames: readonly object[]): Answer {
  const text = frames.map(
    (frame) => `${'type' in frame ? `event: ${frame.type}\n` : ''}data: ${JSON.stringify(frame)}\n\n`,
  );
  return pieces(Buffer.from(text.join('')));
}
function pieces(bytes: Buffer, size = 40): Answer {
  async function* body() {
    for (let at = 0; at < bytes.length; at += size) {
      host.advance(10);
      yield bytes.subarray(at, at + size);
    }
  }
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: body() };
}
const chatStream = () =>
  pieces(
    Buffer.from(
      `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"o"}}]}\n\n` +
        `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"k"},"finish_reason":"stop"}]}\n\n` +
        `data: {"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}\n\n` +
        `data: [DONE]\n\n`,
    ),
  );

test('a chat upstream is asked for a few words in a stream, and its first byte and end are timed', async () => {
  const { result, sent, json } = await probe({ protocol: 'chat' }, chatStream);
  assert.equal(sent.url, 'http://vendor.test/v1/chat/completions');
  assert.deepEqual([json.model, json.stream, json.messages.length], ['up-small', true, 1]);
  assert.equal(sent.headers['authorization'], `Bearer ${secret}`);
  assert.equal(sent.headers['x-custom'], 'yes');
  assert.deepEqual([sent.credential, sent.stream, sent.drain], ['vendor#1', true, undefined]);
  assert.deepEqual(
    [sent.connectTimeoutMs, sent.firstByteTimeoutMs, sent.idleTimeoutMs],
    [10_000, 25_000, 1_000],
    'somebody waits for it',
  );
  const { totalMs, ...reported } = result;
  assert.deepEqual(reported, {
    ok: true,
    protocol: 'chat',
    upstreamModel: 'up-small',
    status: 200,
    firstByteMs: 10,
    error: undefined,
    text: 'ok',
    usage: { input: 9, output: 2 },
  });
  assert.ok(totalMs > 50, `${totalMs}`);
});

test('messages, gemini and responses upstreams are asked in their own words', async () => {
  const messages = await probe({ protocol: 'messages' }, () =>
    stream(
      {
        type: 'message_start',
        message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ),
  );
  assert.deepEqual([messages.result.ok, messages.result.text], [true, 'ok']);
  assert.deepEqual(messages.result.usage, { input: 9, output: 2 });
  assert.equal(messages.sent.url, 'http://vendor.test/v1/messages');
  assert.equal(messages.sent.headers['x-api-key'], secret);
  const gemini = await probe({ protocol: 'gemini' }, () =>
    stream({
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 2, totalTokenCount: 11 },
    }),
  );
  assert.deepEqual([gemini.result.ok, gemini.result.text], [true, 'ok']);
  assert.equal(gemini.sent.url, 'http://vendor.test/v1beta/models/up-small:streamGenerateContent?alt=sse');
  const item = {
    type: 'message',
    id: 'i',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'ok', annotations: [] }],
  };
  const usage = { input_tokens: 9, output_tokens: 2, total_tokens: 11 };
  const responses = await probe({}, () =>
    stream(
      { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'ok' },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [item], usage } },
    ),
  );
  assert.deepEqual([responses.result.ok, responses.result.text], [true, 'ok']);
  assert.equal(responses.result.protocol, 'responses', 'the first that it speaks');
  assert.ok(responses.json.max_output_tokens >= 16);
});

test('an upstream that never streams is asked for one body', async () => {
  traits = { streams: 'never' };
  const {
    result,
    sent,
    json: requested,
  } = await probe({ protocol: 'chat' }, () =>
    json({
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
    }),
  );
  traits = {};
  assert.deepEqual([sent.stream, requested.stream ?? false], [false, false]);
  assert.deepEqual([result.ok, result.text, result.usage], [true, 'ok', { input: 9, output: 2 }]);
});

test('a refusal is reported with its status in the vendor’s words, without key, address and organisation', async () => {
  const message = `Incorrect API key ${secret} for org-1234567890 at https://api.vendor.example/keys was sk-abcdefghijkl.`;
  const { result } = await probe({ protocol: 'chat' }, () => json({ error: { message, type: 'auth' } }, 401));
  assert.deepEqual([result.ok, result.status, result.text], [false, 401, '']);
  assert.equal(result.error, 'Incorrect API key *** for *** at *** was ***.');
  const page = await probe({}, () => ({ status: 502, headers: {}, body: '<html>10.1.2.3</html>' }));
  assert.deepEqual([page.result.status, page.result.error], [502, 'It answered 502.']);
});

test('an error inside a 200, a page, an empty answer and half a stream are no success', async () => {
  const inside = await probe({ protocol: 'messages' }, () =>
    stream({ type: 'error', error: { type: 'overloaded_error', message: `Overloaded, ${secret}` } }),
  );
  assert.deepEqual([inside.result.ok, inside.result.status, inside.result.error], [false, 200, 'Overloaded, ***']);
  const document = await probe({ protocol: 'chat' }, () => json({ error: { message: 'no such model' } }));
  assert.deepEqual([document.result.ok, document.result.error], [false, 'no such model']);
  const page = await probe({ protocol: 'chat' }, () => pieces(Buffer.from('<html>Sign in to the proxy</html>')));
  assert.deepEqual([page.result.ok, page.result.error], [false, 'The answer is not complete in its protocol.']);
  const nothing = await probe({ protocol: 'chat' }, () => pieces(Buffer.alloc(0)));
  assert.equal(nothing.result.ok, false);
  const half = await probe({ protocol: 'messages' }, () =>
    stream({ type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 9 } } }),
  );
  assert.equal(half.result.ok, false);
  assert.ok(half.result.firstByteMs! > 0);
});

test('a failure on the wire is a result without a status, and its address is masked', async () => {
  const { result } = await probe({}, () => {
    host.advance(7);
    throw new UpstreamError('connect', 'connect ECONNREFUSED 10.1.2.3:443');
  });
  assert.deepEqual(
    [result.ok, result.status, result.firstByteMs, result.totalMs, result.error],
    [false, undefined, undefined, 7, 'connect ECONNREFUSED ***'],
  );
});

test('an answer without end is left after its time and after its size', async () => {
  const slow = pieces(Buffer.alloc(400_000, ': nothing\n\n'));
  const late = await probe({ protocol: 'chat' }, () => slow);
  assert.equal(late.result.error, 'It did not end in time.');
  assert.ok(late.result.totalMs < 51_000, `${late.result.totalMs}`);
  const large = await probe({ protocol: 'chat' }, () => pieces(Buffer.alloc(3 * 2 ** 20, ': nothing\n\n'), 65_536));
  assert.equal(large.result.error, 'It does not stop answering.');
});

test('the choices are the chat models of the catalogue that the provider serves', () => {
  assert.deepEqual(upstreamProbesService.choices('vendor'), [
    { model: 'small', upstreamModel: 'up-small', protocols: ['responses', 'messages', 'gemini', 'chat'] },
  ]);
});

test('an unknown provider, key or model is named and nothing is sent', async () => {
  for (const [requested, field] of [
    [{ provider: 'missing' }, 'provider'],
    [{ credential: 'vendor#9' }, 'credential'],
    [{ model: 'painter' }, 'model'],
    [{ model: 'other' }, 'model'],
    [{ protocol: 'telegraph' }, 'protocol'],
  ] as const)
    await assert.rejects(
      probe(requested, () => assert.fail('it was sent')),
      (error: GatewayError) => error.kind === 'not_found' && error.field === field,
      field,
    );
});

test('the log says which provider was tested, with the result, without the key', async () => {
  await probe({}, () => json({ error: { message: `bad ${secret}` } }, 401));
  const line = host.lines.findLast(({ message }) => message === 'an upstream was tried out');
  assert.ok(line !== undefined);
  assert.equal(JSON.stringify(line).includes(secret), false);
});

for (const family of families) {
  test(`recorded answers of ${family} vendors give their result, refusals the words of the vendor`, async () => {
    const odd: string[] = [];
    let reported = 0;
    for (const recorded of recordings(family)) {
      const { status, contentType, response } = recorded;
      traits = { streams: recorded.isStream ? 'both' : 'never' };
      const { result } = await probe({ protocol: family }, () => ({
        ...pieces(response, 4_096),
        status,
        headers: contentType === undefined ? {} : { 'content-type': contentType },
      }));
      if (result.ok && result.text !== '') reported++;
      if (result.ok !== status < 300) odd.push(`${recorded.name}: ${status} ${result.error}`);
      if (status >= 300) assert.ok((result.error ?? '') !== '', recorded.name);
    }
    traits = {};
    assert.ok(reported > 3, `${reported} answers were read`);
    // What their vendors themselves call no answer.
    const none = /filtered|too large|could not be used|gave no answer|was cancelled/;
    assert.deepEqual(
      odd.filter((line) => !none.test(line)),
      [],
    );
  });
}
