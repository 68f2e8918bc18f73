/** What providers get for their prompt caches: marks in relayed requests of the messages protocol, and the key of a session. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RelayRequest, relay, wholeAnswer } from './harness.ts';

const answered = JSON.stringify({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'x' }],
  usage: { input_tokens: 1, output_tokens: 1 },
});
const chatAnswered = '{"choices":[{}],"usage":{"prompt_tokens":1,"completion_tokens":1}}';

async function sent(
  path: string,
  body: string,
  upstream: NonNullable<NonNullable<RelayRequest['target']>['upstream']>,
  answer = answered,
): Promise<string> {
  const { sent: request } = await relay({ path, body, target: { upstream } }, wholeAnswer(answer));
  return Buffer.from(request.body as Uint8Array).toString();
}
const marked = (body: string, cacheMarks: 'auto' | 'client' | 'off', dropFields = {}) =>
  sent('/v1/messages', body, { cacheMarks, dropFields });

const mark = '"cache_control":{"type":"ephemeral"}';
const agent =
  '{ "model":"m", "max_tokens":5,"big":12345678901234567890, "system":"Be \\u0062rief.", "tools":[{"name":"a"},{"name":"b" }],' +
  '"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":[{"type":"text","text":"three"}]},' +
  '{"role":"assistant","content":"four"},{"role":"user","content":"five"}]}';

test('auto: marks stand at the end of tools, instructions and the last two user turns, and all other bytes stay', async () => {
  const expected = agent
    .replace('"Be \\u0062rief."', `[{"type":"text","text":"Be \\u0062rief.",${mark}}]`)
    .replace('{"name":"b" }', `{"name":"b",${mark} }`)
    .replace('{"type":"text","text":"three"}', `{"type":"text","text":"three",${mark}}`)
    .replace('"five"', `[{"type":"text","text":"five",${mark}}]`);
  assert.equal(await marked(agent, 'auto'), expected);
  assert.equal((JSON.parse(expected) as { max_tokens: number }).max_tokens, 5);
});

test('auto: a request with marks of its own, and one without tools and history, stay as they are', async () => {
  const own = agent.replace('{"name":"a"}', `{"name":"a",${mark}}`);
  assert.equal(await marked(own, 'auto'), own);
  const single = '{"model":"m","max_tokens":5,"system":"s","messages":[{"role":"user","content":"one"}]}';
  assert.equal(await marked(single, 'auto'), single);
});

test('auto: what the provider does not take is left out, with no mark in it', async () => {
  const body = await marked(agent, 'auto', { messages: ['system'] });
  assert.equal('system' in (JSON.parse(body) as object), false);
});

test('client: the client’s marks alone, as they are', async () => {
  assert.equal(await marked(agent, 'client'), agent);
});

test('off: every mark is taken out, wherever it stands, and nothing else', async () => {
  const long = '"cache_control": {"type":"ephemeral","ttl":"1h"}';
  const body =
    `{"model":"m","max_tokens":5,${mark},"system":[{"type":"text","text":"s",${long}}],"tools":[{${mark},"name":"a"}],` +
    `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r",${mark}}],${mark}}]},` +
    `{"role":"user","content":"say \\"cache_control\\""}]}`;
  const expected =
    '{"model":"m","max_tokens":5,"system":[{"type":"text","text":"s"}],"tools":[{"name":"a"}],' +
    '"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]}]},' +
    '{"role":"user","content":"say \\"cache_control\\""}]}';
  assert.equal(await marked(body, 'off'), expected);
});

const chat = (content: string, more = '') => `{"model":"m","messages":[{"role":"user","content":"${content}"}]${more}}`;
const keyIn = (body: string) => (JSON.parse(body) as { prompt_cache_key?: string }).prompt_cache_key;

test('session_key: one digest a session, another for another one, none where the client has its own or it is not set', async () => {
  const keyOf = async (body: string, sessionKey: true | undefined = true) =>
    keyIn(await sent('/v1/chat/completions', body, { ...(sessionKey ? { sessionKey } : {}) }, chatAnswered));
  const one = await keyOf(chat('Hello'));
  assert.match(one!, /^[\w+/=-]{16}$/);
  assert.equal(await keyOf(chat('Hello', ',"seed":1')), one);
  assert.notEqual(await keyOf(chat('Goodbye')), one);
  assert.equal(await keyOf(chat('Hello', ',"prompt_cache_key":"mine"')), 'mine');
  assert.equal(keyIn(await sent('/v1/chat/completions', chat('Hello'), {}, chatAnswered)), undefined);
  const unwanted = { sessionKey: true, dropFields: { chat: ['prompt_cache_key'] } } as const;
  assert.equal(keyIn(await sent('/v1/chat/completions', chat('Hello'), unwanted, chatAnswered)), undefined);
});

async function translated(path: string, body: object, target: NonNullable<RelayRequest['target']>, answer: string) {
  const { sent: request } = await relay({ path, body, target }, wholeAnswer(answer));
  return Buffer.from(request.body as Uint8Array).toString();
}

test('session_key: a session of another protocol gets a digest too, which does not show its name', async () => {
  const answer =
    '{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}';
  const keyOf = async (session: string) => {
    const messages = [{ role: 'user', content: 'Hi' }];
    const body = { model: 'm', max_tokens: 5, metadata: { user_id: session }, messages };
    const upstream = { sessionKey: true } as const;
    return keyIn(await translated('/v1/messages', body, { protocol: 'chat', upstream }, answer));
  };
  const one = await keyOf('session-1');
  assert.match(one!, /^[\w+/=-]{16}$/);
  assert.equal(await keyOf('session-1'), one);
  assert.notEqual(await keyOf('session-2'), one);
});

test('client: a translated request gets no marks of the gateway’s own, as it does by default', async () => {
  const tools = [{ type: 'function', function: { name: 'a', parameters: { type: 'object' } } }];
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], tools };
  const hasMarks = async (upstream: NonNullable<NonNullable<RelayRequest['target']>['upstream']>) =>
    (await translated('/v1/chat/completions', body, { protocol: 'messages', upstream }, answered)).includes(
      'cache_control',
    );
  assert.equal(await hasMarks({}), true);
  assert.equal(await hasMarks({ cacheMarks: 'client' }), false);
  assert.equal(await hasMarks({ cacheMarks: 'off' }), false);
});
