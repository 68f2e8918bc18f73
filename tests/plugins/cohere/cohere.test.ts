/** The plugin `cohere` at a strict stand-in of its vendor: https://docs.cohere.com/reference/chat. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from '../../../core/contract/schema.ts';
import type { Play } from '../../matrix/scenario.ts';
import { image, testVendor, tool } from '../vendors/matrix.ts';
import type { Body, Words } from '../vendors/stand-in.ts';

const text = z.strictObject({ type: z.literal('text'), text: z.string() });
const picture = z.strictObject({
  type: z.literal('image_url'),
  image_url: z.strictObject({
    url: z.string().regex(/^(?:https:|data:image\/)/),
    detail: z.enum(['auto', 'low', 'high']).optional(),
  }),
});
const thought = z.strictObject({ type: z.literal('thinking'), thinking: z.string() });
const call = z.strictObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string().regex(/^[A-Za-z_]\w*$/), arguments: z.string() }),
});
const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: z.union([z.string().min(1), z.array(text)]) }),
  z.strictObject({ role: z.literal('user'), content: z.union([z.string().min(1), z.array(z.union([text, picture]))]) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.union([z.string().min(1), z.array(z.union([text, thought]))]).optional(),
    tool_plan: z.string().optional(),
    tool_calls: z.array(call).min(1).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: z.string() }),
]);

const words: Words = {
  path: '/v2/chat',
  key: 'cohere-key-of-the-test',
  streamType: 'text/event-stream',
  request: z.strictObject({
    model: z.string(),
    messages: z.array(message).min(1),
    stream: z.boolean(),
    tools: z
      .array(
        z.strictObject({
          type: z.literal('function'),
          function: z.strictObject({
            name: z.string().regex(/^[A-Za-z_]\w*$/),
            description: z.string().optional(),
            parameters: z.looseObject({ type: z.literal('object') }),
          }),
        }),
      )
      .min(1)
      .optional(),
    tool_choice: z.enum(['REQUIRED', 'NONE']).optional(),
    response_format: z
      .strictObject({ type: z.literal('json_object'), json_schema: z.record(z.string(), z.unknown()).optional() })
      .optional(),
    thinking: z
      .strictObject({ type: z.enum(['enabled', 'disabled']), token_budget: z.int().min(1).optional() })
      .optional(),
    max_tokens: z.int().min(1).optional(),
    stop_sequences: z.array(z.string()).max(5).optional(),
    temperature: z.number().min(0).max(1).optional(),
    seed: z.int().optional(),
    frequency_penalty: z.number().min(0).max(1).optional(),
    presence_penalty: z.number().min(0).max(1).optional(),
    k: z.int().min(0).max(500).optional(),
    p: z.number().min(0.01).max(0.99).optional(),
  }),
  problem(body) {
    if (body['response_format'] !== undefined && body['tools'] !== undefined) return 'response_format beside tools';
    if (body['tool_choice'] !== undefined && body['tools'] === undefined) return 'tool_choice without tools';
    return unansweredCall(body);
  },
  whole: (play) =>
    JSON.stringify({
      id: 'c14c80c3-18eb-4519-9460-6c92edd8cfb4',
      finish_reason: finishOf(play),
      message: {
        role: 'assistant',
        ...(play.calls === undefined ? {} : { tool_plan: play.text, tool_calls: play.calls.map(callOf) }),
        content: [
          ...(play.reasoning === undefined ? [] : [{ type: 'thinking', thinking: play.reasoning.text }]),
          ...(play.calls === undefined ? [{ type: 'text', text: play.text }] : []),
        ],
      },
      usage: usageOf(play),
    }),
  stream: (play) => [
    event({
      type: 'message-start',
      id: 'c14c80c3-18eb-4519-9460-6c92edd8cfb4',
      delta: { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] } },
    }),
    ...(play.reasoning === undefined ? [] : blockOf(0, 'thinking', play.reasoning.text)),
    ...(play.calls === undefined
      ? blockOf(1, 'text', play.text ?? '')
      : (play.text ?? '')
          .split(/(?<= )/)
          .map((tool_plan) => event({ type: 'tool-plan-delta', delta: { message: { tool_plan } } }))),
    ...(play.calls ?? []).flatMap((own, index) => eventsOf(callOf(own), index)),
    event({ type: 'message-end', delta: { finish_reason: finishOf(play), usage: usageOf(play) } }),
    'data: [DONE]\n\n',
  ],
  error: (words) => JSON.stringify({ id: 'e3b0c442', message: words }),
};

/** Each call is followed by its result. */
function unansweredCall({ messages }: Body): string | undefined {
  let waiting: string[] = [];
  for (const { role, tool_calls: calls = [], tool_call_id: id } of messages as {
    role: string;
    tool_calls?: { id: string }[];
    tool_call_id?: string;
  }[]) {
    if (role === 'tool') {
      if (!waiting.includes(id!)) return `no call ${id}`;
      waiting = waiting.filter((one) => one !== id);
    } else if (waiting.length > 0) return `no result of ${waiting.join()}`;
    else waiting = calls.map((one) => one.id);
  }
  return undefined;
}

function event(json: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`;
}

function blockOf(index: number, type: 'text' | 'thinking', said: string): string[] {
  const content = (value: string) => ({ message: { content: { [type]: value } } });
  return [
    event({ type: 'content-start', ...{ index, delta: { message: { content: { type, [type]: '' } } } } }),
    ...said.split(/(?<= )/).map((piece) => event({ type: 'content-delta', ...{ index, delta: content(piece) } })),
    event({ type: 'content-end', ...{ index } }),
  ];
}

type Call = ReturnType<typeof callOf>;
function callOf({ id, name, input }: NonNullable<Play['calls']>[number]) {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function eventsOf(own: Call, index: number): string[] {
  const { arguments: given, name } = own.function;
  const start = { ...own, function: { name, arguments: '' } };
  const pieces = given.match(/.{1,5}/gsu) ?? [];
  return [
    event({ type: 'tool-call-start', ...{ index, delta: { message: { tool_calls: start } } } }),
    ...pieces.map((piece) =>
      event({
        type: 'tool-call-delta',
        ...{ index, delta: { message: { tool_calls: { function: { arguments: piece } } } } },
      }),
    ),
    event({ type: 'tool-call-end', ...{ index } }),
  ];
}

function finishOf({ meaning }: Play): string {
  return meaning === 'length' ? 'MAX_TOKENS' : meaning === 'tool-calls' ? 'TOOL_CALL' : 'COMPLETE';
}

/** The vendor bills less than its models read: the prompt's own marks are free. */
function usageOf({ usage: { input, output } }: Play) {
  return {
    billed_units: { input_tokens: input, output_tokens: output },
    tokens: { input_tokens: input + 1_400, output_tokens: output + 7 },
  };
}

const stage = testVendor('cohere', words, {
  second: ({ isStream, client }) => {
    const { messages, ...rest } = stage().vendor.bodies.at(-1)! as { messages: { tool_calls?: { id: string }[] }[] };
    const ids = messages.flatMap(({ tool_calls: calls }) => calls ?? []).map(({ id }) => id);
    if (client !== 'gemini') assert.deepEqual(ids, ['call_one', 'call_two']);
    assert.deepEqual(rest, { model: 'their-model', stream: isStream, tools: [tool], max_tokens: 500 });
    const url = `data:image/png;base64,${image.base64}`;
    return {
      ...rest,
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'The weather in both towns?' },
            { type: 'image_url', image_url: { url } },
          ],
        },
        {
          role: 'assistant',
          tool_plan: 'I look it up – naïvely.',
          tool_calls: ['Zürich', 'Bern'].map((city, index) => ({
            id: ids[index],
            type: 'function',
            function: { name: 'get_weather', arguments: JSON.stringify({ city }) },
          })),
        },
        ...['sunny', 'rain'].map((content, index) => ({ role: 'tool', tool_call_id: ids[index], content })),
      ],
    };
  },
  broken: [
    event({ type: 'message-start', ...{ id: 'one', delta: { message: { role: 'assistant' } } } }),
    ...blockOf(0, 'text', 'It begins'),
    event({ type: 'message-end', ...{ delta: { finish_reason: 'ERROR', error: 'their-model failed at 127.0.0.1' } } }),
  ].join(''),
});

const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 };
const from = { client: 'chat', isStream: false } as const;
const hello = { by: 'user', parts: [{ kind: 'text', text: 'Hello' }] } as const;

test('a schema becomes the format; beside tools it is an instruction, as the vendor accepts no format there', async () => {
  stage().vendor.says = { text: '{"a":1}', meaning: 'stop', usage };
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' } },
    required: ['a'],
    additionalProperties: false,
  };
  await stage().send({ turns: [hello], schema }, from);
  assert.deepEqual(stage().vendor.bodies.at(-1)!['response_format'], { type: 'json_object', json_schema: schema });
  const { name, description, parameters } = tool.function;
  await stage().send({ turns: [hello], schema, tools: [{ name, description, schema: parameters }] }, from);
  const body = stage().vendor.bodies.at(-1)!;
  assert.equal(body['response_format'], undefined);
  assert.match(JSON.stringify(body['messages']), /must follow this JSON schema/);
});

test('reasoning is requested with a budget, settings are kept within bounds, and unsupported ones are named', async () => {
  stage().vendor.says = { text: 'Hello.', meaning: 'stop', usage };
  const { dropped } = await stage().send({ turns: [hello], reasons: true, maxOutputTokens: 4_000, hints: true }, from);
  const body = stage().vendor.bodies.at(-1)!;
  assert.deepEqual(body['thinking'], { type: 'enabled', token_budget: 2_400 });
  assert.match(dropped ?? '', /logit_bias/);
});

test("the gateway matches the stop texts beyond the vendor's bound", async () => {
  stage().vendor.says = { text: 'one two END three', meaning: 'stop', usage };
  const { seen } = await stage().send({ turns: [hello], stop: ['a1', 'b2', 'c3', 'd4', 'e5', 'END'] }, from);
  assert.deepEqual(stage().vendor.bodies.at(-1)!['stop_sequences'], ['a1', 'b2', 'c3', 'd4', 'e5']);
  assert.equal(seen.text, 'one two ');
});

test('tokens are charged where the answer has no bill, and cached ones at their own price', async () => {
  const body = words.whole({ text: 'Hello.', meaning: 'stop', usage }, 'm');
  const reported = {
    ...JSON.parse(body),
    usage: { tokens: { input_tokens: 100, output_tokens: 5 }, cached_tokens: 60 },
  };
  stage().vendor.says = { status: 200, body: JSON.stringify(reported) };
  const { customer } = await stage().send({ turns: [hello] }, from);
  const { charges } = await stage().testbed.records(customer);
  assert.deepEqual(charges[0]!.classes, { input: 40, cache_read: 60, output: 5 });
  assert.equal(charges[0]!.cost, 40_000n + 6_000n + 10_000n);
});

test('a whole answer that failed is an error, and costs nothing where the vendor counts nothing', async () => {
  stage().vendor.says = {
    status: 200,
    body: JSON.stringify({ id: 'one', finish_reason: 'ERROR', message: { role: 'assistant', content: [] } }),
  };
  const { status, customer } = await stage().refused({ turns: [hello] }, from);
  assert.equal(status, 502);
  const { charges } = await stage().testbed.records(customer);
  assert.equal(charges.length, 0);
});
