/** Runs of clients that speak chat completions, messages and generate-content, with models of all four families. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventsOf, families, type Json, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.gateway.stop());

const question = 'What is the weather in Oslo, and what is the time in Europe/Oslo?';
const server = 'gateway://sandbox';
const said = /The tool sandbox__time answered: .*The tool sandbox__weather answered: .*Oslo/;

interface Client {
  readonly name: string;
  path(model: string, stream: boolean): string;
  body(model: string, stream: boolean): Json;
  readonly headers?: Record<string, string>;
  /** Throws where the answer is not the run's. */
  whole(answer: Json): void;
  streamed(events: Json[]): void;
}

const textIn = (parts: Json[]) => parts.map(({ text }) => text ?? '').join('');

const clients: Client[] = [
  {
    name: 'chat completions',
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      ...{ model, messages: [{ role: 'user', content: question }] },
      tools: [{ type: 'mcp', server_label: 'town', server_url: server }],
      ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    }),
    whole({ choices: [{ message, finish_reason }], usage }) {
      assert.match(message.content, said);
      assert.equal(message.tool_calls, undefined);
      assert.deepEqual(
        message.executed_tools.map(({ name }: Json) => name),
        ['sandbox__time', 'sandbox__weather'],
      );
      assert.equal(finish_reason, 'stop');
      assert.ok(usage.total_tokens > 0);
    },
    streamed(events) {
      const deltas = events.flatMap(({ choices }) => choices.map(({ delta }: Json) => delta));
      assert.match(deltas.map(({ content }) => content ?? '').join(''), said);
      assert.equal(deltas.filter(({ tool_calls }) => tool_calls !== undefined).length, 0);
      assert.equal(deltas.flatMap(({ executed_tools: made = [] }) => made).length, 2);
      assert.equal(new Set(events.map(({ id }) => id)).size, 1);
      assert.equal(events.at(-2).choices[0].finish_reason, 'stop');
      assert.ok(events.at(-1).usage.total_tokens > 0);
    },
  },
  {
    name: 'messages',
    path: () => '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'mcp-client-2025-11-20' },
    body: (model, stream) => ({
      ...{ model, max_tokens: 900, messages: [{ role: 'user', content: question }], stream },
      mcp_servers: [{ type: 'url', url: server, name: 'town' }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'town', configs: { order: { enabled: false } } }],
    }),
    whole({ content, stop_reason, usage }) {
      const calls = ['mcp_tool_use', 'mcp_tool_result'];
      assert.deepEqual(
        content.map(({ type }: Json) => type),
        [...calls, ...calls, 'text'],
      );
      assert.equal(content[0].server_name, 'town');
      assert.equal(content[1].tool_use_id, content[0].id);
      assert.match(content[4].text, said);
      assert.equal(stop_reason, 'end_turn');
      assert.ok(usage.output_tokens > 0);
    },
    streamed(events) {
      const starts = events.filter(({ type }) => type === 'content_block_start');
      assert.deepEqual(
        starts.map(({ index }) => index),
        [0, 1, 2, 3, 4],
      );
      assert.deepEqual(starts.map(({ content_block }) => content_block.type).slice(0, 3), [
        'mcp_tool_use',
        'mcp_tool_result',
        'mcp_tool_use',
      ]);
      assert.equal(events.filter(({ type }) => type === 'message_start').length, 1);
      const ends = events.slice(-2);
      assert.deepEqual(
        ends.map(({ type }) => type),
        ['message_delta', 'message_stop'],
      );
      assert.equal(ends[0].delta.stop_reason, 'end_turn');
      const texts = events.flatMap(({ delta }) => (delta?.type === 'text_delta' ? [delta.text] : []));
      assert.match(texts.join(''), said);
    },
  },
  {
    name: 'generate-content',
    path: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({
      contents: [{ role: 'user', parts: [{ text: question }] }],
      tools: [{ mcpServers: [{ name: 'town', streamableHttpTransport: { url: server } }] }],
    }),
    whole({ candidates: [{ content, finishReason }], usageMetadata }) {
      assert.match(textIn(content.parts), said);
      assert.equal(finishReason, 'STOP');
      assert.ok(usageMetadata.totalTokenCount > 0);
    },
    streamed(events) {
      const parts = events.flatMap(({ candidates }) => candidates[0].content.parts);
      assert.match(textIn(parts), said);
      assert.equal(parts.filter(({ functionCall }) => functionCall !== undefined).length, 0);
      assert.equal(events.at(-1).candidates[0].finishReason, 'STOP');
      assert.ok(events.at(-1).usageMetadata.totalTokenCount > 0);
    },
  },
];

for (const client of clients) {
  for (const family of families) {
    test(`a client of ${client.name} gets what two tools have said to a model of ${family}, whole and streamed, at the same price`, async () => {
      const model = `of-${family}`;
      const costs = [];
      for (const stream of [false, true]) {
        const { id, key } = await world.account();
        const response = await world.post(client.path(model, stream), key, client.body(model, stream), client.headers);
        assert.equal(response.status, 200);
        if (stream) client.streamed(await eventsOf(response));
        else client.whole(await response.json());
        const charges = await world.charges(id, 4);
        costs.push(charges.map(({ change }) => change));
      }
      assert.deepEqual(costs[0], costs[1]);
      assert.equal(costs[0]!.length, 4);
    });
  }
}

test('blocks of an earlier run in messages are read again as calls with their results', async () => {
  const { key } = await world.account();
  const [, client] = clients;
  const body = client!.body('of-messages', false);
  const first: Json = await (await world.post('/v1/messages', key, body, client!.headers)).json();
  const messages = [
    ...body.messages,
    { role: 'assistant', content: first.content },
    { role: 'user', content: 'Thank you' },
  ];
  const second: Json = await (await world.post('/v1/messages', key, { ...body, messages }, client!.headers)).json();
  assert.equal(second.type, 'message', JSON.stringify(second));
  assert.deepEqual(
    second.content.map(({ type }: Json) => type),
    ['text'],
  );
});

test('steps of a run are parts of generate-content for a client that asks for them, and are read again', async () => {
  const { key } = await world.account();
  const body = {
    contents: [{ role: 'user', parts: [{ text: question }] }],
    tools: [{ mcpServers: [{ name: 'town', streamableHttpTransport: { url: server } }] }],
    toolConfig: { includeServerSideToolInvocations: true },
  };
  for (const family of families)
    for (const stream of [false, true]) {
      const path = `/v1beta/models/of-${family}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
      const answer = await world.post(path, key, body);
      const answers: Json[] = stream ? await eventsOf(answer) : [await answer.json()];
      const parts = answers.flatMap(({ candidates: [{ content }] }) => content.parts);
      const steps = parts.filter((part: Json) => part.toolCall !== undefined || part.toolResponse !== undefined);
      const [call, result] = steps;
      assert.equal(steps.length, 4, family);
      assert.deepEqual([call.toolCall.args.server, call.toolCall.args.name], ['town', 'sandbox__time']);
      assert.equal(result.toolResponse.id, call.toolCall.id);
      assert.match(result.toolResponse.response.result, /Europe\/Oslo/);
      assert.match(textIn(parts), said);
      const contents = [...body.contents, { role: 'model', parts }, { role: 'user', parts: [{ text: 'Thank you.' }] }];
      const next = await world.post(`/v1beta/models/of-${family}:generateContent`, key, { ...body, contents });
      assert.equal(next.status, 200, `${family} ${await next.clone().text()}`);
      const { candidates }: Json = await next.json();
      assert.match(textIn(candidates[0].content.parts), /Thank you/);
    }
});

test('a stream of generate-content without server-sent events is one JSON array', async () => {
  const { key } = await world.account();
  const [, , client] = clients;
  const path = client!.path('of-chat', true).replace('?alt=sse', '');
  const response = await world.post(path, key, client!.body('of-chat', true));
  client!.streamed(JSON.parse(await response.text()));
});

test("a turn that calls a function of the client too ends with the client's call alone", async () => {
  const { key } = await world.account();
  const [client] = clients;
  const body = client!.body('of-chat', false);
  const own = { type: 'function', function: { name: 'my__time', parameters: { type: 'object', properties: {} } } };
  const answer: Json = await (
    await world.post('/v1/chat/completions', key, { ...body, tools: [...body.tools, own] })
  ).json();
  const [{ message, finish_reason }] = answer.choices;
  assert.deepEqual(
    message.tool_calls.map((call: Json) => call.function.name),
    ['my__time'],
  );
  assert.equal(finish_reason, 'tool_calls');
});

test('an approval that chat completions cannot ask for is refused', async () => {
  const { key } = await world.account();
  const body = clients[0]!.body('of-chat', false);
  const tools = [{ ...body.tools[0], require_approval: 'always' }];
  const response = await world.post('/v1/chat/completions', key, { ...body, tools });
  assert.equal(response.status, 400);
  assert.equal(((await response.json()) as Json).error.param, 'tools[0].require_approval');
});
