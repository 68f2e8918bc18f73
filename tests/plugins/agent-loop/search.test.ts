/** Searches of the web by the gateway, for clients of four protocols with models of four families: what is shown, cited and paid. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventsOf, families, type Json, openWorld, type World } from './world.ts';

const search = (more = '') => `web-search: { engine: tavily, price: 0.25, api: { url: "sandbox:/search" } }\n${more}`;
let world: World;
before(async () => {
  world = await openWorld({ more: search(), plugins: ['web-search'] });
});
after(() => world.gateway.stop());

const question = 'Please search the web for boats of Oslo.';
const page = 'https://news.example.com/boats-of-oslo';

interface Client {
  readonly name: string;
  path(model: string, stream: boolean): string;
  body(model: string, stream: boolean, options?: object): Json;
  readonly headers?: Record<string, string>;
  /** The member of the request that says which domains, for a place in an error. */
  whole(answer: Json): void;
  streamed(events: Json[]): void;
}

/** The cited text, by its place in the answer, is a link to the page. */
const isLink = (text: string, start: number, end: number) =>
  assert.equal(text.slice(start, end), `[boats of Oslo at news.example.com](${page})`);

const clients: Client[] = [
  {
    name: 'responses',
    path: () => '/v1/responses',
    body: (model, stream, options = {}) => ({
      ...{ model, input: question, stream, include: ['web_search_call.action.sources'] },
      tools: [{ type: 'web_search', ...options }],
    }),
    whole({ output, status, tools }) {
      assert.deepEqual(
        output.map(({ type }: Json) => type),
        ['web_search_call', 'message'],
      );
      const [{ id, action, status: ended }, message] = output;
      assert.match(id, /^ws_/);
      assert.deepEqual(
        [ended, status, action.type, action.query],
        ['completed', 'completed', 'search', 'boats of Oslo'],
      );
      assert.deepEqual(action.sources[0], { type: 'url', url: page });
      const [{ text, annotations }] = message.content;
      const [{ type, url, title, start_index, end_index }] = annotations;
      assert.deepEqual([type, url, title], ['url_citation', page, 'boats of Oslo at news.example.com']);
      isLink(text, start_index, end_index);
      assert.equal(tools[0].type, 'web_search', 'the answer has the tools of the request');
    },
    streamed(events) {
      const types = events.map(({ type }) => type);
      const order = ['output_item.added', 'web_search_call.in_progress', 'web_search_call.searching'];
      order.push('web_search_call.completed', 'output_item.done');
      const begin = types.indexOf('response.output_item.added');
      assert.deepEqual(
        types.slice(begin, begin + 5),
        order.map((type) => `response.${type}`),
      );
      const added = types.indexOf('response.output_text.annotation.added');
      assert.ok(
        added > types.indexOf('response.output_text.delta') && added < types.indexOf('response.output_text.done'),
      );
      assert.equal(events[added].annotation.url, page);
      assert.deepEqual(
        events.map(({ sequence_number: number }) => number),
        events.map((_, index) => index),
      );
      const { response } = events.at(-1);
      this.whole(response);
      const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
      assert.deepEqual(done, response.output);
    },
  },
  {
    name: 'chat completions',
    path: () => '/v1/chat/completions',
    body: (model, stream, options = {}) => ({
      ...{ model, stream, messages: [{ role: 'user', content: question }] },
      web_search_options: options,
    }),
    whole({ choices: [{ message, finish_reason }] }) {
      const [{ type, url_citation: cited }] = message.annotations;
      assert.deepEqual([type, cited.url, finish_reason], ['url_citation', page, 'stop']);
      isLink(message.content, cited.start_index, cited.end_index);
      assert.deepEqual(
        message.executed_tools.map(({ type }: Json) => type),
        ['web_search'],
      );
    },
    streamed(events) {
      const deltas = events.flatMap(({ choices }) => choices.map(({ delta }: Json) => delta));
      const text = deltas.map(({ content }) => content ?? '').join('');
      const [{ url_citation: cited }] = deltas.flatMap(({ annotations = [] }) => annotations);
      isLink(text, cited.start_index, cited.end_index);
      assert.equal(events.flatMap(({ choices }) => choices).at(-1).finish_reason, 'stop');
    },
  },
  {
    name: 'messages',
    path: () => '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (model, stream, options = {}) => ({
      ...{ model, stream, max_tokens: 900, messages: [{ role: 'user', content: question }] },
      tools: [{ type: 'web_search_20250305', name: 'web_search', ...options }],
    }),
    whole({ content, stop_reason, usage }) {
      assert.deepEqual(
        content.map(({ type }: Json) => type),
        ['server_tool_use', 'web_search_tool_result', 'text'],
      );
      const [use, { tool_use_id: of, content: pages }, { citations }] = content;
      assert.match(use.id, /^srvtoolu_[a-zA-Z0-9_]+$/);
      assert.deepEqual([use.name, use.input, of], ['web_search', { query: 'boats of Oslo' }, use.id]);
      assert.deepEqual([pages[0].type, pages[0].url, pages[0].page_age], ['web_search_result', page, '2026-01-01']);
      assert.deepEqual([citations[0].type, citations[0].url], ['web_search_result_location', page]);
      assert.match(citations[0].cited_text, /^Page 1 about boats of Oslo/);
      assert.deepEqual([stop_reason, usage.server_tool_use.web_search_requests], ['end_turn', 1]);
    },
    streamed(events) {
      const content: Json[] = [];
      for (const { type, index, content_block: block, delta } of events) {
        if (type === 'content_block_start') content[index] = { ...block, json: '' };
        if (delta?.type === 'input_json_delta') content[index].json += delta.partial_json;
        if (delta?.type === 'text_delta') content[index].text += delta.text;
        if (delta?.type === 'citations_delta')
          content[index].citations = [...(content[index].citations ?? []), delta.citation];
      }
      content[0].input = JSON.parse(content[0].json);
      const { delta, usage } = events.find(({ type }) => type === 'message_delta');
      this.whole({ content, stop_reason: delta.stop_reason, usage });
      assert.equal(events.at(-1).type, 'message_stop');
    },
  },
  {
    name: 'generate-content',
    path: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (_model, _stream, options = {}) => ({
      contents: [{ role: 'user', parts: [{ text: question }] }],
      tools: [{ googleSearch: options }],
    }),
    whole({ candidates: [{ content, groundingMetadata: grounding, finishReason }] }) {
      assert.deepEqual(grounding.webSearchQueries, ['boats of Oslo']);
      assert.deepEqual(grounding.groundingChunks[0].web, { uri: page, title: 'boats of Oslo at news.example.com' });
      const [{ segment, groundingChunkIndices }] = grounding.groundingSupports;
      assert.deepEqual(groundingChunkIndices, [0]);
      const text = Buffer.from(content.parts.map(({ text }: Json) => text).join(''));
      assert.equal(text.subarray(segment.startIndex, segment.endIndex).toString(), segment.text);
      assert.equal(segment.text, `[boats of Oslo at news.example.com](${page})`);
      assert.equal(finishReason, 'STOP');
    },
    streamed(events) {
      const parts = events.flatMap(({ candidates: [{ content }] }) => content.parts);
      assert.equal(parts.filter(({ functionCall }) => functionCall !== undefined).length, 0);
      this.whole({ candidates: [{ ...events.at(-1).candidates[0], content: { parts } }] });
    },
  },
];

for (const client of clients)
  test(`a model of each family answers a client of ${client.name} with what the gateway has found, whole and streamed, at the price of a search`, async () => {
    for (const family of families) {
      const { id, key } = await world.account();
      for (const stream of [false, true]) {
        const answer = await world.post(
          client.path(`of-${family}`, stream),
          key,
          client.body(`of-${family}`, stream),
          client.headers,
        );
        assert.equal(answer.status, 200, `${family} ${await answer.clone().text()}`);
        if (stream) client.streamed(await eventsOf(answer));
        else client.whole(await answer.json());
      }
      const charges = await world.charges(id, 6);
      assert.equal(charges.filter(({ change }) => change === '-0.25').length, 2, family);
    }
  });

/** What the run has searched, by the sites of its results. */
const sites = (answer: Json): string[] =>
  answer.output[0].action.sources.map(({ url }: Json) => new URL(url).hostname).sort();

test('domains, the size of the context and the place are honoured', async () => {
  const { key } = await world.account();
  const run = async (options: object) =>
    (await world.post('/v1/responses', key, clients[0]!.body('of-chat', false, options))).json();
  assert.deepEqual(sites(await run({ filters: { allowed_domains: ['example.com'] } })), [
    'forum.example.com',
    'news.example.com',
  ]);
  assert.equal(sites(await run({ search_context_size: 'low' })).length, 3);
  // As coding clients ask for it.
  assert.equal(sites(await run({ search_content_types: ['text', 'image'], return_token_budget: 'high' })).length, 4);
  const where = { type: 'approximate', city: 'Oslo', country: 'NO', timezone: 'Europe/Oslo' };
  assert.equal(sites(await run({ user_location: where })).length, 4);
  const blocked = await world.post(
    '/v1/messages',
    key,
    clients[2]!.body('of-chat', false, { blocked_domains: ['example.com'] }),
  );
  const { content }: Json = await blocked.json();
  assert.deepEqual(content[1].content.map(({ url }: Json) => new URL(url).hostname).sort(), [
    'shop.example.net',
    'wiki.example.org',
  ]);
});

test('a search that asks for more than the gateway can do is refused by its field, in the protocol of the client', async () => {
  const { key } = await world.account();
  const refused: [number, object, number, RegExp][] = [
    [0, { search_content_types: ['image'] }, 422, /search_content_types/],
    [0, { search_context_size: 'huge' }, 400, /low/],
    [0, { filters: { allowed_domains: ['https://x'] } }, 400, /Domains/],
    [1, { search_recency: 'day' }, 422, /web_search_options\.search_recency/],
    [2, { max_uses: 0 }, 400, /from 1 on/],
    [2, { allowed_callers: ['code_execution_20250825'] }, 422, /allowed_callers/],
    [3, { timeRangeFilter: {} }, 422, /timeRangeFilter/],
  ];
  for (const [index, options, status, says] of refused) {
    const client = clients[index]!;
    const answer = await world.post(
      client.path('of-chat', false),
      key,
      client.body('of-chat', false, options),
      client.headers,
    );
    assert.equal(answer.status, status, JSON.stringify(options));
    assert.match(JSON.stringify(await answer.json()), says);
  }
});

test('a choice of tools that names the search is one of the function that searches', async () => {
  const { key } = await world.account();
  const forced = { type: 'web_search' };
  for (const choice of [forced, { type: 'allowed_tools', mode: 'required', tools: [forced] }]) {
    const body = { ...clients[0]!.body('of-responses', false), input: 'Boats.', tool_choice: choice };
    const { output, tool_choice: echoed }: Json = await (await world.post('/v1/responses', key, body)).json();
    assert.deepEqual(
      output.map(({ type }: Json) => type),
      ['web_search_call', 'message'],
    );
    assert.deepEqual(echoed, choice);
  }
});

test('a client that wants no live pages gets no search of the gateway', async () => {
  const { key } = await world.account();
  const body = clients[0]!.body('of-chat', false, { external_web_access: false });
  const answer = await world.post('/v1/responses', key, body);
  assert.ok(!(await answer.text()).includes('web_search_call'));
});

test('searches beyond max_uses are not made, and the model reads why', async () => {
  const { id, key } = await world.account();
  // This model of the sandbox calls the tool as often as a prompt says.
  const body = clients[2]!.body('of-messages', false, { max_uses: 1 });
  body.messages[0].content = '[[sandbox: tools=2]] Boats.';
  const { content, usage }: Json = await (await world.post('/v1/messages', key, body)).json();
  const results = content.filter(({ type }: Json) => type === 'web_search_tool_result').map((one: Json) => one.content);
  assert.ok(Array.isArray(results[0]));
  assert.deepEqual(results[1], { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' });
  assert.equal(usage.server_tool_use.web_search_requests, 1);
  const charges = await world.charges(id, 3);
  assert.equal(charges.filter(({ change }) => change === '-0.25').length, 1);
});

test('a conversation goes on from the blocks of an earlier search, with a model of any family', async () => {
  const { key } = await world.account();
  const first: Json = await (await world.post('/v1/messages', key, clients[2]!.body('of-chat', false))).json();
  for (const family of families) {
    const body = clients[2]!.body(`of-${family}`, false);
    body.messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: 'Thank you.' });
    const answer = await world.post('/v1/messages', key, body);
    assert.equal(answer.status, 200, `${family} ${await answer.clone().text()}`);
    assert.match(((await answer.json()) as Json).content.at(-1).text, /Thank you/);
  }
  const again = clients[0]!.body('of-responses', false);
  const { output }: Json = await (await world.post('/v1/responses', key, again)).json();
  again.input = [{ role: 'user', content: question }, ...output, { role: 'user', content: 'Thank you.' }];
  assert.equal((await world.post('/v1/responses', key, again)).status, 200);
});

test('a search with tools of a server beside it is one run with one bill', async () => {
  const { id, key } = await world.account();
  const body = clients[0]!.body('of-gemini', false);
  body.input = `What is the weather in Oslo? ${question}`;
  body.tools.push({ type: 'mcp', server_label: 'town', server_url: 'gateway://sandbox', require_approval: 'never' });
  const answer = await world.post('/v1/responses', key, body);
  const { output }: Json = await answer.json();
  assert.deepEqual(output.map(({ type }: Json) => type).sort(), [
    'mcp_call',
    'mcp_list_tools',
    'message',
    'web_search_call',
  ]);
  await world.charges(id, 4);
  const run = answer.headers.get('x-request-id')!;
  const bill: Json = await (
    await fetch(`${world.gateway.origin}/v1/usage/runs/${run}`, { headers: { authorization: `Bearer ${key}` } })
  ).json();
  assert.deepEqual(
    bill.steps
      .filter(({ kind }: Json) => kind === 'tool')
      .map(({ tool, cost }: Json) => [tool, cost])
      .sort(),
    [
      ['sandbox__weather', '0.50'],
      ['web-search', '0.25'],
    ],
  );
});

test('money that ends in the middle of a run with searches ends it with what it has, and costs nothing more', async () => {
  const { id, key } = await world.account('0.1');
  const { status, output }: Json = await (
    await world.post('/v1/responses', key, clients[0]!.body('of-chat', false))
  ).json();
  assert.equal(status, 'incomplete');
  assert.deepEqual(
    output.map((one: Json) => [one.type, one.status]),
    [['web_search_call', 'failed']],
  );
  assert.equal((await world.charges(id, 1)).length, 1);
});

test('a run with searches that is repeated by its Idempotency-Key has the same answer, and is charged once', async () => {
  const { id, key } = await world.account();
  const headers = { 'idempotency-key': 'search 1' };
  const body = clients[0]!.body('of-chat', false);
  const text = async () => {
    const { output }: Json = await (await world.post('/v1/responses', key, body, headers)).json();
    return output.at(-1).content[0].text;
  };
  const first = await text();
  await world.charges(id, 3);
  assert.equal(await text(), first);
  assert.equal((await world.charges(id, 3)).length, 3);
});

test('a function of the client with the name of the search is refused', async () => {
  const { key } = await world.account();
  const body = clients[0]!.body('of-chat', false);
  body.tools.push({ type: 'function', name: 'web_search', parameters: { type: 'object' } });
  const answer = await world.post('/v1/responses', key, body);
  assert.equal(answer.status, 400);
  assert.match(JSON.stringify(await answer.json()), /\\"web_search\\"/);
});

test('a model whose vendor searches itself is left to it, as is every model where the gateway has no engine', async () => {
  await using own = await openWorld({
    more: search(),
    plugins: ['web-search'],
    price: 'input: 1, output: 10, web_search: 0.125',
  });
  const { key } = await own.account();
  const vendor = clients[0]!.body('of-responses', false);
  const { output }: Json = await (await own.post('/v1/responses', key, vendor)).json();
  assert.deepEqual(
    output.map(({ type }: Json) => type),
    ['message'],
    'the request was relayed: the sandbox has no search',
  );
  const none: Json = await (await own.post('/v1/responses', key, clients[0]!.body('of-chat', false))).json();
  assert.deepEqual(
    none.output.map(({ type }: Json) => type),
    ['web_search_call', 'message'],
    'chat has none unless traits say so',
  );
  const bound = await own.account('10', ['of-chat']);
  const without: Json = await (await own.post('/v1/responses', bound.key, clients[0]!.body('of-chat', false))).json();
  assert.ok(!JSON.stringify(without).includes('web_search_call'), 'a key that may not search gets none');
});
