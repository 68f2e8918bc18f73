import assert from 'node:assert/strict';
import { test } from 'node:test';
import { upstreamRequest } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { target } from '../../../plugins/common/domain/upstreams.ts';
import { buildUpstreamRequest } from '../../../plugins/common/kit/upstream-request.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { protocolNamed } from '../../../plugins/protocol-convert/protocols/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { open, type RelayRequest, readBody, relay, targetFor, wholeAnswer } from './harness.ts';

const done = '{"choices":[{}],"usage":{"prompt_tokens":1,"completion_tokens":1}}';

/** What goes to the upstream for this request. */
async function sent(requested: RelayRequest) {
  return (await relay(requested, wholeAnswer(done))).sent;
}

const text = (body: unknown) => Buffer.from(body as Uint8Array).toString();

test('a body goes out as it came: order, spaces, big numbers, unknown fields', async () => {
  const body = '{ "messages" : [ ],\n"seed":12345678901234567890, "model":"m" ,"x":1e400,"y":"\\u00e9é" }';
  assert.equal(text((await sent({ path: '/v1/chat/completions', body })).body), body);
});

test('an alias changes the bytes of the model alone', async () => {
  const body = '{ "messages":[{"role":"user","content":"\\"model\\":\\"m\\""}],  "model" : "m" , "seed":1.0 }';
  const request = await sent({ path: '/v1/chat/completions', body, target: { model: 'real-"m"' } });
  assert.equal(text(request.body), body.replace('"model" : "m"', '"model" : "real-\\"m\\""'));
});

test('fields that the vendor does not take are removed and named in a header', async () => {
  const body = '{"model":"m","top_k":4, "messages":[],"seed":1}';
  const dropFields = { chat: ['seed', 'top_k', 'absent'] };
  const relayed = await relay(
    { path: '/v1/chat/completions', body, target: { upstream: { dropFields } } },
    wholeAnswer(done),
  );
  assert.equal(text(relayed.sent.body), '{"model":"m", "messages":[]}');
  assert.equal(relayed.answer.headers['x-gateway-dropped'], 'seed, top_k');
});

test('with on_loss: refuse such a field is an error that names it', async () => {
  const part = await setUp(protocolConvert, fakeHost(), { on_loss: 'refuse' });
  const { exchange } = open({ path: '/v1/chat/completions', body: { model: 'm', messages: [], seed: 1 } });
  exchange.set(target, targetFor('chat', 'm', { upstream: { dropFields: { chat: ['seed'] } } }));
  await assert.rejects(
    async () => part.handle!(exchange, async () => assert.fail('it must not be sent')),
    (error) => error instanceof GatewayError && error.kind === 'invalid_request' && error.field === 'seed',
  );
});

test('each protocol has its own address at the vendor', async () => {
  const messages = [{ role: 'user', content: 'hi' }];
  const cases: readonly [path: string, body: unknown, url: string][] = [
    ['/v1/chat/completions', { model: 'm', messages }, '/chat/completions'],
    ['/v1/responses', { model: 'm', input: 'x' }, '/responses'],
    ['/v1/responses/compact', { model: 'm', input: 'x' }, '/responses/compact'],
    ['/v1/messages?beta=true', { model: 'm', max_tokens: 1, messages }, '/v1/messages?beta=true'],
    ['/v1/messages/count_tokens', { model: 'm', messages }, '/v1/messages/count_tokens'],
    ['/v1beta/models/m:generateContent', { contents: [] }, '/models/m:generateContent'],
    ['/v1/models/m:countTokens', { contents: [] }, '/models/m:countTokens'],
    ['/v1alpha/models/a/b%20c:generateContent', { contents: [] }, '/models/a/b%20c:generateContent'],
  ];
  for (const [path, body, url] of cases) assert.equal((await sent({ path, body })).url, `http://127.0.0.1:9${url}`);
});

const clientHeaders = {
  'content-type': 'application/json; charset=utf-8',
  accept: 'application/json',
  authorization: 'Bearer client-key',
  'x-api-key': 'client-key',
  'x-goog-api-key': 'client-key',
  cookie: 'session=1',
  host: 'gateway',
  connection: 'keep-alive',
  'accept-encoding': 'gzip, br',
  'x-stainless-lang': 'js',
  'x-forwarded-for': '10.0.0.1',
  'user-agent': 'sdk',
  'openai-organization': 'org-1',
  'openai-beta': 'responses=v1',
  'anthropic-version': '2026-10-21',
  'anthropic-beta': 'context-1m',
  'idempotency-key': 'k',
};

test('headers leave by an allow-list, with the upstream key where the protocol carries it', async () => {
  const common = {
    'content-type': 'application/json; charset=utf-8',
    accept: 'application/json',
    'accept-encoding': 'identity',
  };
  const chat = await sent({ path: '/v1/chat/completions', body: { model: 'm', messages: [] }, headers: clientHeaders });
  assert.deepEqual(chat.headers, { ...common, 'openai-beta': 'responses=v1', authorization: 'Bearer upstream-key' });
  const messages = await sent({
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 1, messages: [] },
    headers: clientHeaders,
  });
  assert.deepEqual(messages.headers, {
    ...common,
    'anthropic-version': '2026-10-21',
    'anthropic-beta': 'context-1m',
    'x-api-key': 'upstream-key',
  });
  const gemini = await sent({
    path: '/v1beta/models/m:generateContent',
    body: { contents: [] },
    headers: clientHeaders,
  });
  assert.deepEqual(gemini.headers, { ...common, 'x-goog-api-key': 'upstream-key' });
});

test('a messages upstream always gets a version, and a provider may set headers and its own place for the key', async () => {
  const { headers } = await sent({
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 1, messages: [] },
    headers: {},
    target: { upstream: { headers: { 'x-extra': '1' }, auth: { header: 'Authorization', value: 'Token {key}' } } },
  });
  assert.equal(headers['anthropic-version'], '2023-06-01');
  assert.equal(headers['authorization'], 'Token upstream-key');
  assert.equal(headers['x-api-key'], undefined);
  assert.equal(headers['x-extra'], '1');
});

test('an upstream asked in two protocols has the key in the place of each, and the key comes as it is', () => {
  const key = "$& a key $' with signs";
  const requested = targetFor('chat', 'm', { upstream: { headers: { 'X-Extra': '1' } }, key: { reveal: () => key } });
  const headersOf = (name: string) =>
    buildUpstreamRequest(protocolNamed(name)!, { headers: {} }, { path: '/', body: '{}' }, requested, false).headers;
  for (let round = 0; round < 2; round++) {
    const [chat, messages] = [headersOf('chat'), headersOf('messages')];
    assert.deepEqual([chat['authorization'], chat['x-api-key'], chat['x-extra']], [`Bearer ${key}`, undefined, '1']);
    assert.deepEqual([messages['authorization'], messages['x-api-key'], messages['x-extra']], [undefined, key, '1']);
  }
});

test('an upstream request has the credential and time-outs of its target', async () => {
  const request = await sent({ path: '/v1/chat/completions', body: { model: 'm', messages: [] } });
  assert.equal(request.credential, 'vendor#1');
  assert.deepEqual(
    [request.connectTimeoutMs, request.firstByteTimeoutMs, request.idleTimeoutMs],
    [1_000, 2_000, 3_000],
  );
});

test('a target of another protocol is asked in its own words, and answers in the client’s', async () => {
  const part = await setUp(protocolConvert, fakeHost());
  const { exchange } = open({
    path: '/v1/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  });
  exchange.set(target, targetFor('messages', 'their-m'));
  const answer = await part.handle!(exchange, async () => {
    const { url, body } = exchange.get(upstreamRequest);
    assert.equal(url, 'http://127.0.0.1:9/v1/messages');
    const sent = JSON.parse(Buffer.from(body as Uint8Array).toString());
    assert.equal(sent.model, 'their-m');
    assert.deepEqual(sent.messages[0].role, 'user');
    return wholeAnswer(
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'their-m',
        content: [{ type: 'text', text: 'hello' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 3, output_tokens: 1 },
      }),
    );
  });
  const reported = JSON.parse((await readBody(answer.body)).toString());
  assert.equal(reported.object, 'chat.completion');
  assert.equal(reported.model, 'm');
  assert.equal(reported.choices[0].message.content, 'hello');
  assert.equal(reported.usage.total_tokens, 4);
});

test('only the exposed protocols have endpoints', async () => {
  const part = await setUp(protocolConvert, fakeHost(), { expose: ['messages'] });
  assert.deepEqual(
    part.endpoints!.map(({ operation }) => operation),
    ['messages', 'count-tokens', 'hello'],
  );
  assert.equal(part.applies!(part.endpoints![0]!), true);
  assert.equal(part.applies!({ method: 'POST', path: '/v1/tasks', operation: 'tasks' }), false);
});

const streamUsageOption = { upstream: { streamUsageOption: true } };
const usageCases: readonly [what: string, body: string, sent: string][] = [
  [
    'absent',
    '{"model":"m","messages":[],"stream":true}',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}',
  ],
  [
    'null',
    '{"model":"m","messages":[],"stream":true,"stream_options":null }',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true} }',
  ],
  [
    'other options',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"a": 1 }}',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"a": 1,"include_usage":true }}',
  ],
  [
    'declined',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":false}}',
    '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}',
  ],
  [
    'asked for',
    '{"model":"m","messages":[],"stream":true,"stream_options": {"include_usage":true} }',
    '{"model":"m","messages":[],"stream":true,"stream_options": {"include_usage":true} }',
  ],
  [
    'of a wrong type',
    '{"model":"m","messages":[],"stream":true,"stream_options":[]}',
    '{"model":"m","messages":[],"stream":true,"stream_options":[]}',
  ],
];
const answered = 'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const streamed = { status: 200, headers: {}, body: Buffer.from(answered) };
for (const [what, body, expected] of usageCases) {
  test(`usage is asked of a chat stream when the client’s option is ${what}`, async () => {
    const { sent: request } = await relay({ path: '/v1/chat/completions', body, target: streamUsageOption }, streamed);
    assert.equal(text(request.body), expected);
  });
}

test('usage is not asked for whole answers, nor of vendors that have no such option', async () => {
  const whole = '{"model":"m","messages":[]}';
  assert.equal(
    text((await sent({ path: '/v1/chat/completions', body: whole, target: streamUsageOption })).body),
    whole,
  );
  const stream = '{"model":"m","messages":[],"stream":true}';
  assert.equal(text((await relay({ path: '/v1/chat/completions', body: stream }, streamed)).sent.body), stream);
});
