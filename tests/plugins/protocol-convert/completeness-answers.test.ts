/** The answer's direction, row by row: what each upstream may say, and what clients of every other protocol read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract/message.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { type Family, families, type Json, type ReadAnswer, read, requestOf, upstreamAnswer } from './answers.ts';
import { open, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

interface Row {
  readonly name: string;
  readonly from: Family;
  readonly answer: Json;
  /** What all clients receive, and what each receives besides or instead; an error where the answer is none. */
  readonly all?: ReadAnswer;
  readonly chat?: ReadAnswer;
  readonly responses?: ReadAnswer;
  readonly messages?: ReadAnswer;
  readonly gemini?: ReadAnswer;
  readonly isError?: true;
}

const usageOf = {
  chat: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  responses: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  messages: { input_tokens: 10, output_tokens: 5 },
  gemini: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
};

const call = { name: 'look', arguments: '{"at":1}' };

type Given = Pick<Row, 'from' | 'answer'>;

function chat(message: Json, finish = 'stop', more: Json = {}, choice: Json = {}): Given {
  const answer = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish, ...choice },
    ],
    usage: usageOf.chat,
    ...more,
  };
  return { from: 'chat', answer };
}
function responses(output: Json[], status = 'completed', reason?: string, more: Json = {}): Given {
  const incomplete_details = reason === undefined ? null : { reason };
  const answer = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status,
    incomplete_details,
    output,
    usage: usageOf.responses,
    ...more,
  };
  return { from: 'responses', answer };
}
function message(content: Json[], id = 'msg_1'): Json {
  return { id, type: 'message', status: 'completed', role: 'assistant', content };
}
function said(text: string, more: Json = {}): Json {
  return { type: 'output_text', text, annotations: [], ...more };
}
function messages(content: Json[], stop_reason = 'end_turn', more: Json = {}): Given {
  const answer = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    stop_reason,
    stop_sequence: null,
    usage: usageOf.messages,
    ...more,
  };
  return { from: 'messages', answer };
}
function gemini(parts: Json[], finishReason = 'STOP', more: Json = {}, usage: Json = usageOf.gemini): Given {
  const answer = {
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason, ...more }],
    usageMetadata: usage,
    responseId: 'r',
  };
  return { from: 'gemini', answer };
}
const text = (words: string) => ({ type: 'text', text: words });

/** One word for each reason, in the order chat, responses, messages, gemini. */
function stops(...[one, two, three, four]: [string, string, string, string]): Pick<Row, Family> {
  return { chat: { stop: one }, responses: { stop: two }, messages: { stop: three }, gemini: { stop: four } };
}
const asStop = stops('stop', 'completed', 'end_turn', 'STOP');
const asCalls = stops('tool_calls', 'completed', 'tool_use', 'STOP');
const asLength = stops('length', 'max_output_tokens', 'max_tokens', 'MAX_TOKENS');
const asRefusal = stops('content_filter', 'content_filter', 'refusal', 'SAFETY');

const called = { all: { calls: [['look', { at: 1 }]] } } as const;
const chatCall = { content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] };
const responsesCall = { id: 'fc_1', type: 'function_call', status: 'completed', call_id: 'call_1', ...call };
const messagesCall = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } };
const geminiCall = { functionCall: { name: 'look', args: { at: 1 } } };

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const shown = { text: `![image](data:image/png;base64,${png})` };

const stopRows: readonly Row[] = [
  { name: 'stop', ...chat({ content: 'a' }), all: { text: 'a' }, ...asStop },
  { name: 'tool_calls', ...chat(chatCall, 'tool_calls'), ...called, ...asCalls },
  { name: 'stop beside calls', ...chat(chatCall, 'stop'), ...called, ...asCalls },
  { name: 'length', ...chat({ content: 'a' }, 'length'), all: { text: 'a' }, ...asLength },
  { name: 'content_filter', ...chat({ content: 'a' }, 'content_filter'), all: { text: 'a' }, ...asRefusal },
  {
    name: 'a stop text that the server names',
    ...chat({ content: 'a' }, 'stop', {}, { stop_reason: 'END' }),
    all: { text: 'a' },
    ...asStop,
    messages: { stop: 'stop_sequence', sequence: 'END' },
  },
  {
    name: 'a refusal in words',
    ...chat({ refusal: 'no' }),
    ...stops('stop', 'completed', 'refusal', 'SAFETY'),
    all: { refusal: 'no' },
    messages: { stop: 'refusal', text: 'no' },
    gemini: { stop: 'SAFETY', text: 'no', refusal: '' },
  },
  { name: 'completed', ...responses([message([said('a')])]), all: { text: 'a' }, ...asStop },
  { name: 'completed with calls', ...responses([responsesCall]), ...called, ...asCalls },
  {
    name: 'incomplete: max_output_tokens',
    ...responses([message([said('a')])], 'incomplete', 'max_output_tokens'),
    all: { text: 'a' },
    ...asLength,
  },
  {
    name: 'incomplete: content_filter',
    ...responses([message([said('a')])], 'incomplete', 'content_filter'),
    all: { text: 'a' },
    ...asRefusal,
  },
  {
    name: 'a refusal part',
    ...responses([message([{ type: 'refusal', refusal: 'no' }])]),
    ...stops('content_filter', 'completed', 'refusal', 'SAFETY'),
    all: { refusal: 'no' },
    messages: { stop: 'refusal', text: 'no' },
    gemini: { stop: 'SAFETY', text: 'no', refusal: '' },
  },
  { name: 'end_turn', ...messages([text('a')]), all: { text: 'a' }, ...asStop },
  {
    name: 'stop_sequence',
    ...messages([text('a')], 'stop_sequence', { stop_sequence: 'END' }),
    all: { text: 'a' },
    ...asStop,
    messages: { stop: 'stop_sequence', sequence: 'END' },
  },
  { name: 'tool_use', ...messages([messagesCall], 'tool_use'), ...called, ...asCalls },
  { name: 'max_tokens', ...messages([text('a')], 'max_tokens'), all: { text: 'a' }, ...asLength },
  {
    name: 'model_context_window_exceeded',
    ...messages([text('a')], 'model_context_window_exceeded'),
    all: { text: 'a' },
    ...asLength,
  },
  { name: 'refusal', ...messages([text('a')], 'refusal'), all: { text: 'a' }, ...asRefusal },
  {
    name: 'a refusal that is explained',
    ...messages([], 'refusal', { stop_details: { type: 'refusal', explanation: 'no' } }),
    ...stops('content_filter', 'completed', 'refusal', 'SAFETY'),
    all: { refusal: 'no' },
    messages: { stop: 'refusal', text: 'no' },
    gemini: { stop: 'SAFETY', text: 'no', refusal: '' },
  },
  {
    name: 'pause_turn',
    ...messages([text('a')], 'pause_turn'),
    all: { text: 'a' },
    ...asStop,
    messages: { stop: 'pause_turn' },
  },
  { name: 'compaction', ...messages([text('a')], 'compaction'), all: { text: 'a' }, ...asStop },
  { name: 'STOP', ...gemini([{ text: 'a' }]), all: { text: 'a' }, ...asStop },
  { name: 'STOP with calls', ...gemini([geminiCall]), ...called, ...asCalls },
  ...['MAX_TOKENS', 'CONTINUATION'].map((reason): Row => {
    return { name: reason, ...gemini([{ text: 'a' }], reason), all: { text: 'a' }, ...asLength };
  }),
  ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'NO_IMAGE', 'IMAGE_SAFETY'].map(
    (reason): Row => ({ name: reason, ...gemini([], reason), ...asRefusal }),
  ),
  {
    name: 'a blocked prompt',
    from: 'gemini',
    answer: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 } },
    ...asRefusal,
  },
  ...[
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'MISSING_THOUGHT_SIGNATURE',
    'MALFORMED_RESPONSE',
    'OTHER',
  ].flatMap((reason): Row[] => [
    { name: `${reason} and nothing said`, ...gemini([], reason), isError: true },
    { name: `${reason} behind text`, ...gemini([{ text: 'a' }], reason), all: { text: 'a' }, ...asStop },
  ]),
];

const usageRows: readonly Row[] = [
  {
    name: 'usage with cache and reasoning',
    ...chat({ content: 'a' }, 'stop', {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 30,
        total_tokens: 130,
        prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
    }),
    ...usages({ input: 50, read: 40, written: 10, reasoning: 20, output: 10 }),
  },
  {
    name: 'usage with cache and reasoning',
    ...responses([message([said('a')])], 'completed', undefined, {
      usage: {
        input_tokens: 100,
        output_tokens: 30,
        total_tokens: 130,
        input_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
        output_tokens_details: { reasoning_tokens: 20 },
      },
    }),
    ...usages({ input: 50, read: 40, written: 10, reasoning: 20, output: 10 }),
  },
  {
    name: 'usage with cache and reasoning',
    ...messages([text('a')], 'end_turn', {
      usage: {
        input_tokens: 50,
        cache_read_input_tokens: 40,
        cache_creation_input_tokens: 10,
        output_tokens: 30,
        output_tokens_details: { thinking_tokens: 20 },
      },
    }),
    ...usages({ input: 50, read: 40, written: 10, reasoning: 20, output: 10 }),
  },
  {
    name: 'usage with cache, thoughts and the prompts of its tools',
    ...gemini(
      [{ text: 'a' }],
      'STOP',
      {},
      {
        promptTokenCount: 80,
        toolUsePromptTokenCount: 20,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 10,
        thoughtsTokenCount: 20,
        totalTokenCount: 130,
      },
    ),
    ...usages({ input: 60, read: 40, written: 0, reasoning: 20, output: 10 }),
  },
];

function usages(of: {
  input: number;
  read: number;
  written: number;
  reasoning: number;
  output: number;
}): Pick<Row, Family> {
  const { input, read: cached, written, reasoning, output } = of;
  const [allInput, allOutput] = [input + cached + written, reasoning + output];
  return {
    chat: {
      usage: {
        prompt_tokens: allInput,
        completion_tokens: allOutput,
        total_tokens: allInput + allOutput,
        prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
        completion_tokens_details: { reasoning_tokens: reasoning },
      },
    },
    responses: {
      usage: {
        input_tokens: allInput,
        output_tokens: allOutput,
        total_tokens: allInput + allOutput,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
        output_tokens_details: { reasoning_tokens: reasoning },
      },
    },
    messages: {
      usage: {
        input_tokens: input,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written,
        output_tokens: allOutput,
        output_tokens_details: { thinking_tokens: reasoning },
      },
    },
    gemini: {
      usage: {
        promptTokenCount: allInput,
        candidatesTokenCount: output,
        thoughtsTokenCount: reasoning,
        cachedContentTokenCount: cached,
        totalTokenCount: allInput + allOutput,
      },
    },
  };
}

/** The same tier in each protocol's word. */
function tiers(standard: string, messagesWord: string): Pick<Row, Family> {
  return {
    chat: { tier: standard },
    responses: { tier: standard },
    messages: { tier: messagesWord },
    gemini: { tier: standard === 'default' ? 'standard' : standard },
  };
}

const cite = { url: 'https://a.example/', title: 'A' };
const logprob = { token: 'ab', logprob: -0.5, bytes: [97, 98] };

const contentRows: readonly Row[] = [
  {
    name: 'service_tier default',
    ...chat({ content: 'a' }, 'stop', { service_tier: 'default' }),
    ...tiers('default', 'standard'),
  },
  {
    name: 'service_tier priority',
    ...chat({ content: 'a' }, 'stop', { service_tier: 'priority' }),
    ...tiers('priority', 'priority'),
  },
  {
    name: 'service_tier default',
    ...responses([message([said('a')])], 'completed', undefined, { service_tier: 'default' }),
    ...tiers('default', 'standard'),
  },
  {
    name: 'service_tier standard',
    ...messages([text('a')], 'end_turn', { usage: { ...usageOf.messages, service_tier: 'standard' } }),
    ...tiers('default', 'standard'),
  },
  {
    name: 'service_tier priority',
    ...messages([text('a')], 'end_turn', { usage: { ...usageOf.messages, service_tier: 'priority' } }),
    ...tiers('priority', 'priority'),
  },
  {
    name: 'serviceTier standard',
    ...gemini([{ text: 'a' }], 'STOP', {}, { ...usageOf.gemini, serviceTier: 'standard' }),
    ...tiers('default', 'standard'),
  },
  { name: 'reasoning_content', ...chat({ content: 'a', reasoning_content: 'r' }), all: { text: 'a', reasoning: 'r' } },
  {
    name: 'a reasoning item',
    ...responses([
      { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'r' }], encrypted_content: 'e' },
      message([said('a')]),
    ]),
    all: { text: 'a', reasoning: 'r' },
  },
  {
    name: 'thinking',
    ...messages([{ type: 'thinking', thinking: 'r', signature: 's' }, text('a')]),
    all: { text: 'a', reasoning: 'r' },
  },
  { name: 'a thought', ...gemini([{ text: 'r', thought: true }, { text: 'a' }]), all: { text: 'a', reasoning: 'r' } },
  { name: 'several text blocks', ...messages([text('a'), text('b')]), all: { text: 'ab' } },
  {
    name: 'several message items',
    ...responses([message([said('a')], 'msg_1'), message([said('b')], 'msg_2')]),
    all: { text: 'ab' },
  },
  {
    name: 'empty arguments',
    ...chat(
      { tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] },
      'tool_calls',
    ),
    all: { calls: [['look', {}]] },
  },
  {
    name: 'calls side by side',
    ...gemini([geminiCall, geminiCall]),
    all: {
      calls: [
        ['look', { at: 1 }],
        ['look', { at: 1 }],
      ],
    },
  },
  ...cited(
    chat({
      content: 'xaby',
      annotations: [{ type: 'url_citation', url_citation: { ...cite, start_index: 1, end_index: 3 } }],
    }),
  ),
  ...cited(
    responses([
      message([said('xaby', { annotations: [{ type: 'url_citation', ...cite, start_index: 1, end_index: 3 }] })]),
    ]),
  ),
  ...cited(
    gemini([{ text: 'xaby' }], 'STOP', {
      groundingMetadata: {
        groundingChunks: [{ web: { uri: cite.url, title: cite.title } }],
        groundingSupports: [{ segment: { startIndex: 1, endIndex: 3, text: 'ab' }, groundingChunkIndices: [0] }],
      },
    }),
  ),
  {
    name: 'a cited web page',
    ...messages([
      {
        ...text('ab'),
        citations: [{ type: 'web_search_result_location', ...cite, cited_text: 'q', encrypted_index: 'e' }],
      },
    ]),
    all: { text: 'ab', cites: [[cite.url, 0, 2]] },
    messages: { cites: [[cite.url, 'q']] },
  },
  {
    name: 'a cited place in a document',
    ...messages([
      {
        ...text('ab'),
        citations: [
          {
            type: 'char_location',
            document_index: 0,
            document_title: 'D',
            start_char_index: 0,
            end_char_index: 1,
            cited_text: 'q',
          },
        ],
      },
    ]),
    all: { text: 'ab' },
    responses: { cites: [['D']] },
    messages: { cites: [['char_location', 'D', 'q']] },
  },
  ...probable(chat({ content: 'ab' }, 'stop', {}, { logprobs: { content: [{ ...logprob, top_logprobs: [] }] } })),
  ...probable(responses([message([said('ab', { logprobs: [{ ...logprob, top_logprobs: [] }] })])])),
  ...probable(
    gemini([{ text: 'ab' }], 'STOP', { logprobsResult: { chosenCandidates: [{ token: 'ab', logProbability: -0.5 }] } }),
  ),
  ...pictured(
    chat({ content: '', images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }] }),
  ),
  ...pictured(
    responses([{ id: 'ig_1', type: 'image_generation_call', status: 'completed', result: png, output_format: 'png' }]),
  ),
  ...pictured(gemini([{ inlineData: { mimeType: 'image/png', data: png } }])),
  {
    name: 'code that the vendor ran',
    ...responses([
      {
        id: 'ci_1',
        type: 'code_interpreter_call',
        status: 'completed',
        code: 'f()',
        outputs: [{ type: 'logs', logs: '1\n' }],
      },
      message([said('a')]),
    ]),
    all: { text: '\n```python\nf()\n```\n\n```\n1\n```\na' },
  },
  {
    name: 'code that the vendor ran',
    ...messages([
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'bash_code_execution', input: { command: 'f' } },
      {
        type: 'bash_code_execution_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: { type: 'bash_code_execution_result', stdout: '1\n', stderr: '' },
      },
      text('a'),
    ]),
    all: { text: '\n```sh\nf\n```\n\n```\n1\n```\na' },
  },
  {
    name: 'code that the vendor ran',
    ...gemini([
      { executableCode: { language: 'PYTHON', code: 'f()' } },
      { codeExecutionResult: { output: '1\n' } },
      { text: 'a' },
    ]),
    all: { text: '\n```python\nf()\n```\n\n```\n1\n```\na' },
  },
];

function cited(given: Given): Row[] {
  const all = { text: 'xaby', cites: [[cite.url, 1, 3]] };
  return [{ name: 'a cited web page', ...given, all, messages: { cites: [[cite.url, '']] } }];
}

function probable(given: Given): Row[] {
  const all = { text: 'ab', logprobs: [['ab', -0.5]] };
  return [{ name: 'probabilities of tokens', ...given, all, messages: { logprobs: [] } }];
}

function pictured(given: Given): Row[] {
  const url = `data:image/png;base64,${png}`;
  return [
    { name: 'an image', ...given, all: { images: [png] }, chat: { images: [url] }, messages: { images: [], ...shown } },
  ];
}

async function readAnswer(row: Row, client: Family, isStream: boolean, upstreamStreams: boolean): Promise<ReadAnswer> {
  const streams = upstreamStreams === isStream ? 'both' : upstreamStreams ? 'only' : 'never';
  const requested = { ...requestOf(client, isStream), target: { protocol: row.from, traits: { streams } as const } };
  const { answer } = await relay(requested, upstreamAnswer(row.from, row.answer, upstreamStreams));
  return read(client, (await readBody(answer.body)).toString(), isStream);
}

/** Everything that is expected stands there; nothing is said of the rest. */
function assertRead(seen: ReadAnswer, expected: ReadAnswer, what: string): void {
  const { usage, ...members } = expected;
  for (const [name, value] of Object.entries(members)) {
    const nothing = value === '' || (Array.isArray(value) && value.length === 0);
    assert.deepEqual(seen[name as keyof ReadAnswer], nothing ? undefined : value, `${what}: ${name}`);
  }
  if (usage !== undefined) assert.partialDeepStrictEqual(seen.usage, usage, what);
}

for (const row of [...stopRows, ...usageRows, ...contentRows]) {
  test(`${row.name} of ${row.from} upstreams reads right for every client`, async () => {
    for (const client of families) {
      for (const [isStream, upstreamStreams] of [
        [false, false],
        [true, true],
        [false, true],
        [true, false],
      ] as const) {
        // One protocol in one form is relayed as it came.
        if (client === row.from && isStream === upstreamStreams) continue;
        const what = `${client}, ${upstreamStreams ? 'streamed' : 'whole'} to ${isStream ? 'streamed' : 'whole'}`;
        if (row.isError === true) {
          const outcome = await readAnswer(row, client, isStream, upstreamStreams).then(
            ({ error }) => error,
            () => 'refused',
          );
          assert.ok(outcome !== undefined, what);
          continue;
        }
        const seen = await readAnswer(row, client, isStream, upstreamStreams);
        assert.equal(seen.error, undefined, what);
        // The sum of what the row says of all and of this client.
        assertRead(seen, { ...row.all, ...row[client] }, what);
      }
    }
  });
}

const overflows: readonly (readonly [Family, Json])[] = [
  [
    'chat',
    {
      error: {
        message: 'This model has a maximum context length of 1000 tokens; you sent 2000.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'responses',
    {
      type: 'error',
      error: {
        message: 'Your input exceeds the context window of this model.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
  ],
  [
    'messages',
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 2000 tokens > 1000 maximum' },
    },
  ],
  [
    'gemini',
    {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'The input token count (2000) exceeds the maximum number of tokens allowed (1000).',
      },
    },
  ],
];

/** The beginning of a stream of each protocol. */
const beginnings: Readonly<Record<Family, string>> = {
  chat: 'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
  responses:
    'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n' +
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}\n\n',
  messages:
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":1}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n\n',
  gemini: 'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n',
};

function assertOverflow(client: Family, error: Json, what: string): void {
  if (client === 'messages') assert.match(error.message, /^prompt is too long/, what);
  else if (client === 'gemini') assert.equal(error.details[0].reason, 'CONTEXT_LENGTH_EXCEEDED', what);
  else assert.equal(error.code, 'context_length_exceeded', what);
}

for (const [from, error] of overflows) {
  test(`a prompt too long for ${from} upstreams is reported in every client's words, before and in a stream`, async () => {
    for (const client of families.filter((one) => one !== from)) {
      const requested = { ...requestOf(client, true), target: { protocol: from } };
      const refused = await errorOf(requested, wholeAnswer(JSON.stringify(error), 400));
      assert.equal(refused.status, 400);
      assertOverflow(client, refused.error, `${client}, before`);
      const name = error.type === undefined ? '' : `event: ${error.type}\n`;
      const frames = [beginnings[from], `${name}data: ${JSON.stringify(error)}\n\n`];
      const { answer } = await relay(requested, streamAnswer(frames));
      const { error: broken } = read(client, (await readBody(answer.body)).toString(), true);
      assertOverflow(client, broken, `${client}, streamed`);
    }
  });
}

async function errorOf(
  requested: Parameters<typeof relay>[0],
  upstream: Answer,
): Promise<{ status: number; error: Json }> {
  const { exchange, endpoint } = open(requested);
  const reason = await relay(requested, upstream).then(
    () => assert.fail('no error came'),
    (error: unknown) => error,
  );
  const { status, body } = endpoint.renderError!(toGatewayError(reason), exchange);
  return { status, error: JSON.parse((await readBody(body)).toString()).error };
}
