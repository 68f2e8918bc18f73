/** `thread` of the messages protocol: relayed to vendors that store threads, refused everywhere else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import { open, relay, streamAnswer, wholeAnswer } from './harness.ts';

const said = [{ role: 'user', content: 'And then?' }];
const threads = [
  { type: 'create' },
  { type: 'continue', previous_message_id: 'msg_1' },
  { type: 'later' },
  {},
  'x',
  [],
];
const answer = {
  content: [{ type: 'text', text: 'ok' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
};
const path = '/v1/messages';

const refused = (error: unknown) => {
  assert.ok(error instanceof GatewayError);
  assert.deepEqual([error.status, error.code, error.field], [400, 'thread_unsupported_request', 'thread']);
  return true;
};

test('a thread is refused where the vendor is not known to store threads, relayed or translated, whole or streamed', async () => {
  for (const thread of threads)
    for (const stream of [false, true])
      for (const protocol of ['messages', 'chat', 'responses', 'gemini'])
        for (const traits of [{}, { threads: false }, ...(protocol === 'messages' ? [] : [{ threads: true }])]) {
          const body = { model: 'm', max_tokens: 9, stream, messages: said, thread };
          const upstream = stream ? streamAnswer([]) : wholeAnswer(JSON.stringify(answer));
          await assert.rejects(relay({ path, body, target: { protocol, traits } }, upstream), refused);
        }
});

test('a thread is refused where the request is translated to a vendor of the same protocol', async () => {
  const body = { model: 'm', max_tokens: 9, stream: true, messages: said, thread: { type: 'create' } };
  const target = { traits: { threads: true, streams: 'never' as const } };
  await assert.rejects(relay({ path, body, target }, wholeAnswer(JSON.stringify(answer))), refused);
});

test('a count of a thread is refused: it would count the newest message alone', async () => {
  const body = { model: 'm', messages: said, thread: { type: 'continue', previous_message_id: 'msg_1' } };
  await assert.rejects(relay({ path: `${path}/count_tokens`, body }, wholeAnswer('{"input_tokens":1}')), refused);
});

test('a vendor that stores threads is sent the request byte for byte', async () => {
  const text =
    '{"model":"m", "max_tokens":9,"messages":[],"thread" : {"type":"continue","previous_message_id":"msg_1"}}';
  const { sent } = await relay(
    { path, body: text, target: { traits: { threads: true } } },
    wholeAnswer(JSON.stringify(answer)),
  );
  assert.equal(Buffer.from(sent.body as Uint8Array).toString(), text);
});

test('a thread of null counts as absent', async () => {
  const body = { model: 'm', max_tokens: 9, messages: said, thread: null };
  for (const protocol of ['messages', 'chat'])
    await relay(
      { path, body, target: { protocol } },
      wholeAnswer(JSON.stringify(protocol === 'chat' ? chatAnswer : answer)),
    );
});
const chatAnswer = { choices: [{ message: { content: 'ok' }, finish_reason: 'stop' }], usage: {} };

test('stored turns count as input that is not in the request, so that enough is reserved for them', () => {
  const tokensOf = (thread: unknown) => {
    const body = { model: 'm', max_tokens: 9, messages: said, thread };
    return open({ path, body }).exchange.get(call).inputTokens;
  };
  const alone = tokensOf(null);
  assert.ok(tokensOf({ type: 'create' }) < alone + 100);
  assert.ok(tokensOf({ type: 'continue', previous_message_id: 'msg_1' }) >= alone + 20_000);
  assert.throws(
    () => open({ path, body: '{"model":"m","max_tokens":9,"messages":[],"thread":{},"thread":null}' }),
    /thread/,
  );
});
