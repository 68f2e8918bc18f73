/** Official libraries read the streams of runs: their own accumulators put the steps together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  const more = 'web-search: { engine: tavily, price: 0.25, api: { url: "sandbox:/search" } }';
  world = await openWorld({ plugins: ['web-search'], more });
});
after(() => world.gateway.stop());

const question = 'What is the weather in Oslo, and what is the time in Europe/Oslo?';
const url = 'gateway://sandbox';
const search = 'Please search the web for boats of Oslo.';
const page = 'https://news.example.com/boats-of-oslo';

test("the stream of a run is put together by OpenAI's library, and continued by its id", async () => {
  const { key } = await world.account();
  const openai = new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: key });
  const tools = [{ type: 'mcp' as const, server_label: 'town', server_url: url, require_approval: 'never' as const }];
  const stream = openai.responses.stream({ model: 'of-messages', input: question, tools });
  const final = await stream.finalResponse();
  assert.deepEqual(
    final.output.map(({ type }) => type),
    ['mcp_list_tools', 'mcp_call', 'mcp_call', 'message'],
  );
  assert.match(final.output_text, /sandbox__time answered.*sandbox__weather answered/);
  const next = await openai.responses.create({
    ...{ model: 'of-gemini', input: 'And in Bergen?', tools },
    previous_response_id: final.id,
  });
  assert.match(next.output_text, /Bergen/);
});

test("the stream of a run is put together by Anthropic's library", async () => {
  const { key } = await world.account();
  const anthropic = new Anthropic({ baseURL: world.gateway.origin, apiKey: key });
  const stream = anthropic.beta.messages.stream({
    ...{ model: 'of-chat', max_tokens: 900, messages: [{ role: 'user', content: question }] },
    mcp_servers: [{ type: 'url', url, name: 'town' }],
    betas: ['mcp-client-2025-11-20'],
  });
  const { content, stop_reason } = await stream.finalMessage();
  assert.deepEqual(
    content.map(({ type }) => type),
    ['mcp_tool_use', 'mcp_tool_result', 'mcp_tool_use', 'mcp_tool_result', 'text'],
  );
  assert.deepEqual(content[2]!.type === 'mcp_tool_use' && content[2]!.input, { city: 'Oslo' });
  assert.equal(stop_reason, 'end_turn');
});

test("the stream of a run is read by Google's library", async () => {
  const { key } = await world.account();
  const google = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: world.gateway.origin } });
  const tools = [{ mcpServers: [{ name: 'town', streamableHttpTransport: { url } }] }];
  const stream = await google.models.generateContentStream({
    ...{ model: 'of-responses', contents: question, config: { tools } },
  });
  let text = '';
  for await (const chunk of stream) text += chunk.text ?? '';
  assert.match(text, /sandbox__time answered.*sandbox__weather answered/);
});

test("the stream of a run is put together by OpenAI's library in chat completions", async () => {
  const { key } = await world.account();
  const openai = new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: key });
  const tools = [{ type: 'mcp', server_label: 'town', server_url: url }] as unknown as OpenAI.ChatCompletionTool[];
  const messages = [{ role: 'user' as const, content: question }];
  const completion = await openai.chat.completions
    .stream({ model: 'of-gemini', messages, tools })
    .finalChatCompletion();
  const [choice] = completion.choices;
  assert.match(choice!.message.content!, /sandbox__time answered.*sandbox__weather answered/);
  assert.equal(choice!.finish_reason, 'stop');
});

test('streams of runs with searches are put together by the libraries of four protocols, with the pages that are cited', async () => {
  const { key } = await world.account();
  const openai = new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: key });
  const response = openai.responses.stream({ model: 'of-chat', input: search, tools: [{ type: 'web_search' }] });
  const { output } = await response.finalResponse();
  const said = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const [annotation] = said.flatMap((part) => (part.type === 'output_text' ? part.annotations : []));
  assert.equal(annotation?.type === 'url_citation' && annotation.url, page);
  const completion = await openai.chat.completions.create({
    ...{ model: 'of-gemini', messages: [{ role: 'user', content: search }], web_search_options: {} },
  });
  assert.equal(completion.choices[0]!.message.annotations?.[0]?.url_citation.url, page);
  const anthropic = new Anthropic({ baseURL: world.gateway.origin, apiKey: key });
  const message = anthropic.messages.stream({
    ...{ model: 'of-responses', max_tokens: 900, messages: [{ role: 'user', content: search }] },
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  });
  const { content } = await message.finalMessage();
  const [use, result, text] = content;
  assert.deepEqual(use?.type === 'server_tool_use' && use.input, { query: 'boats of Oslo' });
  assert.ok(result?.type === 'web_search_tool_result' && Array.isArray(result.content));
  const [cited] = (text?.type === 'text' && text.citations) || [];
  assert.equal(cited?.type === 'web_search_result_location' && cited.url, page);
  const google = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: world.gateway.origin } });
  const chunks = await google.models.generateContentStream({
    ...{ model: 'of-messages', contents: search, config: { tools: [{ googleSearch: {} }] } },
  });
  let grounding: unknown;
  for await (const { candidates } of chunks)
    grounding = candidates?.[0]?.groundingMetadata?.groundingChunks?.[0]?.web?.uri;
  assert.equal(grounding, page);
});

test('turns over WebSocket run tools too, and the next one goes on from them', async () => {
  const { id, key } = await world.account();
  const tools = [{ type: 'mcp', server_label: 'town', server_url: url, require_approval: 'never' }];
  const socket = new ResponsesWS(new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: key }));
  const turn = (body: object) =>
    new Promise<OpenAI.Responses.Response>((resolve, reject) => {
      const take = (event: { type: string }) => {
        if (event.type !== 'response.completed') return;
        socket.off('event', take);
        resolve((event as unknown as { response: OpenAI.Responses.Response }).response);
      };
      socket.on('event', take);
      socket.on('error', reject);
      socket.send({ type: 'response.create', model: 'of-chat', tools, ...body } as never);
    });
  try {
    const first = await turn({ input: question });
    assert.deepEqual(
      first.output.map(({ type }) => type),
      ['mcp_list_tools', 'mcp_call', 'mcp_call', 'message'],
    );
    const next = await turn({ input: 'And the weather in Bergen?', previous_response_id: first.id });
    assert.match(JSON.stringify(next.output), /sandbox__weather answered: .*Bergen/);
    // Four turns and three tools.
    assert.equal((await world.charges(id, 7)).length, 7);
  } finally {
    socket.close();
  }
});
