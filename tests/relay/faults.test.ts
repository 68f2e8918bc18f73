/** What a client sees when the vendor misbehaves, through a real gateway. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as send } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { recording } from '../helpers/recordings.ts';
import { nextObserved } from './probe.ts';
import { type Stage, startStage } from './stage.ts';

let stage: Stage;
before(async () => {
  const keys = Array.from({ length: 40 }, (_, index) => `vendor-key-${index}`);
  stage = await startStage({ keys, timeouts: { connect: '1s', first_byte: '400ms', idle: '400ms' } });
});
after(() => stage.stop());

const chat = '/v1/chat/completions';
const chatBody = JSON.stringify({ model: 'alias', messages: [], stream: true });
const wholeBody = JSON.stringify({ model: 'alias', messages: [] });
const eventStream = { 'content-type': 'text/event-stream' };
const sse = (...frames: object[]) => frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
const delta = (content: string) => ({ id: 'c1', choices: [{ index: 0, delta: { content } }] });
const done = 'data: [DONE]\n\n';

test("the vendor gets an alias, the usage option and its key, and none of the client's headers", async () => {
  const body = '{ "stream":true,"model":"alias" , "messages":[] }';
  await stage.send(
    chat,
    body,
    { headers: eventStream, body: sse(delta('a')) + done },
    { authorization: 'Bearer client', cookie: 'a=b' },
  );
  const { url, headers, body: sent } = stage.vendor.requests.at(-1)!;
  assert.equal(url, '/v1/chat/completions');
  assert.equal(
    sent.toString(),
    '{ "stream":true,"model":"real/model" , "messages":[],"stream_options":{"include_usage":true} }',
  );
  assert.match(headers.authorization!, /^Bearer vendor-key-\d+$/);
  assert.equal(headers.cookie, undefined);
  assert.equal(headers['accept-encoding'], 'identity');
});

test('a usage frame that the client did not request does not reach it, and is metered', async () => {
  const usage = { id: 'c1', choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } };
  const script = { headers: eventStream, body: sse(delta('a'), usage) + done, cuts: [10, 60, 90, 100, 130] };
  const reply = await stage.send(chat, chatBody, script);
  assert.equal(reply.body.toString(), sse(delta('a')) + done);
  assert.deepEqual(reply.observed.report!.usage, { input: 5, output: 2 });
});

test("a vendor that dies in mid-stream leaves whole frames and the protocol's error", async () => {
  const text = sse(delta('Hello'), delta('World'));
  for (const dieAfter of [text.length, text.length - 20, text.length / 2 + 3]) {
    const reply = await stage.send(chat, chatBody, {
      headers: eventStream,
      body: text,
      dieAfter: Math.floor(dieAfter),
      pauseMs: 5,
    });
    assert.equal(reply.status, 200);
    const frames = reply.body
      .toString()
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => JSON.parse(frame.slice(6)));
    assert.equal(frames.pop().error.type, 'server_error');
    assert.ok(frames.length > 0 && frames.every((frame) => frame.id === 'c1'));
    assert.equal(reply.observed.outcome.kind, 'failed');
    assert.equal(reply.observed.outcome.error!.kind, 'upstream_failed');
    assert.equal(reply.observed.report!.terminal, false);
    assert.ok(reply.observed.report!.usage.output! >= 2);
  }
});

test('a vendor that falls silent in mid-stream ends in a time-out of the protocol', async () => {
  const reply = await stage.send(chat, chatBody, { headers: eventStream, body: sse(delta('Hello')), hang: true });
  assert.match(reply.body.toString(), /"code":"timeout"/);
  assert.equal(reply.observed.outcome.error!.kind, 'upstream_timeout');
});

test('a vendor that keeps the socket open after its end does not keep the client', async () => {
  const { response } = recording('messages', 'anthropic-claude-haiku-4-5-20251001-stop-sequence-stream-88df');
  const body = JSON.stringify({ model: 'alias', max_tokens: 9, messages: [], stream: true });
  const startedAt = performance.now();
  const reply = await stage.send('/v1/messages', body, { headers: eventStream, body: response, hang: true });
  assert.ok(performance.now() - startedAt < 10_000, 'the answer waited for the socket');
  assert.deepEqual(reply.body, response);
  assert.equal(reply.observed.outcome.kind, 'complete');
});

test("the vendor's sockets are used again after streams that ended well", async () => {
  const keys = 40;
  const { response } = recording('chat', 'openai-gpt-4.1-text-stream-7be0');
  const script = { headers: eventStream, body: response, cuts: [100, response.length - 5] };
  // A key comes again 39 calls later: by then its answer's last bytes have come, behind those that the client waits for.
  const sendAll = async () => {
    for (let round = 0; round < keys; round++) await stage.send(chat, chatBody, script);
  };
  await sendAll();
  const before = stage.vendor.connections();
  await sendAll();
  assert.equal(stage.vendor.connections() - before, 0);
});

test("a client's disconnection reaches the vendor at once, before and after the first byte", async () => {
  for (const script of [{ headDelayMs: 5_000 }, { headers: eventStream, body: sse(delta('Hello')), hang: true }]) {
    stage.vendor.play(script);
    const before = stage.vendor.requests.length;
    const observed = nextObserved();
    const request = send(`${stage.origin}${chat}`, { method: 'POST', headers: { 'content-type': 'application/json' } });
    request.on('error', () => {});
    request.end(chatBody);
    if (script.headDelayMs === undefined) {
      const [answer] = await once(request, 'response');
      await once(answer, 'data');
    }
    while (stage.vendor.requests.length === before) await sleep(2);
    const leftAt = performance.now();
    request.destroy();
    await stage.vendor.requests.at(-1)!.closed;
    assert.ok(performance.now() - leftAt < 5_000, 'the vendor was kept waiting');
    const { outcome, report } = await observed;
    assert.equal(outcome.kind, 'client_left');
    if (script.headDelayMs === undefined) {
      assert.equal(report!.estimated, true);
      assert.ok(report!.usage.input! > 0 && report!.usage.output! >= 1);
    }
  }
});

test('an error in the first frame of a 200 has an error status for the client', async () => {
  const frame =
    'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"No such tool"}}\n\n';
  const body = JSON.stringify({ model: 'alias', max_tokens: 9, messages: [], stream: true });
  const reply = await stage.send('/v1/messages', body, { headers: eventStream, body: frame });
  assert.equal(reply.status, 400);
  assert.deepEqual(JSON.parse(reply.body.toString()).error, { type: 'invalid_request_error', message: 'No such tool' });
});

test('HTML pages, redirects and refused keys are never relayed', async () => {
  const page = { headers: { 'content-type': 'text/html' }, body: '<h1>Vendor at 10.0.0.1</h1>' };
  for (const [body, script] of [
    [wholeBody, page],
    [chatBody, page],
    [wholeBody, { status: 302, headers: { location: `${stage.vendor.origin}/elsewhere` }, body: '' }],
    [wholeBody, { status: 401, body: '{"error":{"message":"Incorrect API key provided: vendor-key-1"}}' }],
  ] as const) {
    const reply = await stage.send(chat, body, script);
    assert.equal(reply.status, 502);
    assert.doesNotMatch(reply.body.toString(), /Vendor|vendor-key|10\.0/);
    assert.equal(stage.vendor.requests.at(-1)!.url, chat);
  }
});

test("a refused request is returned with the vendor's message, and a wait is passed on", async () => {
  const words = '{ "error": {"message":"messages.1.role: Input should be \'user\'","type":"invalid_request_error"} }';
  const reply = await stage.send(chat, wholeBody, { status: 400, body: words });
  assert.deepEqual([reply.status, reply.body.toString()], [400, words]);
  const limited = await stage.send(chat, wholeBody, {
    status: 429,
    headers: { 'retry-after': '7', 'content-type': 'application/json' },
    body: '{"error":{"message":"slow down"}}',
  });
  assert.deepEqual([limited.status, limited.headers['retry-after']], [429, '7']);
});

test('a vendor that dies before its head is tried once more, and the client may repeat the final refusal', async () => {
  const before = stage.vendor.requests.length;
  stage.vendor.play({ dieAtOnce: true });
  const reply = await stage.send(chat, wholeBody, { dieAtOnce: true });
  assert.deepEqual([reply.status, reply.headers['x-should-retry']], [502, 'true']);
  assert.equal(stage.vendor.requests.length, before + 2);
});

test('a vendor that answers too late is a time-out', async () => {
  const reply = await stage.send(chat, wholeBody, { headDelayMs: 1_500 });
  assert.equal(reply.status, 504);
});

test('a body that is no JSON, an invalid model and a missing field are errors of the protocol', async () => {
  const cases: readonly [string, string, number, string][] = [
    [chat, '{', 400, 'invalid_request_error'],
    [chat, '{"model":"none","messages":[]}', 404, 'invalid_request_error'],
    ['/v1/messages', '{"model":"alias","messages":[]}', 400, 'invalid_request_error'],
    ['/v1beta/models/alias:generateContent', '[]', 400, 'INVALID_ARGUMENT'],
    ['/v1beta/models/alias:fly', '{}', 404, 'NOT_FOUND'],
  ];
  for (const [path, body, status, type] of cases) {
    const response = await fetch(`${stage.origin}${path}`, { method: 'POST', body });
    const { error } = (await response.json()) as { error: { type?: string; status?: string } };
    assert.deepEqual([response.status, error.type ?? error.status], [status, type], path);
  }
});
