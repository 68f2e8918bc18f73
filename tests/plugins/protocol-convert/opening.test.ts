/** The opening of a stream: until a client can use something of it, an error in it is one before the head. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import bedrock from '../../../plugins/bedrock/index.ts';
import cohere from '../../../plugins/cohere/index.ts';
import { call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { openings, target } from '../../../plugins/common/domain/upstreams.ts';
import { formatFrame } from '../../../plugins/common/kit/sse.ts';
import { wireProtocols } from '../../../plugins/common/wire/protocols.ts';
import ollama from '../../../plugins/ollama/index.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { clients } from '../../matrix/clients/index.ts';
import { type ProtocolName, protocolNames } from '../../matrix/scenario.ts';
import { streamOf } from '../../pitfalls/relayed.ts';
import { open, readBody, relay, Source, streamAnswer, targetFor } from './harness.ts';

const frame = (json: object, event?: string) => formatFrame(JSON.stringify(json), event);
const chunk = (delta: object, members: object = {}) =>
  frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...members });
const response = (type: string, members: object = {}) => {
  const status = type === 'response.failed' ? 'failed' : 'in_progress';
  const json = { id: 'resp_1', status, error: null, output: [], instructions: 'x'.repeat(5_000), usage: null };
  return frame({ type, response: { ...json, ...members } }, type);
};
const candidate = (content: object, members: object = {}) =>
  frame({ candidates: [{ index: 0, content }], usageMetadata: { promptTokenCount: 30 }, ...members });
const started = { id: 'msg_1', type: 'message', content: [], usage: { input_tokens: 30, output_tokens: 1 } };
const block = (content: object) =>
  frame({ type: 'content_block_start', index: 0, content_block: content }, 'content_block_start');

interface Beginning {
  readonly opening: readonly string[];
  /** Frames that a client can use something of. */
  readonly content: readonly string[];
  readonly refusals: readonly (readonly [frame: string, status: number])[];
  /** Input tokens that the opening reports. */
  readonly input?: number;
}

const beginnings: Readonly<Record<ProtocolName, Beginning>> = {
  chat: {
    opening: [
      frame({ id: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] }),
      ': PROCESSING\n\n',
      chunk({ role: 'assistant', content: '', refusal: null, tool_calls: [] }),
      chunk({}, { usage: { prompt_tokens: 30, completion_tokens: 0 } }),
    ],
    content: [
      chunk({ content: 'a' }),
      chunk({ role: 'assistant', reasoning_content: 'a' }),
      chunk({ tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: '' } }] }),
      chunk({}, { usage: { prompt_tokens: 30, completion_tokens: 1 } }),
      frame({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    ],
    refusals: [
      [frame({ error: { message: 'Slow down', code: 'rate_limit_exceeded' } }), 429],
      [frame({ error: { message: 'Overloaded', code: 503 } }), 503],
      [frame({ error: { message: 'No', code: 'invalid_prompt' } }), 400],
      [chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 502 } }] }), 502],
    ],
    input: 30,
  },
  responses: {
    opening: [response('response.created'), response('response.in_progress'), response('response.queued')],
    content: [
      frame({ type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning' } }),
      frame({ type: 'response.output_text.delta', delta: 'a' }, 'response.output_text.delta'),
    ],
    refusals: [
      [response('response.failed', { error: { code: 'rate_limit_exceeded', message: 'Slow down' } }), 429],
      [response('response.failed', { error: { code: 'server_is_overloaded', message: 'Busy' } }), 503],
      [response('response.failed', { error: { code: 'invalid_prompt', message: 'No' } }), 400],
      [frame({ type: 'error', code: 'server_error', message: 'Oh' }, 'error'), 500],
    ],
  },
  messages: {
    opening: [
      frame({ type: 'message_start', message: started }, 'message_start'),
      frame({ type: 'ping' }, 'ping'),
      block({ type: 'text', text: '' }),
    ],
    content: [
      block({ type: 'thinking', thinking: '' }),
      block({ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
      frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } }, 'content_block_delta'),
    ],
    refusals: [
      [frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'), 529],
      [frame({ type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } }, 'error'), 429],
      [frame({ type: 'error', error: { type: 'api_error', message: 'Oh' } }, 'error'), 500],
      [frame({ type: 'error', error: { type: 'invalid_request_error', message: 'No' } }, 'error'), 400],
    ],
    input: 30,
  },
  gemini: {
    opening: [
      candidate({ role: 'model' }),
      candidate({ role: 'model', parts: [{ text: '' }] }),
      frame({ usageMetadata: { promptTokenCount: 30, candidatesTokenCount: 0 }, modelVersion: 'm' }),
    ],
    content: [
      candidate({ parts: [{ text: 'a' }] }),
      candidate({ parts: [{ functionCall: { name: 'f', args: {} } }] }),
      candidate({ parts: [{ text: '' }] }, { usageMetadata: { promptTokenCount: 30, thoughtsTokenCount: 5 } }),
      frame({ candidates: [{ index: 0, finishReason: 'STOP' }] }),
    ],
    refusals: [
      [frame({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Slow down' } }), 429],
      [frame({ error: { code: 503, status: 'UNAVAILABLE', message: 'Busy' } }), 503],
      [frame({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No' } }), 400],
    ],
    input: 30,
  },
};

function requestFor(client: ProtocolName, vendor: ProtocolName, isStream = true) {
  const request = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
  return { ...clients[client].word(request, { model: 'model', isStream }), target: { protocol: vendor } };
}

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => assert.fail('no error'),
    (error: unknown) => error,
  );
}

for (const vendor of protocolNames)
  test(`an error behind opening frames of ${vendor} is a refusal before the head, and what they count is an estimate`, async () => {
    const { opening, refusals, input } = beginnings[vendor];
    for (const client of protocolNames)
      for (const [refusal, status] of refusals)
        for (const chunks of [[...opening, refusal], [opening.join('') + refusal], [refusal]]) {
          const request = requestFor(client, vendor);
          const opened = open(request);
          const error = await errorOf(relay(request, streamAnswer(chunks), opened));
          const name = `${client} on ${refusal}`;
          assert.ok(error instanceof UpstreamRefusal, `${name}: ${error}`);
          assert.deepEqual([error.status, error.mayRun, error.hasUsage], [status, false, false], name);
          assert.equal(opened.exchange.failure, undefined, name);
          const report = opened.exchange.find(usageReport);
          const isCounted = input !== undefined && chunks.length + opening.length > 2 && chunks[0] !== refusal;
          assert.deepEqual(
            [report?.usage.input, report?.estimated],
            isCounted ? [input, true] : [undefined, undefined],
            name,
          );
        }
  });

test('a refusal behind opening frames that reports usage is charged by it', async () => {
  const usage = { input_tokens: 30, output_tokens: 4, total_tokens: 34 };
  const failed = response('response.failed', { error: { code: 'server_error', message: 'Oh' }, usage });
  for (const client of protocolNames) {
    const request = requestFor(client, 'responses');
    const opened = open(request);
    const error = await errorOf(relay(request, streamAnswer([...beginnings.responses.opening, failed]), opened));
    assert.ok(error instanceof UpstreamRefusal && error.hasUsage, client);
    const { usage: charged, estimated } = opened.exchange.get(usageReport);
    assert.deepEqual([charged.input, charged.output, estimated], [30, 4, false], client);
  }
});

test('a stream that breaks or ends within its opening has no head yet, and its counts are an estimate', async () => {
  for (const vendor of protocolNames)
    for (const end of [new UpstreamError('body', 'socket hang up'), undefined]) {
      const { opening, input } = beginnings[vendor];
      const request = requestFor('chat', vendor);
      const opened = open(request);
      const error = await errorOf(relay(request, streamAnswer(opening, end), opened));
      assert.ok(end === undefined ? error instanceof UpstreamRefusal && error.mayRun : error === end, vendor);
      const report = opened.exchange.find(usageReport);
      assert.deepEqual([report?.usage.input, report?.estimated ?? true], [input, true], vendor);
    }
});

test('a client that leaves within the opening pays by its counts', async () => {
  const request = requestFor('messages', 'messages');
  const opened = open(request);
  Object.defineProperty(opened.exchange, 'signal', { value: AbortSignal.abort() });
  const { opening } = beginnings.messages;
  await errorOf(relay(request, streamAnswer(opening, new UpstreamError('body', 'aborted')), opened));
  const { usage, estimated } = opened.exchange.get(usageReport);
  assert.deepEqual([usage.input, estimated], [30, false]);
});

test('an error behind content stays in the stream, and a stream whose first chunk has content arms no timer', async (context) => {
  const timer = context.mock.method(globalThis, 'setTimeout');
  for (const vendor of protocolNames) {
    const { opening, content, refusals } = beginnings[vendor];
    for (const first of content) {
      const { answer, exchange } = await relay(
        requestFor(vendor, vendor),
        streamAnswer([opening.join('') + first, refusals[0]![0]]),
      );
      assert.equal(timer.mock.callCount(), 0, first);
      assert.equal(exchange.failure, undefined);
      await readBody(answer.body);
      assert.ok(exchange.failure !== undefined, first);
    }
    timer.mock.resetCalls();
  }
});

/** A source of these chunks whose last one comes when `release` is called. */
function delayed(chunks: readonly string[], last: string) {
  const source = new Source([...chunks, last]);
  const next = source.next.bind(source);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  source.next = async () => {
    if (source.pulled === chunks.length) await promise;
    return next();
  };
  return { source, release };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('frames that say nothing go out after the limit, and everything behind them as it comes', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    for (const vendor of protocolNames) {
      const { opening } = beginnings[vendor];
      const rest = streamOf(vendor);
      const { source, release } = delayed(opening, rest);
      let isOut = false;
      const relayed = relay(requestFor(vendor, vendor), { status: 200, headers: {}, body: source }).then((result) => {
        isOut = true;
        return result;
      });
      await turn();
      mock.timers.tick(4_999);
      await turn();
      assert.equal(isOut, false, vendor);
      mock.timers.tick(1);
      const { answer, exchange } = await relayed;
      assert.ok(answer.idleFrame!() !== undefined, vendor);
      release();
      assert.equal((await readBody(answer.body)).toString(), opening.join('') + rest, vendor);
      assert.equal(exchange.failure, undefined, vendor);
    }
  } finally {
    mock.timers.reset();
  }
});

test('the limit is the setting of `route`; by 0 nothing is held back', async () => {
  const host = fakeHost();
  host.provide(openings, { heldMs: 0 });
  const part = await setUp(protocolConvert, host);
  for (const vendor of protocolNames) {
    const { exchange } = open(requestFor(vendor, vendor));
    const { protocol, model } = exchange.get(call);
    exchange.set(target, targetFor(protocol, model));
    const { opening } = beginnings[vendor];
    const answer = await part.handle!(exchange, async () => streamAnswer(opening, 'hang'));
    const [first] = opening;
    const body = (answer.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    assert.equal(Buffer.from((await body.next()).value).toString(), first, vendor);
  }
});

test('however a stream is cut, its bytes are those of the vendor, and an error is a refusal exactly before content', async () => {
  const vendors = fc.constantFrom(...protocolNames);
  await fc.assert(
    fc.asyncProperty(
      vendors,
      fc.nat(9),
      fc.boolean(),
      fc.nat(9),
      fc.array(fc.nat(400)),
      async (vendor, count, hasContent, which, cuts) => {
        const { opening, content, refusals } = beginnings[vendor];
        const begun = Array.from({ length: count % 4 }, (_, index) => opening[(which + index) % opening.length]!);
        const frames = [...begun, ...(hasContent ? [content[which % content.length]!] : [])];
        const [refusal, status] = refusals[which % refusals.length]!;
        const text = [...frames, refusal].join('');
        const chunks: string[] = [];
        let at = 0;
        for (const length of cuts) {
          if (length > 0 && at < text.length) chunks.push(text.slice(at, at + length));
          at += length;
        }
        if (at < text.length) chunks.push(text.slice(at));
        const relayed = await relay(requestFor(vendor, vendor), streamAnswer(chunks)).catch((error: unknown) => error);
        if (!hasContent) {
          assert.ok(relayed instanceof UpstreamRefusal && relayed.status === status, `${relayed}`);
          return;
        }
        assert.ok(!(relayed instanceof Error), `${relayed}`);
        const { answer, exchange } = relayed as Awaited<ReturnType<typeof relay>>;
        const out = (await readBody(answer.body)).toString();
        assert.ok(out.startsWith(frames.join('')), out);
        assert.ok(exchange.failure !== undefined);
      },
    ),
    { numRuns: 200 },
  );
});

test('openings of the protocols that plugins add', async () => {
  const host = fakeHost();
  for (const plugin of [bedrock, cohere, ollama]) await setUp(plugin, host, {});
  const known = new Map(host.extensions(wireProtocols).map((protocol) => [protocol.name, protocol]));
  const message = (content: string) => ({ message: { role: 'assistant', content }, done: false });
  const cases: readonly (readonly [name: string, opening: string, content: string])[] = [
    [
      'bedrock',
      frame({ role: 'assistant' }, 'messageStart'),
      frame({ contentBlockIndex: 0, delta: { text: 'a' } }, 'contentBlockDelta'),
    ],
    [
      'bedrock-nova',
      frame({ role: 'assistant' }, 'messageStart'),
      frame({ contentBlockIndex: 0, delta: { text: 'a' } }, 'contentBlockDelta'),
    ],
    ['bedrock-llama', frame({ generation: '', stop_reason: null }), frame({ generation: '', stop_reason: 'stop' })],
    [
      'bedrock-mistral',
      frame({ choices: [{ message: { role: 'assistant', content: '' } }] }),
      frame({ outputs: [{ text: 'a' }] }),
    ],
    ['cohere', frame({ type: 'message-start', id: 'x' }), frame({ type: 'content-delta', index: 0, delta: {} })],
    ['ollama', `${JSON.stringify(message(''))}\n`, `${JSON.stringify(message('a'))}\n`],
    ['ollama', `${JSON.stringify(message(''))}\n`, `${JSON.stringify({ ...message(''), done: true })}\n`],
  ];
  for (const [name, opening, content] of cases) {
    const protocol = known.get(name)!;
    assert.ok('createUsageMeter' in protocol, name);
    assert.deepEqual(
      [opening, content].map((each) => protocol.isOpening?.(Buffer.from(each))),
      [true, false],
      name,
    );
  }
});
