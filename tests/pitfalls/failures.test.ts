/** Failures that vendors tell inside of a 200: errors for every client, whole and streamed, charged as far as usage is reported. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { usageReport } from '../../plugins/common/domain/calls.ts';
import { clients } from '../matrix/clients/index.ts';
import { type ProtocolName, protocolNames } from '../matrix/scenario.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { open, readBody, relay, streamAnswer, wholeAnswer } from '../plugins/protocol-convert/harness.ts';
import { hello, streamOf } from './relayed.ts';

const usage = { input_tokens: 30, output_tokens: 4, total_tokens: 34 };
const chatUsage = { prompt_tokens: 30, completion_tokens: 4, total_tokens: 34 };

function requestFor(client: ProtocolName, vendor: ProtocolName, isStream: boolean) {
  const request = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
  return { ...clients[client].word(request, { model: 'model', isStream }), target: { protocol: vendor } };
}

const response = (members: object) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  output: [],
  ...members,
});
const completion = (members: object) => ({ id: 'c', object: 'chat.completion', created: 1, model: 'm', ...members });
const said = { role: 'assistant', content: 'Half' };
const rateLimit = { code: 'rate_limit_exceeded', message: 'Rate limit reached' };

const whole: readonly (readonly [vendor: ProtocolName, body: object, status: number])[] = [
  ['responses', response({ status: 'failed', error: { code: 'server_error', message: 'It broke' } }), 500],
  ['responses', response({ status: 'failed', error: rateLimit }), 429],
  ['responses', response({ status: 'failed', error: null, usage: null }), 500],
  ['responses', response({ status: 'cancelled', error: null }), 500],
  [
    'chat',
    completion({
      choices: [{ index: 0, message: said, finish_reason: 'error', error: { code: 429, message: 'Slow down' } }],
    }),
    429,
  ],
  ['chat', completion({ choices: [{ index: 0, message: said, finish_reason: 'error' }] }), 502],
  ['chat', completion({ choices: [{ index: 0, message: said, finish_reason: 'network_error' }] }), 502],
  ['chat', completion({ choices: [] }), 502],
  ['chat', completion({ choices: null }), 502],
];

async function refusalOf(call: Promise<unknown>): Promise<UpstreamRefusal> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof UpstreamRefusal, String(error));
    return error;
  }
  return assert.fail('no error');
}

test('a failure in a whole answer is an error with a status, at which another target may be asked', async () => {
  for (const [vendor, body, status] of whole)
    for (const client of protocolNames) {
      const name = `${client} on ${JSON.stringify(body)}`;
      const refusal = await refusalOf(relay(requestFor(client, vendor, false), wholeAnswer(JSON.stringify(body))));
      assert.equal(refusal.status, status, name);
      assert.ok(!refusal.mayRun && !refusal.hasUsage, name);
      if (status === 429) assert.match(refusal.error.message, /Rate limit reached|Slow down/, name);
    }
});

test('a failure in a whole answer is charged by the usage that the vendor reports', async () => {
  const bodies = [
    ['responses', response({ status: 'failed', error: rateLimit, usage })],
    ['chat', completion({ choices: [{ index: 0, message: said, finish_reason: 'error' }], usage: chatUsage })],
    ['chat', completion({ choices: [], usage: chatUsage })],
  ] as const;
  for (const [vendor, body] of bodies)
    for (const client of protocolNames) {
      const request = requestFor(client, vendor, false);
      const opened = open(request);
      const refusal = await refusalOf(relay(request, wholeAnswer(JSON.stringify(body)), opened));
      assert.ok(refusal.hasUsage, client);
      const { input, output } = opened.exchange.get(usageReport).usage;
      assert.deepEqual({ input, output }, { input: 30, output: 4 }, client);
    }
});

test('a failure at the end of a stream is an error of the client’s protocol, in a frame that its clients read as one', async () => {
  const frames = vendors.chat.stream(hello, 'model');
  const begun = frames.slice(0, frames.findIndex((frame) => frame.includes('Grüß')) + 1).join('');
  const chunk = (choice: object) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, ...choice }] })}\n\n`;
  const ends = [
    chunk({ finish_reason: 'error', error: { code: 502, message: 'Provider disconnected' } }),
    chunk({ finish_reason: 'error' }),
    chunk({ finish_reason: 'network_error' }),
  ];
  for (const end of ends)
    for (const client of protocolNames) {
      const { answer, exchange } = await relay(
        requestFor(client, 'chat', true),
        streamAnswer([begun, end, 'data: [DONE]\n\n']),
      );
      const seen = clients[client].readStream((await readBody(answer.body)).toString());
      assert.ok(seen.error !== undefined && seen.error.message !== '', `${client}: ${end}`);
      assert.deepEqual(seen.meanings, [], client);
      assert.ok(exchange.failure !== undefined, client);
    }
});

test('a failure that is the first frame of a stream is an error with a status', async () => {
  const first = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 429, message: 'Slow down' } }] })}\n\n`;
  const cancelled = `event: response.cancelled\ndata: ${JSON.stringify({ type: 'response.cancelled', response: response({ status: 'cancelled' }) })}\n\n`;
  for (const client of protocolNames) {
    assert.equal((await refusalOf(relay(requestFor(client, 'chat', true), streamAnswer([first])))).status, 429, client);
    assert.ok(
      (await refusalOf(relay(requestFor(client, 'responses', true), streamAnswer([cancelled])))).status >= 500,
      client,
    );
  }
});

test('a stop reason incomplete is a stop for length', async () => {
  for (const client of protocolNames.filter((name) => name !== 'chat')) {
    const text = streamOf('chat').replaceAll('"finish_reason":"stop"', '"finish_reason":"incomplete"');
    const { answer } = await relay(requestFor(client, 'chat', true), streamAnswer([text]));
    assert.deepEqual(clients[client].readStream((await readBody(answer.body)).toString()).meanings, ['length'], client);
  }
});

const others = protocolNames.filter((name) => name !== 'messages');

test('a messages stream that ends after its stop reason is whole, and a relayed client gets its end', async () => {
  const text = streamOf('messages').replace(/event: message_stop.*$/s, '');
  for (const client of protocolNames) {
    const { answer, exchange } = await relay(requestFor(client, 'messages', true), streamAnswer([text]));
    const body = (await readBody(answer.body)).toString();
    const seen = clients[client].readStream(body);
    assert.equal(seen.text, hello.text, client);
    assert.equal(seen.error, undefined, client);
    assert.equal(exchange.failure, undefined, client);
    if (client === 'messages') assert.match(body, /event: message_stop\n/);
  }
});

test('a call whose input is a text of an object has that object for its arguments', async () => {
  const content = [{ type: 'tool_use', id: 'toolu_1', name: 'read', input: '{"path":"a"}' }];
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content, stop_reason: 'tool_use' };
  const body = JSON.stringify({ ...message, usage: { input_tokens: 1, output_tokens: 1 } });
  for (const client of others) {
    const { answer } = await relay(requestFor(client, 'messages', false), wholeAnswer(body));
    const [call] = clients[client].readWhole((await readBody(answer.body)).toString()).calls;
    assert.deepEqual(call?.input, { path: 'a' }, client);
  }
});

test('arguments that are an empty text or list count as no arguments', async () => {
  for (const written of ['', '""', '[]'])
    for (const client of ['messages', 'gemini'] as const) {
      const calls = [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: written } }];
      const choice = {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: calls },
        finish_reason: 'tool_calls',
      };
      const body = JSON.stringify(completion({ choices: [choice], usage: chatUsage }));
      const { answer } = await relay(requestFor(client, 'chat', false), wholeAnswer(body));
      const [call] = clients[client].readWhole((await readBody(answer.body)).toString()).calls;
      assert.deepEqual(call?.input, {}, `${client}: ${written}`);
    }
});

test('text whose deltas are numbered otherwise than in the item is said once, and a creation time is a whole number', async () => {
  const item = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
  };
  const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const place = { output_index: 0, item_id: 'msg_1', content_index: 1 };
  for (const [text, index] of [
    ['Hello', 1],
    ['Hello', 0],
  ] as const) {
    const frames = [
      event('response.created', { response: response({ status: 'in_progress', created_at: 1.5 }) }),
      event('response.output_item.added', { output_index: 0, item: { ...item, content: [] } }),
      event('response.output_text.delta', { ...place, delta: 'Hel' }),
      event('response.output_text.delta', { ...place, delta: 'lo' }),
      event('response.output_text.done', { ...place, content_index: index, text }),
      event('response.output_item.done', { output_index: 0, item }),
      event('response.completed', { response: response({ status: 'completed', output: [item], usage }) }),
    ];
    for (const client of protocolNames.filter((name) => name !== 'responses')) {
      const { answer } = await relay(requestFor(client, 'responses', true), streamAnswer([frames.join('')]));
      const body = (await readBody(answer.body)).toString();
      assert.equal(clients[client].readStream(body).text, 'Hello', client);
      assert.doesNotMatch(body, /"created":\d+\.\d/, client);
    }
  }
});

test('a call whose input is a text of no object is an error, whole and streamed', async () => {
  for (const input of ['path a', '[1]', '{"path":']) {
    const block = { type: 'tool_use', id: 'toolu_1', name: 'read', input };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [block] };
    const tokens = { input_tokens: 1, output_tokens: 1 };
    const body = JSON.stringify({ ...message, stop_reason: 'tool_use', usage: tokens });
    const event = (type: string, members: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
    const frames = [
      event('message_start', { message: { ...message, content: [], stop_reason: null, usage: tokens } }),
      event('content_block_start', { index: 0, content_block: block }),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } }),
      event('message_stop', {}),
    ];
    for (const client of others) {
      await refusalOf(relay(requestFor(client, 'messages', false), wholeAnswer(body)));
      const { answer, exchange } = await relay(requestFor(client, 'messages', true), streamAnswer(frames));
      assert.match((await readBody(answer.body)).toString(), /"error":/, `${client}: ${input}`);
      assert.equal(exchange.failure?.kind, 'upstream_failed', `${client}: ${input}`);
    }
  }
});

test('a chat stream that ends without a choice is an error, relayed too', async () => {
  const usageFrame = `data: ${JSON.stringify({ ...completion({ choices: [], usage: chatUsage }), object: 'chat.completion.chunk' })}\n\n`;
  for (const client of protocolNames) {
    const { answer, exchange } = await relay(
      requestFor(client, 'chat', true),
      streamAnswer([usageFrame, 'data: [DONE]\n\n']),
    );
    const seen = clients[client].readStream((await readBody(answer.body)).toString());
    assert.ok(seen.error !== undefined && exchange.failure !== undefined, client);
    await refusalOf(relay(requestFor(client, 'chat', true), streamAnswer(['data: [DONE]\n\n'])));
  }
});

test('sound and videos of an answer reach every client, as a link or a text where its protocol has no place for them', async () => {
  const media = [
    [{ inlineData: { mimeType: 'audio/wav', data: 'UklGRiQAAABXQVZF' } }, 'UklGRiQAAABXQVZF'],
    [{ fileData: { mimeType: 'video/mp4', fileUri: 'https://cdn.example/clip.mp4' } }, 'https://cdn.example/clip.mp4'],
    [{ fileData: { mimeType: 'video/mp4', fileUri: 'gs://bucket/clip.mp4' } }, 'gs://bucket/clip.mp4'],
  ] as const;
  for (const [part, reported] of media)
    for (const client of ['chat', 'responses', 'messages'] as const) {
      const candidate = { content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 };
      const json = JSON.stringify({
        candidates: [candidate],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4 },
      });
      const whole = await relay(requestFor(client, 'gemini', false), wholeAnswer(json));
      assert.ok((await readBody(whole.answer.body)).includes(reported), `${client}: ${reported}`);
      const streamed = await relay(requestFor(client, 'gemini', true), streamAnswer([`data: ${json}\n\n`]));
      assert.ok((await readBody(streamed.answer.body)).includes(reported), `${client}, streamed: ${reported}`);
    }
});
