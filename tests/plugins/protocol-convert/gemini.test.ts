import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { recording } from '../../helpers/recordings.ts';
import { cutAt, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const whole = '/v1beta/models/gem:generateContent';
const stream = '/v1beta/models/gem:streamGenerateContent';

const flat = {
  model: 'gem',
  stream: false,
  contents: [
    { role: 'user', parts: [{ text: 'snake_case stays' }, { inline_data: { mime_type: 'image/png', data: 'AA==' } }] },
    {
      role: 'model',
      parts: [{ function_call: { name: 'find_it', args: { max_results: 1, inner_list: [{ a_b: 1 }] } } }],
    },
    { role: 'user', parts: [{ function_response: { name: 'find_it', response: { some_key: 1 } } }] },
  ],
  system_instruction: { parts: [{ text: 'Be brief.' }] },
  tools: [
    { function_declarations: [{ name: 'find_it', parameters: { type: 'object', properties: { max_results: {} } } }] },
  ],
  tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['find_it'] } },
  candidate_count: 1,
  temperature: 0.5,
  top_p: 0.9,
  top_k: 4,
  max_output_tokens: 50,
  stop_sequences: ['END'],
  safety_settings: [{ category: 'HARM', threshold: 'NONE' }],
  response_modalities: ['TEXT'],
};

const official = {
  contents: [
    { role: 'user', parts: [{ text: 'snake_case stays' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }] },
    {
      role: 'model',
      parts: [{ functionCall: { name: 'find_it', args: { max_results: 1, inner_list: [{ a_b: 1 }] } } }],
    },
    { role: 'user', parts: [{ functionResponse: { name: 'find_it', response: { some_key: 1 } } }] },
  ],
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  tools: [
    { functionDeclarations: [{ name: 'find_it', parameters: { type: 'object', properties: { max_results: {} } } }] },
  ],
  toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['find_it'] } },
  safetySettings: [{ category: 'HARM', threshold: 'NONE' }],
  generationConfig: {
    candidateCount: 1,
    temperature: 0.5,
    topP: 0.9,
    topK: 4,
    maxOutputTokens: 50,
    stopSequences: ['END'],
    responseModalities: ['TEXT'],
  },
};

const answer = {
  candidates: [
    {
      content: {
        parts: [
          { text: 'Hi', thoughtSignature: 'c2ln' },
          { functionCall: { id: 'f1', name: 'find_it', args: { maxResults: 1 } } },
        ],
        role: 'model',
      },
      finishReason: 'STOP',
      safetyRatings: [{ category: 'HARM', probability: 'NEGLIGIBLE' }],
      citationMetadata: {
        citationSources: [{ startIndex: 1, endIndex: 2, uri: 'u', license: 'MIT', publicationDate: {} }],
      },
      tokenCount: 7,
    },
  ],
  usageMetadata: {
    promptTokenCount: 10,
    cachedContentTokenCount: 4,
    candidatesTokenCount: 7,
    toolUsePromptTokenCount: 3,
    totalTokenCount: 20,
  },
  modelVersion: 'gem-001',
  responseId: 'r1',
};

const spec = {
  candidates: [
    {
      index: 0,
      content: {
        parts: [
          { text: 'Hi', thought_signature: 'c2ln' },
          { function_call: { id: 'f1', name: 'find_it', args: { maxResults: 1 } } },
        ],
        role: 'model',
      },
      finish_reason: 'STOP',
      safety_ratings: [{ category: 'HARM', probability: 'NEGLIGIBLE' }],
      token_count: 7,
      citation_metadata: { citation_sources: [{ start: 1, end: 2, uri: 'u', license: 'MIT', publication_date: {} }] },
    },
  ],
  usage_metadata: {
    prompt_token_count: 10,
    cached_content_token_count: 4,
    candidates_token_count: 7,
    tool_use_prompt_token_count: 3,
    total_token_count: 20,
  },
  response_id: 'r1',
  model_version: 'gem-001',
  created: 1_800_000_000,
};

const body = (bytes: unknown) => JSON.parse(Buffer.from(bytes as Uint8Array).toString());
const frames = (payloads: readonly object[]) => payloads.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join('');

test('the specification’s flat request is sent in the official shape, and what users wrote keeps its names', async () => {
  const { sent } = await relay({ path: whole, body: flat }, wholeAnswer(JSON.stringify(answer)));
  assert.deepEqual(body(sent.body), official);
});

test('a snake_case request is answered in the specification’s shape, with the same usage', async () => {
  const relayed = await relay({ path: whole, body: flat }, wholeAnswer(JSON.stringify(answer)));
  assert.deepEqual(body(await readBody(relayed.answer.body)), spec);
  assert.deepEqual(relayed.report!.usage, { cache_read: 4, input: 9, output: 7 });
});

test('an official request is sent and answered byte for byte, but for the gateway’s own members', async () => {
  const recorded = recording('gemini', 'google-gemini-2.5-flash-thinking-220f');
  const request = ' {"contents" : [], "stream":false,"generationConfig":{"topK":1.0} , "model":"gem"}';
  const relayed = await relay({ path: whole, body: request }, wholeAnswer(recorded.response));
  assert.equal(
    Buffer.from(relayed.sent.body as Uint8Array).toString(),
    ' {"contents" : [],"generationConfig":{"topK":1.0}}',
  );
  assert.deepEqual(await readBody(relayed.answer.body), recorded.response);
});

test('a flat request that shows no case is answered officially', async () => {
  const request = { contents: [], stream: false, temperature: 1, generationConfig: { topK: 2 } };
  const relayed = await relay({ path: whole, body: request }, wholeAnswer(JSON.stringify(answer)));
  assert.deepEqual(body(relayed.sent.body), { contents: [], generationConfig: { topK: 2, temperature: 1 } });
  assert.deepEqual(body(await readBody(relayed.answer.body)), answer);
});

test('one snake_case name is enough, wherever a member of the protocol stands; in users’ data it is none', async () => {
  const isSpec = async (request: object) => {
    const relayed = await relay({ path: whole, body: request }, wholeAnswer(JSON.stringify(answer)));
    return 'model_version' in body(await readBody(relayed.answer.body));
  };
  assert.equal(await isSpec({ contents: [], generation_config: { topK: 1 } }), true);
  assert.equal(await isSpec({ contents: [], tools: [{ function_declarations: [] }], systemInstruction: {} }), true);
  assert.equal(await isSpec({ contents: [{ parts: [{ inline_data: { data: '' } }] }] }), true);
  assert.equal(await isSpec({ contents: [{ parts: [{ functionCall: { name: 'f', args: { top_k: 1 } } }] }] }), false);
  assert.equal(
    await isSpec({ contents: [], tools: [{ functionDeclarations: [{ parameters: { inline_data: 1 } }] }] }),
    false,
  );
});

test('a blocked prompt and a candidate without content have what the specification requires', async () => {
  const of = async (upstream: object) =>
    body(await readBody((await relay({ path: whole, body: flat }, wholeAnswer(JSON.stringify(upstream)))).answer.body));
  const blocked = await of({ promptFeedback: { blockReason: 'SAFETY' } });
  assert.deepEqual(blocked, {
    candidates: [],
    prompt_feedback: { block_reason: 'SAFETY' },
    model_version: 'gem',
    created: 1_800_000_000,
  });
  const bare = await of({ candidates: [{ finishReason: 'SAFETY' }], createTime: '2026-01-02T03:04:05.6Z' });
  assert.deepEqual(bare.candidates, [{ index: 0, content: { parts: [], role: 'model' }, finish_reason: 'SAFETY' }]);
  assert.equal(bare.created, Date.parse('2026-01-02T03:04:05Z') / 1000);
});

test('a stream without alt is one JSON object on each line; the upstream is asked for SSE', async () => {
  const payloads = [{ candidates: [{ content: { parts: [{ text: 'line\n one' }] } }] }, answer];
  const relayed = await relay({ path: stream, body: { contents: [] } }, streamAnswer([frames(payloads)]));
  assert.match(relayed.sent.url, /:streamGenerateContent\?alt=sse$/);
  assert.equal(relayed.sent.stream, true);
  assert.equal(relayed.answer.headers['content-type'], 'application/x-ndjson');
  assert.equal(relayed.answer.idleFrame!(), undefined);
  const lines = (await readBody(relayed.answer.body)).toString().split('\n');
  assert.equal(lines.pop(), '');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    payloads,
  );
});

test('a stream asked for in the body streams too, as lines or as SSE, in the request’s case', async () => {
  const lines = await relay({ path: whole, body: { ...flat, stream: true } }, streamAnswer([frames([answer])]));
  assert.match(lines.sent.url, /:streamGenerateContent\?alt=sse$/);
  assert.deepEqual(body(lines.sent.body), official);
  assert.deepEqual(JSON.parse((await readBody(lines.answer.body)).toString()), spec);
  const sse = await relay(
    { path: `${whole}?alt=sse`, body: { ...flat, stream: true } },
    streamAnswer([frames([answer])]),
  );
  assert.equal(sse.answer.headers['content-type'], 'text/event-stream');
  const text = (await readBody(sse.answer.body)).toString();
  assert.deepEqual(JSON.parse(/^data: (.*)\n\n$/.exec(text)![1]!), spec);
});

const array = recording('gemini', 'google-gemini-2.5-flash-tools-thinking-jsonarray-stream-5d3e').response;

test('an upstream that streams an array is read in any chunks, for lines and for SSE', async () => {
  const elements = JSON.parse(array.toString());
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(array.length), { maxLength: 30 }), fc.boolean(), async (offsets, sse) => {
      const path = sse ? `${stream}?alt=sse` : stream;
      const upstream = { ...streamAnswer(cutAt(array, offsets)), headers: { 'content-type': 'application/json' } };
      const relayed = await relay({ path, body: { contents: [] } }, upstream);
      const text = (await readBody(relayed.answer.body)).toString();
      const read = text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line.replace(/^data: /, '')));
      assert.deepEqual(read, elements);
      assert.deepEqual(relayed.report!.usage, { input: 32, output: 12, reasoning: 42 });
      assert.equal(relayed.report!.terminal, true);
    }),
    { numRuns: 60 },
  );
});

test('a stream of lines that breaks ends with an error object on a line', async () => {
  const { answer: relayed, exchange } = await relay(
    { path: stream, body: { contents: [] } },
    streamAnswer([frames([{ candidates: [{ content: { parts: [{ text: 'a' }] } }] }])], new Error('gone')),
  );
  const lines = (await readBody(relayed.body)).toString().trimEnd().split('\n');
  assert.equal(lines.length, 2);
  assert.equal(JSON.parse(lines[1]!).error.code, 500);
  assert.equal(exchange.failure?.kind, 'internal');
});

test('the model of a count is replaced inside its nested request', async () => {
  const request = '{"generateContentRequest":{ "model":"models/gem", "contents":[]}}';
  const { sent, report } = await relay(
    { path: '/v1beta/models/gem:countTokens', body: request, target: { model: 'real' } },
    wholeAnswer('{"totalTokens":4}'),
  );
  assert.match(sent.url, /\/models\/real:countTokens$/);
  assert.equal(Buffer.from(sent.body as Uint8Array).toString(), request.replace('models/gem', 'models/real'));
  assert.deepEqual(report!.usage, {});
});
