/** Searches of files by the gateway, for models of four families: what is shown, cited and paid, and which stores are left to their vendor. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { eventsOf, families, type Json, openWorld, type World } from './world.ts';

let world: World;
/** For tests in which nothing is counted. */
let shared: Awaited<ReturnType<typeof open>>;
before(async () => {
  world = await openWorld({
    first: ['files'],
    last: ['endpoints', 'uploads', 'vector-stores'],
    providers: '  vectors: { keys: key, speaks: { openai-embeddings: "sandbox:/v1" } }',
    models: '  vectors: { kind: embedding, owned_by: x, context: 8k, price: { input: 10000 }, targets: [vectors] }',
    more: 'vector-stores: { model: vectors, dimensions: 64 }',
  });
  shared = await open();
});
after(() => world.gateway.stop());

const whales = 'Whales sing songs in the deep sea.';
const question = 'Please search the files for songs of whales.';
const include: OpenAI.Responses.ResponseIncludable[] = ['file_search_call.results'];
const price = (input: number) => (input * 10_000) / 1e6;

/** An account with a store of two files. */
async function open(usd = '100') {
  const { id: account, key } = await world.account(usd);
  const client = new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: key, maxRetries: 0 });
  const { id } = await client.vectorStores.create({});
  for (const [name, text, topic] of [
    ['whales.txt', whales, 'sea'],
    ['cheese.txt', 'Cheese ripens in caves.', 'food'],
  ] as const) {
    const file = await client.files.create({ file: new File([text], name), purpose: 'assistants' });
    const put = { file_id: file.id, attributes: { topic } };
    const { status } = await client.vectorStores.files.createAndPoll(id, put, { pollIntervalMs: 20 });
    assert.equal(status, 'completed');
  }
  return { account, key, client, store: id };
}

const toolOf = (store: string, more: Partial<OpenAI.Responses.FileSearchTool> = {}) => [
  { type: 'file_search' as const, vector_store_ids: [store], max_num_results: 1, ...more },
];

function isFound({ output, status, tools }: OpenAI.Responses.Response, store: string): void {
  assert.deepEqual([status, output.map(({ type }) => type)], ['completed', ['file_search_call', 'message']]);
  const [call, message] = output as [Json, Json];
  assert.match(call.id, /^fs_/);
  assert.deepEqual([call.status, call.queries], ['completed', ['songs of whales']]);
  const [{ file_id, filename, text, score, attributes }] = call.results;
  assert.deepEqual([filename, text, attributes], ['whales.txt', whales, { topic: 'sea' }]);
  assert.ok(score > 0 && score <= 1);
  const [{ text: said, annotations }] = message.content;
  const [{ type, index, ...cited }] = annotations;
  assert.deepEqual([type, cited], ['file_citation', { file_id, filename }]);
  assert.ok(said.slice(index).startsWith('【1†whales.txt】'), said);
  assert.deepEqual((tools[0] as Json).vector_store_ids, [store], 'the answer has the tools of the request');
}

test('responses find texts of files for models of every family, whole and streamed, and cite them', async () => {
  const { client, store } = shared;
  for (const family of families) {
    const request = { model: `of-${family}`, input: question, tools: toolOf(store), include };
    isFound(await client.responses.create(request), store);
    const stream = client.responses.stream(request);
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    isFound(await stream.finalResponse(), store);
    const begin = types.indexOf('response.output_item.added');
    assert.deepEqual(types.slice(begin, begin + 5), [
      'response.output_item.added',
      'response.file_search_call.in_progress',
      'response.file_search_call.searching',
      'response.file_search_call.completed',
      'response.output_item.done',
    ]);
    assert.ok(types.includes('response.output_text.annotation.added'));
  }
});

test('results are shown to clients that ask for them alone, and an answer with them is continued', async () => {
  const { client, store } = shared;
  const tools = toolOf(store);
  const first = await client.responses.create({ model: 'of-chat', input: question, tools });
  assert.equal((first.output[0] as Json).results, null);
  const next = await client.responses.create({
    ...{ model: 'of-messages', input: 'Thank you.', tools, previous_response_id: first.id },
  });
  assert.deepEqual(
    next.output.map(({ type }) => type),
    ['message'],
  );
});

test('filters, a threshold and a forced choice hold', async () => {
  const { client, store } = shared;
  const ask = async (more: Partial<OpenAI.Responses.FileSearchTool>, tool_choice?: Json) => {
    const tools = toolOf(store, more);
    const { output } = await client.responses.create({
      ...{ model: 'of-chat', input: question, tools, include, ...(tool_choice === undefined ? {} : { tool_choice }) },
    });
    return (output[0] as Json).results.map(({ filename }: Json) => filename);
  };
  assert.deepEqual(await ask({ filters: { type: 'eq', key: 'topic', value: 'food' } }), ['cheese.txt']);
  assert.deepEqual(await ask({ ranking_options: { score_threshold: 1 } }), []);
  assert.deepEqual((await ask({}, { type: 'file_search' })).length, 1);
});

test('chat completions run the same tool, whole and streamed, and show its texts among the tools that were executed', async () => {
  const { key, store } = shared;
  for (const stream of [false, true]) {
    const body = { model: 'of-gemini', stream, messages: [{ role: 'user', content: question }], tools: toolOf(store) };
    const answer = await world.post('/v1/chat/completions', key, body);
    assert.equal(answer.status, 200);
    const chunks = stream ? await eventsOf(answer) : [];
    const executed = stream
      ? chunks.flatMap(({ choices }: Json) => choices[0]?.delta.executed_tools ?? [])
      : ((await answer.json()) as Json).choices[0].message.executed_tools;
    assert.deepEqual(
      executed.map(({ type, name, output }: Json) => [type, name, output]),
      [['file_search', 'file_search', `【1†whales.txt】\n${whales}`]],
    );
  }
});

test('generate-content searches stores by their names, whole and streamed, and grounds the answer in their texts', async () => {
  const { key, store } = shared;
  const tools = [{ fileSearch: { fileSearchStoreNames: [`fileSearchStores/${store}`], topK: 1 } }];
  const body = (more: object = {}) => ({
    ...{ contents: [{ role: 'user', parts: [{ text: question }] }], tools },
    ...{ toolConfig: { includeServerSideToolInvocations: true }, ...more },
  });
  const whole = (await (await world.post('/v1beta/models/of-chat:generateContent', key, body())).json()) as Json;
  const [candidate] = whole.candidates;
  const streamed = await world.post('/v1beta/models/of-messages:streamGenerateContent?alt=sse', key, body());
  const events = await eventsOf(streamed);
  const last = events.at(-1).candidates[0];
  const parts = events.flatMap(({ candidates }: Json) => candidates[0].content.parts);
  for (const [grounding, said] of [
    [candidate.groundingMetadata, candidate.content.parts],
    [last.groundingMetadata, parts],
  ]) {
    const [{ retrievedContext: found }] = grounding.groundingChunks;
    assert.deepEqual([found.title, found.text, grounding.groundingChunks.length], ['whales.txt', whales, 1]);
    assert.deepEqual(
      [grounding.webSearchQueries, grounding.groundingSupports[0].groundingChunkIndices],
      [undefined, [0]],
    );
    const { segment } = grounding.groundingSupports[0];
    assert.equal(segment.text, '【1†whales.txt】');
    const { toolCall } = said.find((part: Json) => part.toolCall !== undefined);
    const { toolResponse } = said.find((part: Json) => part.toolResponse !== undefined);
    assert.deepEqual([toolCall.toolType, toolCall.args.queries], ['FILE_SEARCH', ['songs of whales']]);
    assert.match(toolResponse.response.result, /^【1†whales.txt】/);
  }
  const again = [...body().contents, candidate.content, { role: 'user', parts: [{ text: 'Thank you.' }] }];
  const next = await world.post('/v1beta/models/of-responses:generateContent', key, body({ contents: again }));
  assert.equal(next.status, 200, await next.text());
  const refused = await world.post('/v1beta/models/of-chat:generateContent', key, {
    ...body(),
    tools: [{ fileSearch: { ...tools[0]!.fileSearch, metadataFilter: 'topic = sea' } }],
  });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /fileSearch\.metadataFilter/);
});

test('a search is paid as a call of the model of its store, is on the bill of the run, and bounded by its budget', async () => {
  const { client, key, account, store } = await open();
  const before = (await world.charges(account, 2)).length;
  const body = { model: 'of-chat', input: question, tools: toolOf(store) };
  const answer = await world.post('/v1/responses', key, body);
  await answer.text();
  const charges = await world.charges(account, before + 3);
  assert.equal(charges.length, before + 3, 'two turns and one search');
  const { usage } = await client.embeddings.create({ model: 'vectors', input: 'songs of whales' });
  const bill = await fetch(`${world.gateway.origin}/v1/usage/runs/${answer.headers.get('x-request-id')}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { steps } = (await bill.json()) as Json;
  assert.deepEqual(
    steps.map(({ kind }: Json) => kind),
    ['turn', 'turn', 'tool'],
  );
  assert.equal(Number(steps[2].cost), price(usage.prompt_tokens));
  const bounded = await world.post('/v1/responses', key, body, { 'x-gateway-run': 'budget=0.02' });
  const ended = (await bounded.json()) as Json;
  const spent = (await world.charges(account, before + 4)).slice(before + 3).map(({ change }) => Number(change));
  assert.ok(
    -spent.reduce((sum, change) => sum + change, 0) <= 0.02 + price(usage.prompt_tokens),
    JSON.stringify(ended),
  );
});

test('a store of another account is refused by its field, one of a vendor is left to it, and both together are refused', async () => {
  const [own, other] = [shared, await world.account()];
  const others = new OpenAI({ baseURL: `${world.gateway.origin}/v1`, apiKey: other.key });
  const theirs = await others.vectorStores.create({});
  const ask = (ids: string[]) =>
    own.client.responses.create({
      model: 'of-responses',
      input: question,
      tools: toolOf('', { vector_store_ids: ids }),
    });
  await assert.rejects(ask([theirs.id]), { status: 404, param: 'tools[0].vector_store_ids[0]' });
  await assert.rejects(ask([own.store, 'vs_vendor']), { status: 400, param: 'tools[0].vector_store_ids' });
  const relayed = await ask(['vs_vendor']).then(
    ({ output }) => output.some(({ type }) => type === 'file_search_call'),
    (error: { code?: unknown; status?: unknown }) => error.code !== 'vector_store_not_found' && error.status !== 404,
  );
  assert.equal(relayed, true, 'a store of a vendor is never looked for here');
});

test('a search that names no store is refused by its field, whatever vendor makes the model', async () => {
  const { key, account, store } = shared;
  const before = await world.balance(account);
  const messages = [{ role: 'user', content: question }];
  const contents = [{ role: 'user', parts: [{ text: question }] }];
  for (const family of families) {
    const model = `of-${family}`;
    for (const names of [[], undefined, store, [store, 3], ['']]) {
      const tools = [{ type: 'file_search', vector_store_ids: names }];
      const files = { fileSearchStoreNames: names };
      for (const [path, body, field] of [
        ['/v1/responses', { model, input: question, tools }, 'tools[0].vector_store_ids'],
        ['/v1/chat/completions', { model, messages, tools }, 'tools[0].vector_store_ids'],
        [
          `/v1beta/models/${model}:generateContent`,
          { contents, tools: [{ googleMaps: {} }, { fileSearch: files }] },
          'tools[1].fileSearch.fileSearchStoreNames',
        ],
      ] as const) {
        const answer = await world.post(path, key, body);
        const text = await answer.text();
        assert.equal(answer.status, 400, `${path} ${JSON.stringify(names)}: ${text}`);
        assert.ok(text.includes(field), text);
      }
    }
  }
  assert.equal(await world.balance(account), before);
});
