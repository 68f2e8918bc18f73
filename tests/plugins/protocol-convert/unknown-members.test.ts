/** Unknown top-level members of translated requests: hints are left out and named, everything else is refused by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Traits } from '../../../plugins/common/domain/traits.ts';
import { target } from '../../../plugins/common/domain/upstreams.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { open, readBody, relay, targetFor, wholeAnswer } from './harness.ts';

type Name = 'chat' | 'responses' | 'messages' | 'gemini';
const names: readonly Name[] = ['chat', 'responses', 'messages', 'gemini'];

const requests: Readonly<Record<Name, { path: string; body: object }>> = {
  chat: { path: '/v1/chat/completions', body: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'Hi' } },
  messages: { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] } },
  gemini: { path: '/v1beta/models/m:generateContent', body: { contents: [{ parts: [{ text: 'Hi' }] }] } },
};

const answers: Readonly<Record<Name, object>> = {
  chat: { choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }], usage: {} },
  responses: {
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }],
    usage: {},
  },
  messages: { content: [{ type: 'text', text: 'ok' }], stop_reason: 'end_turn', usage: {} },
  gemini: { candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }], usageMetadata: {} },
};

function send(from: Name, to: Name, more: object, traits: Traits = {}) {
  const { path, body } = requests[from];
  return relay(
    { path, body: { ...body, ...more }, target: { protocol: to, traits } },
    wholeAnswer(JSON.stringify(answers[to])),
  );
}

const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const));

test('a member that may hold what the model is meant to see is refused by its name', async () => {
  const values = ['text', true, { type: 'create' }, [{ id: 'file_1' }]];
  for (const [from, to] of pairs)
    for (const field of ['memory', 'conversation_state', 'constructor', 'toString'])
      for (const value of values)
        await assert.rejects(send(from, to, { [field]: value }), (error) => {
          assert.ok(error instanceof GatewayError, `${from} to ${to}`);
          assert.deepEqual([error.status, error.code, error.field], [400, 'unsupported_by_model', field]);
          assert.ok(error.message.includes(field));
          return true;
        });
});

test('an unknown member with a number is left out and named', async () => {
  for (const [from, to] of pairs) {
    const { answer } = await send(from, to, { new_penalty: 0.5 });
    assert.equal(answer.headers['x-gateway-dropped'], 'new_penalty', `${from} to ${to}`);
  }
});

test('an unknown member with an empty value is not named', async () => {
  for (const [from, to] of pairs) {
    const { answer } = await send(from, to, { a: null, b: false, c: '', d: [], e: {} });
    assert.equal(answer.headers['x-gateway-dropped'], undefined, `${from} to ${to}`);
  }
});

test('known hints are left out and named', async () => {
  const hints: Readonly<Record<Name, object>> = {
    chat: { store: true, provider: { order: ['a'] }, chat_template_kwargs: { a: 1 }, transforms: ['middle-out'] },
    responses: { moderation: { model: 'm' }, provider: { order: ['a'] }, prompt_cache_retention: '24h' },
    messages: { container: 'c', diagnostics: { previous_message_id: 'm' }, inference_geo: 'eu' },
    gemini: { safetySettings: [{ category: 'a', threshold: 'b' }], labels: { a: 'b' }, store: true },
  };
  for (const [from, to] of pairs) {
    const { answer } = await send(from, to, hints[from]);
    const named = new Set(answer.headers['x-gateway-dropped']?.split(', '));
    assert.deepEqual(named, new Set(Object.keys(hints[from])), `${from} to ${to}`);
  }
});

test('the header stays a header, whatever members are called and however many there are', async () => {
  const odd = { 'line\r\nbreak: 1': 1, ключ: 2, 'a, b': 3, [`long${'g'.repeat(9_000)}`]: 4 };
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`member_${index}`, index + 1]));
  for (const more of [odd, many]) {
    const { answer } = await send('chat', 'messages', more);
    const header = answer.headers['x-gateway-dropped'] as string;
    assert.match(header, /^[\x20-\x7e]+$/);
    assert.ok(header.length < 8_000);
    assert.ok(header.split(', ').length <= 64);
  }
});

test('a relayed request keeps every member', async () => {
  for (const name of names) {
    const { sent, answer } = await send(name, name, { memory: { id: 'x' } });
    assert.ok(Buffer.from(sent.body as Uint8Array).includes('"memory":{"id":"x"}'));
    assert.equal(answer.headers['x-gateway-dropped'], undefined);
  }
});

const summary = { compaction: { type: 'summarize', instructions: 'Shortly.' } };
const noSummary = (error: unknown) => {
  assert.ok(error instanceof GatewayError);
  assert.deepEqual([error.status, error.code, error.field], [400, 'unsupported_by_model', 'compaction']);
  return true;
};

test('a compaction that the messages protocol asks for is refused where the vendor is not known to support it', async () => {
  for (const stream of [false, true])
    for (const to of names)
      for (const traits of [{}, { compaction: false }, ...(to === 'messages' ? [] : [{ compaction: true }])])
        await assert.rejects(send('messages', to, { ...summary, stream }, traits), noSummary);
  await assert.rejects(send('messages', 'messages', summary, { compaction: true, streams: 'only' }), noSummary);
});

test('a compaction is relayed to a vendor that supports it, and its count to every vendor', async () => {
  const { sent } = await send('messages', 'messages', summary, { compaction: true });
  assert.ok(Buffer.from(sent.body as Uint8Array).includes(JSON.stringify(summary).slice(1, -1)));
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...summary };
  for (const protocol of ['messages', 'gemini']) {
    const count = { path: '/v1/messages/count_tokens', body, target: { protocol } };
    const upstream = wholeAnswer(JSON.stringify({ input_tokens: 7, totalTokens: 7 }));
    const { answer } = await relay(count, upstream);
    assert.equal(JSON.parse((await readBody(answer.body)).toString()).input_tokens, 7, protocol);
  }
});

/** Reasoning that only its maker can read, in each place where a chat client returns it. */
const unreadable: readonly (readonly [message: object, field: string])[] = [
  [{ reasoning_details: [{ type: 'reasoning.encrypted', data: 'OTHER', format: 'f', index: 0 }] }, 'reasoning_details'],
  [{ reasoning_details: [{ type: 'reasoning.text', text: '', signature: 'OTHER' }] }, 'reasoning_details'],
  [{ reasoning_details: [{ type: 'reasoning.server', blob: 'OTHER' }] }, 'reasoning_details'],
  [{ reasoning_details: 'OTHER' }, 'reasoning_details'],
  [{ thinking_blocks: [{ type: 'redacted_thinking', data: 'OTHER' }] }, 'thinking_blocks'],
  [{ content: [{ type: 'redacted_thinking', data: 'OTHER' }] }, 'content[0]'],
  [{ extra_content: { google: { thought_signature: 'OTHER' } } }, 'extra_content'],
];

test('reasoning of a chat history that only another maker can read is left out and named, or refused', async () => {
  const strict = await setUp(protocolConvert, fakeHost(), { on_loss: 'refuse' });
  const user = { role: 'user', content: 'Hi' };
  for (const to of names.filter((name) => name !== 'chat'))
    for (const [members, field] of unreadable) {
      const messages = [user, { role: 'assistant', content: 'A', ...members }, user];
      const { answer, sent } = await send('chat', to, { messages });
      assert.equal(answer.headers['x-gateway-dropped'], `messages[1].${field}`, `${to}: ${JSON.stringify(members)}`);
      assert.ok(!Buffer.from(sent.body as Uint8Array).includes('OTHER'));
      const { exchange } = open({ path: requests.chat.path, body: { model: 'm', messages } });
      exchange.set(target, targetFor(to, 'm'));
      await assert.rejects(
        Promise.resolve(strict.handle!(exchange, () => assert.fail('nothing is sent'))),
        (error: GatewayError) => error.status === 400 && error.message.includes(`messages[1].${field}`),
      );
    }
});

test('entries without reasoning are not named', async () => {
  const user = { role: 'user', content: 'Hi' };
  const empty = { reasoning_details: [{ type: 'reasoning.text', text: '', signature: null, index: 0, id: 'r' }] };
  const lost = { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } };
  for (const to of names.filter((name) => name !== 'chat'))
    for (const members of [empty, lost, { reasoning_details: [] }, { reasoning_details: null }]) {
      const { answer } = await send('chat', to, {
        messages: [user, { role: 'assistant', content: 'A', ...members }, user],
      });
      assert.equal(answer.headers['x-gateway-dropped'], undefined, `${to}: ${JSON.stringify(members)}`);
    }
});
