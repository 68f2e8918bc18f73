import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../helpers/properties.ts';
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

test('the specification’s request is answered in its shape, with the same usage', async () => {
  const relayed = await relay({ path: whole, body: flat }, wholeAnswer(JSON.stringify(answer)));
  assert.deepEqual(body(await readBody(relayed.answer.body)), spec);
  assert.deepEqual(relayed.report!.usage, { cache_read: 4, input: 9, output: 7 });
});

test('an official request is sent and answered byte for byte, but for the model that it may name', async () => {
  const recorded = recording('gemini', 'google-gemini-2.5-flash-thinking-220f');
  const request = ' {"contents" : [], "generationConfig":{"topK":1.0} , "model":"gem"}';
  const relayed = await relay({ path: whole, body: request }, wholeAnswer(recorded.response));
  assert.equal(
    Buffer.from(relayed.sent.body as Uint8Array).toString(),
    ' {"contents" : [], "generationConfig":{"topK":1.0}}',
  );
  assert.deepEqual(await readBody(relayed.answer.body), recorded.response);
});

/** Official requests in which single members are in snake_case, as the vendor's own examples and LiteLLM write them. */
const mixed: readonly object[] = [
  { contents: [], generation_config: { topK: 1, max_output_tokens: 5 } },
  { contents: [], generationConfig: { topK: 1 }, tools: [{ function_declarations: [{ name: 'f' }] }] },
  { contents: [], system_instruction: { parts: [{ text: 's' }] }, tool_config: { function_calling_config: {} } },
  { contents: [{ parts: [{ inline_data: { mime_type: 'image/png', data: '' } }] }] },
  { contents: [{ parts: [{ function_call: { name: 'f', args: { top_k: 1 } }, thought_signature: 'c2ln' }] }] },
  { contents: [], cached_content: 'c', safety_settings: [], service_tier: 'flex', labels: { a_b: 'c' } },
  { contents: [], generationConfig: { temperature: 1 }, temperature: 1, top_p: 0.5 },
  { contents: [], generation_config: {}, temperature: 1 },
  { contents: [], stream: null, temperature: null },
  { contents: [] },
];

test('the case of members says nothing: an official request is relayed and answered byte for byte', async () => {
  for (const request of mixed) {
    const text = JSON.stringify(request, undefined, 1).replace(/\s*"stream": null,/, '');
    const relayed = await relay({ path: whole, body: text }, wholeAnswer(JSON.stringify(answer)));
    assert.equal(Buffer.from(relayed.sent.body as Uint8Array).toString(), text);
    assert.equal((await readBody(relayed.answer.body)).toString(), JSON.stringify(answer), text);
    const upstream = frames([answer]);
    const streamed = await relay({ path: `${stream}?alt=sse`, body: text }, streamAnswer([upstream]));
    assert.equal(Buffer.from(streamed.sent.body as Uint8Array).toString(), text);
    assert.equal((await readBody(streamed.answer.body)).toString(), upstream, text);
  }
});

test('a top-level stream, or settings outside of generationConfig, are the specification’s, in any case', async () => {
  const isSpec = async (request: object) => {
    const relayed = await relay({ path: whole, body: request }, wholeAnswer(JSON.stringify(answer)));
    const read = body(await readBody(relayed.answer.body));
    assert.deepEqual(body(relayed.sent.body), { contents: [], ...expected(request) });
    return read.model_version === 'gem-001' && read.created === 1_800_000_000 && !('modelVersion' in read);
  };
  const settings = { topP: 1, topK: 2, candidateCount: 1, maxOutputTokens: 3, stopSequences: [], temperature: 0 };
  const expected = (request: object) => {
    const {
      stream: _stream,
      contents: _contents,
      generationConfig,
      ...flatSettings
    } = request as Record<string, object>;
    const inner = Object.fromEntries(
      Object.entries(flatSettings).map(([name, value]) => [name.replace(/_(.)/g, (_, c) => c.toUpperCase()), value]),
    );
    const config = { ...generationConfig, ...inner };
    return Object.keys(config).length === 0 ? {} : { generationConfig: config };
  };
  assert.equal(await isSpec({ contents: [], stream: false }), true);
  assert.equal(await isSpec({ contents: [], stream: false, generationConfig: { topK: 1 } }), true);
  for (const [name, value] of Object.entries(settings)) {
    assert.equal(await isSpec({ contents: [], [name]: value }), true, name);
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    assert.equal(await isSpec({ contents: [], [snake]: value }), true, snake);
  }
  assert.equal(await isSpec({ contents: [], response_modalities: ['TEXT'] }), true);
});

/** What LiteLLM sends for a `gemini/…` model with tools. */
const liteLlm = {
  contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }],
  system_instruction: { parts: [{ text: 'Use tools.' }] },
  tools: [{ function_declarations: [{ name: 'look', parameters: { type: 'object', properties: {} } }] }],
  toolConfig: { functionCallingConfig: { mode: 'ANY' } },
  generationConfig: { temperature: 0, max_output_tokens: 9 },
};

const lookCalls: Readonly<Record<string, object>> = {
  gemini: {
    candidates: [{ content: { parts: [{ functionCall: { name: 'look', args: {} } }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  },
  chat: {
    choices: [
      {
        message: { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'look', arguments: '{}' } }] },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  },
  messages: {
    content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 3, output_tokens: 2 },
  },
  responses: {
    status: 'completed',
    output: [{ type: 'function_call', call_id: 'c', name: 'look', arguments: '{}', status: 'completed' }],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  },
};

test('a client that mixes cases reads its call and its usage from every family', async () => {
  for (const [protocol, upstream] of Object.entries(lookCalls)) {
    const request = { path: whole, body: liteLlm, target: { protocol } };
    const reported = body(await readBody((await relay(request, wholeAnswer(JSON.stringify(upstream)))).answer.body));
    assert.equal(reported.candidates[0].content.parts[0].functionCall.name, 'look', protocol);
    const { promptTokenCount, candidatesTokenCount } = reported.usageMetadata;
    assert.deepEqual([promptTokenCount, candidatesTokenCount], [3, 2], protocol);
  }
});

test('members that the provider does not take are taken out of an official request in either case', async () => {
  const target = { upstream: { dropFields: { gemini: ['serviceTier', 'labels'] } } };
  for (const name of ['serviceTier', 'service_tier']) {
    const request = { path: whole, body: { contents: [], [name]: 'flex', labels: {} }, target };
    const { sent, answer: reported } = await relay(request, wholeAnswer(JSON.stringify(answer)));
    assert.deepEqual(body(sent.body), { contents: [] });
    assert.deepEqual(new Set(reported.headers['x-gateway-dropped']?.split(', ')), new Set([name, 'labels']));
  }
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
  for (const name of ['generateContentRequest', 'generate_content_request']) {
    const request = `{"${name}":{ "model":"models/gem", "contents":[]}}`;
    const { sent, report } = await relay(
      { path: '/v1beta/models/gem:countTokens', body: request, target: { model: 'real' } },
      wholeAnswer('{"totalTokens":4}'),
    );
    assert.match(sent.url, /\/models\/real:countTokens$/);
    assert.equal(Buffer.from(sent.body as Uint8Array).toString(), request.replace('models/gem', 'models/real'));
    assert.deepEqual(report!.usage, {});
  }
});

/** The second turn of LiteLLM 1.106: it marks a call without a signature by a value in base64. */
const signed = (thoughtSignature: string) => ({
  ...liteLlm,
  contents: [
    ...liteLlm.contents,
    {
      role: 'model',
      parts: [{ function_call: { name: 'look', args: { at: 'sky' }, id: 'call_1' }, thoughtSignature }],
    },
    { role: 'user', parts: [{ function_response: { name: 'look', response: { content: 'sunny' }, id: 'call_1' } }] },
  ],
  toolConfig: undefined,
});

test('a call that is marked as unsigned loses nothing, in either coding; one that another maker signed is named', async () => {
  const values = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'];
  for (const [protocol, upstream] of Object.entries(lookCalls).filter(([name]) => name !== 'gemini'))
    for (const value of [...values, ...values.map((text) => Buffer.from(text).toString('base64')), 'b3RoZXI=']) {
      const request = { path: whole, body: signed(value), target: { protocol } };
      const { answer: given, sent } = await relay(request, wholeAnswer(JSON.stringify(upstream)));
      const text = Buffer.from(sent.body as Uint8Array).toString();
      assert.ok(text.includes('sky') && text.includes('sunny') && !text.includes(value), text);
      const named = value === 'b3RoZXI=' ? 'contents[].parts[].thought' : undefined;
      assert.equal(given.headers['x-gateway-dropped'], named, `${protocol} ${value}`);
    }
});
