/** Requests of which no client has as many values are refused before they are translated; none takes time that grows faster than it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../../core/json/parse.ts';
import { DroppedParameters } from '../../../plugins/common/canonical/dropped-parameters.ts';
import { JsonTexts, valuesIn } from '../../../plugins/protocol-convert/encoding/json-text.ts';
import { protocolNamed } from '../../../plugins/protocol-convert/protocols/index.ts';
import { relay, wholeAnswer } from './harness.ts';

const most = 25_000;
const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

const answers: Record<string, object> = {
  messages: {
    content: [{ type: 'text', text: 'x' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  chat: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
};

async function sent(path: string, body: object, protocol: string): Promise<Record<string, unknown>> {
  const answer = wholeAnswer(JSON.stringify(answers[protocol]));
  const { body: parts } = (await relay({ path, body, target: { protocol } }, answer)).sent;
  const bytes = Array.isArray(parts) ? Buffer.concat(parts as Buffer[]) : (parts as Buffer);
  return JSON.parse(bytes.toString()) as Record<string, unknown>;
}

const padding = 'x'.repeat(2 * most);
/** Bodies with `turns` messages of three values each, and four values beside them. */
const conversations: Record<
  string,
  { path: string; field: string; upstream: string; body: (turns: number) => object }
> = {
  chat: {
    path: '/v1/chat/completions',
    field: 'messages',
    upstream: 'messages',
    body: (turns) => ({ model: 'm', user: padding, messages: times(turns, () => ({ role: 'user', content: 'x' })) }),
  },
  responses: {
    path: '/v1/responses',
    field: 'input',
    upstream: 'messages',
    body: (turns) => ({ model: 'm', user: padding, input: times(turns, () => ({ role: 'user', content: 'x' })) }),
  },
  messages: {
    path: '/v1/messages',
    field: 'messages',
    upstream: 'chat',
    body: (turns) => ({
      model: 'm',
      max_tokens: 1,
      messages: times(turns, () => ({ role: 'user', content: 'x' })),
      metadata: { user_id: padding },
    }),
  },
  gemini: {
    path: '/v1beta/models/m:generateContent',
    field: 'contents',
    upstream: 'chat',
    body: (turns) => ({ contents: times(turns, () => ({ parts: [{ text: 'xx' }] })) }),
  },
};
const valuesOfTurn = { chat: 3, responses: 3, messages: 3, gemini: 4 } as Record<string, number>;

for (const [protocol, { path, field, upstream, body }] of Object.entries(conversations)) {
  test(`${protocol}: one value too many is refused with the field and the limit, and a repetition cannot help`, async () => {
    const fitting = Math.floor((most - 5) / valuesOfTurn[protocol]!);
    await sent(path, body(fitting), upstream);
    await assert.rejects(sent(path, body(fitting + 5), upstream), (error: Record<string, unknown>) => {
      assert.deepEqual([error['kind'], error['field'], error['shouldRetry']], ['invalid_request', field, false]);
      assert.match(String(error['message']), new RegExp(`"${field}".*${most}`));
      return true;
    });
  });
}

test('a relayed body may have more values than a translated one', async () => {
  const { path, body } = conversations['chat']!;
  assert.equal(((await sent(path, body(20_000), 'chat'))['messages'] as object[]).length, 20_000);
});

const calling = (call: object, output = 'r') => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'x' },
    { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', ...call }] },
    { role: 'tool', tool_call_id: 'c', content: output },
  ],
});
const values = (count: number) => `{"a":[${'[],'.repeat(count)}"\\\\",1]}`;

test('values in the arguments of calls count as well, and so does their nesting', async () => {
  const send = (input: string) =>
    sent('/v1/chat/completions', calling({ function: { name: 'f', arguments: input } }), 'messages');
  const fitting = await send(values(9_000).padEnd(100_000));
  const [, { content }] = fitting['messages'] as [unknown, { content: { input: { a: unknown[] } }[] }];
  assert.equal(content[0]!.input.a.length, 9_002);
  const refusal = { kind: 'invalid_request', field: 'messages', shouldRetry: false };
  await assert.rejects(send(values(most)), { ...refusal, message: /arguments of its calls/ });
  await assert.rejects(send(`{"a":${'['.repeat(most)}${']'.repeat(most)}}`), refusal);
  await assert.rejects(send(`{"\\u0061":[${'[],'.repeat(most)}[]]}`), refusal);
});

test('names and ids of a megabyte are refused', async () => {
  const send = (call: object) => sent('/v1/chat/completions', calling(call), 'messages');
  const long = 'x'.repeat(2 ** 20);
  const refusal = { kind: 'invalid_request', field: 'messages', shouldRetry: false };
  await assert.rejects(send({ id: long, function: { name: 'f', arguments: '{}' } }), refusal);
  await assert.rejects(send({ function: { name: long, arguments: '{}' } }), refusal);
});

test('the values of a text are counted as they would be parsed, whatever its strings say', () => {
  const strings = JSON.stringify({ a: 'x,[{"\\'.repeat(100), b: ['\\', '"', ',,,'], c: '\\\\' });
  assert.equal(valuesIn(strings, 1_000), 1 + 1 + 2 + 1 + 2);
  assert.equal(valuesIn(JSON.stringify(times(100, (at) => at)), 1_000), 1 + 1 + 99);
  assert.equal(valuesIn(JSON.stringify(times(100, (at) => at)), 10), 11);
  assert.ok(valuesIn(`"${'x'.repeat(100)}`, 10) <= 1);
});

test('results that are JSON are read as such as long as all of them have no more values than a bound', () => {
  const texts = new JsonTexts(1_000);
  const one = JSON.stringify(times(400, (at) => at));
  assert.equal((texts.parse(one) as number[]).length, 400);
  assert.equal((texts.parse(one) as number[]).length, 400);
  assert.equal(texts.parse(one), undefined);
  assert.deepEqual(texts.parse('[1]'), [1]);
});

const { threadCpuUsage } = process as unknown as { threadCpuUsage(): { user: number; system: number } };

/** Milliseconds of this thread's processor time: what else runs on the machine is not in it. */
function spent(work: () => unknown): number {
  const before = threadCpuUsage.call(process);
  work();
  const after = threadCpuUsage.call(process);
  return (after.user + after.system - before.user - before.system) / 1_000;
}

/** These took seconds, as their time grew with the square of the count. */
const hostile: Record<string, [protocol: string, json: object]> = {
  'thoughts of one message': [
    'chat',
    {
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: 'y',
          reasoning_details: times(33_000, () => ({ type: 'reasoning.text', text: 'x' })),
        },
      ],
    },
  ],
  'results behind one another': [
    'responses',
    {
      input: [
        ...times(50_000, (at) => ({ type: 'function_call_output', call_id: `c${at}`, output: 'r' })),
        { role: 'assistant', content: 'an answer' },
      ],
    },
  ],
};
for (const [name, [protocol, json]] of Object.entries(hostile)) {
  test(`${name}: the time grows with their number alone`, () => {
    const { codec } = protocolNamed(protocol)!;
    const context = { dropped: new DroppedParameters(codec.spelling), open: () => undefined };
    assert.ok(spent(() => codec.decodeRequest(json as never, context)) < 400);
  });
}

test('a name with an escape sequence does not make a text of many values slow', () => {
  const text = `{"\\u0061":[${'[],'.repeat(10 ** 6)}[]]}`;
  assert.ok(spent(() => parseJson(text)) < 1_200);
});

test('one long name is not looked at as a whole for each tool', () => {
  const { codec } = protocolNamed('messages')!;
  const tools = times(50, (at) => ({ kind: 'function', name: `${'.'.repeat(20_000)}${at}`, schema: {} }));
  const context = {
    target: { protocol: 'messages', model: 'm', upstream: { dropFields: {} } },
    traits: {},
    dropped: new DroppedParameters(codec.spelling),
  };
  const prompt = { turns: [{ role: 'user', parts: [{ kind: 'text', text: 'x' }] }], tools };
  assert.ok(spent(() => codec.encodeRequest(prompt as never, context as never)) < 100);
});
