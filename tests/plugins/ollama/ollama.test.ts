/** The plugin `ollama` at a strict stand-in of its server: https://docs.ollama.com/api/chat. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from '../../../core/contract/schema.ts';
import type { Play } from '../../matrix/scenario.ts';
import { image, testVendor, tool } from '../vendors/matrix.ts';
import type { Words } from '../vendors/stand-in.ts';

const call = z.strictObject({
  id: z.string().optional(),
  function: z.strictObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
});
const message = z.strictObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string(),
  thinking: z.string().optional(),
  images: z.array(z.base64()).optional(),
  tool_calls: z.array(call).optional(),
  tool_name: z.string().optional(),
  tool_call_id: z.string().optional(),
});
const words: Words = {
  path: '/api/chat',
  key: 'ollama-key-of-the-test',
  streamType: 'application/x-ndjson',
  request: z.strictObject({
    model: z.string(),
    messages: z.array(message).min(1),
    stream: z.boolean(),
    tools: z
      .array(
        z.strictObject({
          type: z.literal('function'),
          function: z.strictObject({
            name: z.string(),
            description: z.string().optional(),
            parameters: z.looseObject({ type: z.literal('object') }),
          }),
        }),
      )
      .optional(),
    format: z.union([z.literal('json'), z.record(z.string(), z.unknown())]).optional(),
    think: z.union([z.boolean(), z.enum(['low', 'medium', 'high'])]).optional(),
    options: z.strictObject({
      num_predict: z.int().optional(),
      temperature: z.number().optional(),
      top_p: z.number().optional(),
      top_k: z.int().optional(),
      seed: z.int().optional(),
      stop: z.array(z.string()).optional(),
      frequency_penalty: z.number().optional(),
      presence_penalty: z.number().optional(),
    }),
  }),
  problem: () => undefined,
  whole: (play, model) => line(model, { ...messageOf(play), tool_calls: callsOf(play) }, endOf(play)),
  stream: (play, model) => [
    ...(play.reasoning?.text.split(/(?<= )/) ?? []).map((thinking) => line(model, { content: '', thinking })),
    ...(play.text?.split(/(?<= )/) ?? []).map((content) => line(model, { content })),
    ...(callsOf(play) ?? []).map((own) => line(model, { content: '', tool_calls: [own] })),
    // Old versions end without a line end.
    line(model, { content: '' }, endOf(play)).trimEnd(),
  ],
  error: (error) => JSON.stringify({ error }),
};

function line(model: string, said: object, end: object = { done: false }): string {
  const created_at = '2026-01-02T03:04:05.678901Z';
  return `${JSON.stringify({ model, created_at, message: { role: 'assistant', ...said }, ...end })}\n`;
}

function messageOf({ text = '', reasoning }: Play): object {
  return { content: text, ...(reasoning === undefined ? {} : { thinking: reasoning.text }) };
}

function callsOf({ calls }: Play): object[] | undefined {
  return calls?.map(({ id, name, input }, index) => ({ id, function: { index, name, arguments: input } }));
}

function endOf({ meaning, usage }: Play): object {
  return {
    done: true,
    done_reason: meaning === 'length' ? 'length' : 'stop',
    ...{ total_duration: 174_560_334, load_duration: 101_397_084, prompt_eval_duration: 13_074_791 },
    prompt_eval_count: usage.input,
    eval_count: usage.output,
    eval_duration: 52_479_709,
  };
}

const stage = testVendor('ollama', words, {
  second: ({ isStream, client }) => {
    const { messages, ...rest } = stage().vendor.bodies.at(-1)! as { messages: { tool_calls?: { id: string }[] }[] };
    // One protocol has no ids of calls: the gateway makes them.
    const ids = messages.flatMap(({ tool_calls: calls }) => calls ?? []).map(({ id }) => id);
    if (client !== 'gemini') assert.deepEqual(ids, ['call_one', 'call_two']);
    assert.deepEqual(rest, { model: 'their-model', stream: isStream, tools: [tool], options: { num_predict: 500 } });
    return {
      ...rest,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'The weather in both towns?', images: [image.base64] },
        {
          role: 'assistant',
          content: 'I look it up – naïvely.',
          tool_calls: ['Zürich', 'Bern'].map((city, index) => ({
            id: ids[index],
            function: { name: 'get_weather', arguments: { city } },
          })),
        },
        ...['sunny', 'rain'].map((content, index) => ({
          role: 'tool',
          content,
          tool_name: 'get_weather',
          tool_call_id: ids[index],
        })),
      ],
    };
  },
  broken: `${line('m', { content: 'It begins' })}${JSON.stringify({ error: 'their-model ran out of memory at 127.0.0.1' })}\n`,
});

const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 };
const from = { client: 'chat', isStream: false } as const;
const hello = { by: 'user', parts: [{ kind: 'text', text: 'Hello' }] } as const;

test('a schema becomes the format, reasoning the switch, and unsupported parameters are named', async () => {
  stage().vendor.says = { text: '{"a":1}', meaning: 'stop', usage };
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' } },
    required: ['a'],
    additionalProperties: false,
  };
  const { dropped } = await stage().send({ turns: [hello], schema, reasons: true, stop: ['END'], hints: true }, from);
  const body = stage().vendor.bodies.at(-1)!;
  assert.deepEqual(body['format'], schema);
  assert.equal(body['think'], true);
  const options = body['options'] as Record<string, unknown>;
  assert.deepEqual([options['stop'], options['temperature']], [['END'], 0.5]);
  assert.match(dropped ?? '', /logit_bias/);
});

test('a prompt without a reported count is charged by its size, and marked as estimated', async () => {
  const { prompt_eval_count: _none, ...end } = endOf({ meaning: 'stop', usage }) as Record<string, unknown>;
  stage().vendor.says = { status: 200, body: line('m', { content: 'Hello.' }, end) };
  const { customer } = await stage().send({ turns: [hello] }, from);
  const { charges } = await stage().testbed.records(customer);
  assert.equal(charges[0]!.estimated, true);
  assert.equal(charges[0]!.classes.output, 2);
  assert.ok(charges[0]!.classes.input! > 0);
});

test('a stream of one line without a line end is an answer', async () => {
  const body = line('m', { content: 'All of it.' }, endOf({ meaning: 'stop', usage })).trimEnd();
  stage().vendor.says = { status: 200, type: 'application/x-ndjson', body };
  const { seen, customer } = await stage().send({ turns: [hello] }, { ...from, isStream: true });
  assert.equal(seen.text, 'All of it.');
  const { charges } = await stage().testbed.records(customer);
  assert.deepEqual([charges[0]!.terminal, charges[0]!.cost], [true, 14_000n]);
});

test('a document other than text is refused', async () => {
  const { status, body } = await stage().refused(
    {
      turns: [
        { by: 'user', parts: [{ kind: 'file', mediaType: 'application/pdf', base64: 'JVBERi0xLjQK', name: 'a.pdf' }] },
      ],
    },
    from,
  );
  assert.equal(status, 400, body);
  assert.match(body, /takes no documents but images and texts/);
});
