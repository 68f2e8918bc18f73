import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { parseFrame } from '../../../plugins/common/kit/sse.ts';
import { fc } from '../../helpers/properties.ts';
import { recording } from '../../helpers/recordings.ts';
import { cutAt, host, type Relayed, type RelayRequest, readBody, relay, Source, streamAnswer } from './harness.ts';

const request: Record<'chat' | 'responses' | 'messages' | 'gemini', RelayRequest> = {
  chat: { path: '/v1/chat/completions', body: { model: 'm', messages: [], stream: true } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'x', stream: true } },
  messages: { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: [], stream: true } },
  gemini: { path: '/v1beta/models/m:streamGenerateContent?alt=sse', body: { contents: [] } },
};

const delta = (text: string) => `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`;
const finish = 'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const usage = 'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n';
const done = 'data: [DONE]\n\n';

const broken = () => new UpstreamError('body', 'socket hang up at 10.0.0.7:443');

async function output(relayed: Promise<Relayed>): Promise<{ text: string } & Relayed> {
  const result = await relayed;
  return { ...result, text: (await readBody(result.answer.body)).toString() };
}

async function refused(answer: Answer, from: RelayRequest = request.chat): Promise<UpstreamRefusal> {
  const error = await relay(from, answer).then(
    () => assert.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof UpstreamRefusal, String(error));
  return error;
}

test('each relayed chunk is passed on with the same bytes, by itself', async () => {
  const chunks = [delta('a'), delta('b') + delta('c'), finish, done].map((text) => Buffer.from(text));
  const { answer } = await relay(request.chat, { status: 200, headers: {}, body: new Source(chunks) });
  const out: Uint8Array[] = [];
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) out.push(chunk);
  assert.equal(out.length, 4);
  for (const [index, chunk] of out.entries()) assert.deepEqual(Buffer.from(chunk), chunks[index]);
});

test('half a frame waits for its other half, so that nothing is cut in two', async () => {
  const { answer } = await relay(request.chat, streamAnswer([`${delta('a')}data: {"ch`, `oices":[]}\n\n`, done]));
  const out: string[] = [];
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) out.push(Buffer.from(chunk).toString());
  assert.deepEqual(out, [delta('a'), 'data: {"choices":[]}\n\n', done]);
});

test('a frame of megabytes is not held back', async () => {
  const large = delta('x'.repeat(300_000));
  const chunks = [delta('a'), large.slice(0, 100_000), large.slice(100_000, 200_000), large.slice(200_000), done];
  const { answer } = await relay(request.chat, streamAnswer(chunks));
  const body = (answer.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  await body.next();
  assert.equal((await body.next()).value.length, 100_000);
  assert.equal(answer.idleFrame!(), undefined, 'a comment must not stand inside a frame');
  const rest: Uint8Array[] = [];
  for (let step = await body.next(); !step.done; step = await body.next()) rest.push(step.value);
  assert.equal(Buffer.concat(rest).toString(), `${large.slice(100_000)}${done}`);
  assert.equal(Buffer.from(answer.idleFrame!()!).toString(), ': keep-alive\n');
});

test('the answer ends with its terminal event although the upstream keeps the socket open', async () => {
  const ends: readonly [RelayRequest, string][] = [
    [request.chat, delta('a') + finish + done],
    [
      request.messages,
      recording('messages', 'anthropic-claude-haiku-4-5-20251001-stop-sequence-stream-88df').response.toString(),
    ],
    [request.responses, recording('responses', 'openai-gpt-4.1-nano-text-stream-9976').response.toString()],
  ];
  for (const [from, text] of ends) {
    const result = await output(relay(from, streamAnswer([text], 'hang')));
    assert.equal(result.text, text);
    assert.equal(result.report!.terminal, true);
    assert.equal(result.exchange.failure, undefined);
  }
});

test('a chat stream that closes after its finish reason, without [DONE], has ended well', async () => {
  for (const end of [undefined, broken()]) {
    const result = await output(relay(request.chat, streamAnswer([delta('a'), finish], end)));
    assert.equal(result.text, delta('a') + finish);
    assert.equal(result.report!.terminal, true);
    assert.equal(result.exchange.failure, undefined);
  }
});

const starts: Record<keyof typeof request, string> = {
  chat: delta('Hello'),
  responses:
    recording('responses', 'openai-gpt-4.1-nano-text-stream-9976')
      .response.toString()
      .split('\n\n')
      .slice(0, 5)
      .join('\n\n') + '\n\n',
  messages:
    recording('messages', 'anthropic-claude-haiku-4-5-20251001-stop-sequence-stream-88df')
      .response.toString()
      .split('\n\n')
      .slice(0, 4)
      .join('\n\n') + '\n\n',
  gemini: 'data: {"candidates":[{"content":{"parts":[{"text":"Hello"}]},"index":0}]}\r\n\r\n',
};

for (const [protocol, start] of Object.entries(starts) as [keyof typeof request, string][]) {
  for (const [what, tail, end] of [
    ['reset', '', broken()],
    ['closed without its end', '', undefined],
    ['cut inside a frame', 'data: {"id', undefined],
    ['silent for too long', '', new UpstreamError('body', 'body timeout', { timedOut: true })],
  ] as const) {
    test(`a ${protocol} stream that is ${what} ends with the protocol’s error, and the received part is reported`, async () => {
      const result = await output(relay(request[protocol], streamAnswer([start, tail], end)));
      assert.ok(result.text.startsWith(start), 'everything before the break went out');
      const added = result.text
        .slice(start.length)
        .split('\n\n')
        .filter((text) => text !== '');
      const events = added.map((text) => parseFrame(Buffer.from(`${text}\n\n`))!);
      const kind = what === 'silent for too long' ? 'upstream_timeout' : 'upstream_failed';
      assertError[protocol](events, kind === 'upstream_timeout');
      assert.equal(result.exchange.failure?.kind, kind);
      assert.equal(result.exchange.failure?.shouldRetry, false);
      assert.ok(!result.text.includes('10.0.0.7'), 'no address reaches the client');
      assert.equal(result.report!.terminal, false);
      assert.ok(result.report!.usage.output! > 0);
      assert.equal(result.report!.estimated, true);
    });
  }
}

const assertError: Record<
  keyof typeof request,
  (events: { event: string | undefined; data: string }[], late: boolean) => void
> = {
  chat([only, ...others]) {
    assert.equal(others.length, 0);
    assert.equal(JSON.parse(only!.data).error.type, 'server_error');
  },
  responses([first, second, ...others]) {
    assert.equal(others.length, 0);
    assert.equal(first!.event, 'error');
    const error = JSON.parse(first!.data);
    assert.deepEqual([error.type, error.code, error.sequence_number], ['error', 'server_error', 5]);
    assert.equal(second!.event, 'response.failed');
    const failed = JSON.parse(second!.data);
    assert.deepEqual(
      [failed.sequence_number, failed.response.status, failed.response.error.code],
      [6, 'failed', 'server_error'],
    );
    assert.match(failed.response.id, /^resp_/);
  },
  messages([only, ...others], late) {
    assert.equal(others.length, 0);
    assert.equal(only!.event, 'error');
    const error = JSON.parse(only!.data);
    assert.deepEqual([error.type, error.error.type], ['error', late ? 'timeout_error' : 'api_error']);
    assert.match(error.request_id, /^req_/);
  },
  gemini([only, ...others], late) {
    assert.equal(others.length, 0);
    const { error } = JSON.parse(only!.data);
    assert.deepEqual([error.code, error.status], late ? [504, 'DEADLINE_EXCEEDED'] : [502, 'UNAVAILABLE']);
  },
};

test('a stream that broke inside a large frame, half of it out, still tells its error in a frame of its own', async () => {
  const half = delta('x'.repeat(200_000)).slice(0, 150_000);
  const result = await output(relay(request.chat, streamAnswer([delta('a'), half], broken())));
  const rest = result.text.slice(delta('a').length + half.length);
  assert.match(rest, /^\n\ndata: \{"error":/);
});

test('the usage frame that only the gateway asked for is held back, however the stream is cut', async () => {
  const text = delta('a') + finish + usage + done;
  const expected = delta('a') + finish + done;
  const target = { upstream: { streamUsageOption: true } };
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 12 }), async (offsets) => {
      const result = await output(relay({ ...request.chat, target }, streamAnswer(cutAt(Buffer.from(text), offsets))));
      assert.equal(result.text, expected);
      assert.deepEqual(result.report!.usage, { input: 5, output: 2 });
      assert.equal(result.report!.estimated, false);
    }),
    { numRuns: 60 },
  );
  const wanted = {
    ...request.chat,
    body: { model: 'm', messages: [], stream: true, stream_options: { include_usage: true } },
  };
  assert.equal((await output(relay({ ...wanted, target }, streamAnswer([text])))).text, text);
});

test('an error in the first frame becomes a real error, and nothing is marked as failed yet', async () => {
  const frame = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
  const refusal = await refused(streamAnswer([': ping\n\n', frame.slice(0, 20), frame.slice(20)]), request.messages);
  assert.deepEqual([refusal.status, refusal.error.kind, refusal.mayRun], [529, 'overloaded', false]);
});

test('an error in the first frame is encoded by the vendor where it is about the request, scrubbed', async () => {
  const frame = 'data: {"error":{"message":"bad org-abcdefgh1234 input","code":400,"param":"messages"}}\n\n';
  const { error, answer } = await refused(streamAnswer([frame]));
  assert.deepEqual([error.kind, error.message, error.field], ['invalid_request', 'bad *** input', 'messages']);
  assert.equal(answer, undefined);
});

const strange: readonly [what: string, upstream: Answer, status: number, mayRun: boolean][] = [
  [
    'a page',
    { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: new Source(['<html>']) },
    502,
    false,
  ],
  ['a page without a type', streamAnswer(['\n <!doctype html>']), 502, false],
  ['nothing', streamAnswer([]), 502, true],
  ['comments alone', streamAnswer([': hello\n\n']), 502, true],
  ['half an event', streamAnswer(['data: {"id":']), 502, true],
  ['a document of another kind', streamAnswer(['{"id":"c1",', '"object":"list"}']), 502, true],
  ['a whole answer without a choice', streamAnswer(['{"id":"c1",', '"choices":[]}']), 502, false],
  ['a whole error', streamAnswer(['{"error":{"message":"slow down","code":', '"rate_limit_exceeded"}}']), 429, false],
];
for (const [what, upstream, status, mayRun] of strange) {
  test(`${what} instead of a stream is refused before anything is sent`, async () => {
    const refusal = await refused(upstream);
    assert.deepEqual([refusal.status, refusal.mayRun], [status, mayRun]);
  });
}

test('a source that breaks before the first event throws its own error', async () => {
  await assert.rejects(relay(request.chat, streamAnswer([': hello\n\n'], broken())), UpstreamError);
});

test('comments do not hold back the head for longer than a few seconds', async () => {
  const source = new Source([': 1\n\n', ': 2\n\n', delta('a'), done]);
  const next = source.next.bind(source);
  source.next = async () => {
    host.advance(3_000);
    return next();
  };
  const { answer } = await relay(request.chat, { status: 200, headers: {}, body: source });
  assert.equal(source.pulled, 2);
  assert.equal((await readBody(answer.body)).toString(), `: 1\n\n: 2\n\n${delta('a')}${done}`);
});

test('an error in a later frame goes out scrubbed, the stream is marked as failed, and nothing is added', async () => {
  const error = 'data: {"error":{"message":"key sk-abcdef123456 at 10.1.2.3","code":500}}\n\n';
  const result = await output(relay(request.chat, streamAnswer([delta('a'), error])));
  assert.equal(result.text, `${delta('a')}data: {"error":{"message":"key *** at ***","code":500}}\n\n`);
  assert.equal(result.exchange.failure?.kind, 'upstream_failed');
  assert.equal(result.report!.terminal, false);
});

test('a client that disconnects ends the upstream request, and no bytes follow', async () => {
  const source = new Source([delta('Hello'), delta(' there')], 'hang');
  const { answer, report } = await relay(request.chat, { status: 200, headers: {}, body: source });
  const body = (answer.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  await body.next();
  await body.return!();
  assert.equal(source.returned, true);
  assert.equal((await body.next()).done, true);
  assert.deepEqual([report!.terminal, report!.estimated, report!.usage.output], [false, true, 2]);
});

test('a body that is not read has a usage report', async () => {
  const { report } = await relay(request.chat, streamAnswer([delta('Hello')], 'hang'));
  assert.ok(report!.usage.input! > 0);
  assert.equal(report!.usage.output, 2);
});

test('an upstream that fails before any text, without usage, has consumed nothing', async () => {
  const created = starts.responses.split('\n\n')[0]!;
  const item = 'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}';
  const { report } = await output(relay(request.responses, streamAnswer([`${created}\n\n${item}\n\n`], broken())));
  assert.deepEqual([report!.usage, report!.estimated], [{}, false]);
});

test('when the money is used up the stream ends with an error in its protocol, and the upstream is given up', async () => {
  const source = new Source([delta('a'), delta('b'), delta('c'), done], 'hang');
  const seen: number[] = [];
  const observe = (tokens: number) => seen.push(tokens) < 3;
  const relayed = relay({ ...request.chat, observe }, { status: 200, headers: {}, body: source });
  const { text, exchange } = await output(relayed);
  assert.deepEqual(seen, [1, 2, 3]);
  assert.ok(text.startsWith(delta('a') + delta('b') + delta('c')));
  assert.equal(JSON.parse(text.split('data: ').at(-1)!).error.code, 'insufficient_quota');
  assert.equal(exchange.failure?.kind, 'insufficient_balance');
  assert.equal(source.returned, true);
});

test('a stream that the gateway aborts has an error with the reason', async () => {
  const reason = new GatewayError('overloaded', 'The gateway is shutting down.');
  const { exchange, answer } = await relay(request.chat, streamAnswer([delta('a')], broken()));
  Object.defineProperty(exchange, 'signal', { value: AbortSignal.abort(reason) });
  assert.match((await readBody(answer.body)).toString(), /"message":"The gateway is shutting down\."/);
  assert.equal(exchange.failure?.kind, 'overloaded');
});

test('a frame above the limit ends the stream with an error', async () => {
  const piece = Buffer.alloc(16 * 2 ** 20, 'x');
  const source = new Source([delta('a'), 'data: "', piece, piece, piece, piece, piece], 'hang');
  const { text, exchange } = await output(relay(request.chat, { status: 200, headers: {}, body: source }));
  assert.match(text.slice(-300), /\n\ndata: \{"error":/);
  assert.equal(exchange.failure?.kind, 'upstream_failed');
  assert.equal(source.returned, true);
});

test('an error frame too long to be searched is reported in the gateway’s own words', async () => {
  const error = `data: ${JSON.stringify({ error: { message: 'sk-secret12345 '.repeat(10_000) } })}\n\n`;
  const { text, exchange } = await output(relay(request.chat, streamAnswer([delta('a') + error])));
  assert.doesNotMatch(text, /sk-secret/);
  assert.equal(JSON.parse(text.slice(delta('a').length + 6)).error.type, 'server_error');
  assert.equal(exchange.failure?.kind, 'upstream_failed');
});

test('bytes that keep a silent stream alive are those that official clients skip', async () => {
  const report = async (path: string, frames: readonly string[], protocol: string, body: object = {}) => {
    const messages = [{ role: 'user', content: 'a' }];
    const contents = [{ role: 'user', parts: [{ text: 'a' }] }];
    const chat = { model: 'm', stream: true, max_tokens: 9, messages };
    const requested = path.includes('Content')
      ? { contents }
      : path.includes('responses')
        ? { model: 'm', stream: true, input: 'a' }
        : chat;
    const { answer } = await relay(
      { path, body: { ...requested, ...body }, target: { protocol } },
      streamAnswer(frames),
    );
    return Buffer.from(answer.idleFrame!()!).toString();
  };
  const content = 'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}';
  const generate = '/v1beta/models/m:streamGenerateContent?alt=sse';
  const line = ': keep-alive\n';
  for (const protocol of ['chat', 'gemini']) {
    const frames = [protocol === 'chat' ? delta('a') : `${content}\n\n`];
    assert.equal(await report('/v1/chat/completions', frames, protocol), line);
    assert.equal(await report('/v1/responses', frames, protocol), line);
    assert.equal(await report('/v1/messages', frames, protocol), `${line}\n`);
    assert.equal(await report(generate, frames, protocol), '\n\n');
  }
  assert.equal(
    await report(generate, [`${content}\r\n\r\n`], 'gemini'),
    '\r\n\r\n',
    'the line ends of a relayed stream',
  );
  assert.equal(
    await report(generate, [`[${content.slice(6)},\n`, ' '], 'gemini'),
    '\n\n',
    'a stream that came as a list',
  );
});
