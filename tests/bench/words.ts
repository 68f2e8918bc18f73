/** The four protocols as the benchmarks speak them: what a client asks for, and the frames that a vendor streams. */

export const names = ['chat', 'messages', 'responses', 'gemini'] as const;
export type ProtocolName = (typeof names)[number];

export const kinds = ['text', 'reasoning', 'call'] as const;
export type Kind = (typeof kinds)[number];

export interface Words {
  /** The client's request of a stream. The prompt says what the vendor is to do (`upstream.ts`). */
  readonly request: (prompt: string) => { readonly path: string; readonly body: string };
  /** The frames before the deltas of this kind. */
  readonly head: (kind: Kind) => string;
  /** One frame. Where calls come whole, undefined. */
  readonly delta: (kind: Kind, words: string) => string | undefined;
  /** What ends the answer after deltas of text, usage and all. `text`: all of it, which one protocol tells again. */
  readonly tail: (text: string) => string;
}

/** The model of which the gateway's only upstream speaks this protocol. */
export function modelOf(name: ProtocolName): string {
  return `bench-${name}`;
}

const usage = { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 };

function chatFrame(choices: object[], more: object = {}): string {
  const members = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more };
  return `data: ${JSON.stringify(members)}\n\n`;
}

function chatDelta(delta: object, finish: string | null = null): string {
  return chatFrame([{ index: 0, delta, finish_reason: finish }]);
}

const chatDeltas = {
  text: (words: string) => ({ content: words }),
  reasoning: (words: string) => ({ reasoning_content: words }),
  call: (words: string) => ({ tool_calls: [{ index: 0, function: { arguments: words } }] }),
};
const chatCall = { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] };

/** A frame with its name, as the two protocols of named events write them. */
function named(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

const messageBlocks = {
  text: { type: 'text', text: '' },
  reasoning: { type: 'thinking', thinking: '', signature: '' },
  call: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
};
const messageDeltas = {
  text: (words: string) => ({ type: 'text_delta', text: words }),
  reasoning: (words: string) => ({ type: 'thinking_delta', thinking: words }),
  call: (words: string) => ({ type: 'input_json_delta', partial_json: words }),
};
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 100, output_tokens: 1 },
};

const item = { item_id: 'item_0123456789abcdef', output_index: 0 };
const responseItems = {
  text: { type: 'message', id: item.item_id, role: 'assistant', status: 'in_progress', content: [] },
  reasoning: { type: 'reasoning', id: item.item_id, summary: [] },
  call: { type: 'function_call', id: item.item_id, call_id: 'call_1', name: 'f', arguments: '' },
};
const responseDeltas = {
  text: ['response.output_text.delta', { content_index: 0, logprobs: [] }],
  reasoning: ['response.reasoning_summary_text.delta', { summary_index: 0 }],
  call: ['response.function_call_arguments.delta', {}],
} as const;
const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' };

function responseTail(text: string): string {
  const part = { type: 'output_text', annotations: [], logprobs: [], text };
  const done = { ...responseItems.text, status: 'completed', content: [part] };
  const responseUsage = { input_tokens: 100, output_tokens: 200, total_tokens: 300 };
  return (
    named('response.output_text.done', { ...item, content_index: 0, text, logprobs: [], sequence_number: 3 }) +
    named('response.content_part.done', { ...item, content_index: 0, part, sequence_number: 4 }) +
    named('response.output_item.done', { output_index: 0, item: done, sequence_number: 5 }) +
    named('response.completed', {
      response: { ...response, status: 'completed', output: [done], usage: responseUsage },
      sequence_number: 6,
    })
  );
}

function geminiFrame(parts: object[], more: object = {}): string {
  const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 200, totalTokenCount: 300 };
  const candidates = [{ content: { parts, role: 'model' }, index: 0, ...more }];
  return `data: ${JSON.stringify({ candidates, usageMetadata, modelVersion: 'm', responseId: 'r1' })}\n\n`;
}

const bodyOf = (model: string, more: object) => JSON.stringify({ model, stream: true, ...more });
const userMessage = (prompt: string) => [{ role: 'user', content: prompt }];

/** Words by protocol; `ask` names the model of `upstream`. */
export function wordsOf(name: ProtocolName, upstream: ProtocolName = name): Words {
  return all[name](modelOf(upstream));
}

const all: Record<ProtocolName, (model: string) => Words> = {
  chat: (model) => ({
    request: (prompt) => ({
      path: '/v1/chat/completions',
      body: bodyOf(model, { stream_options: { include_usage: true }, messages: userMessage(prompt) }),
    }),
    head: (kind) => (kind === 'call' ? chatDelta(chatCall) : chatDelta({ role: 'assistant', content: '' })),
    delta: (kind, words) => chatDelta(chatDeltas[kind](words)),
    tail: () => `${chatDelta({}, 'stop')}${chatFrame([], { usage })}data: [DONE]\n\n`,
  }),
  messages: (model) => ({
    request: (prompt) => ({
      path: '/v1/messages',
      body: bodyOf(model, { max_tokens: 1000, messages: userMessage(prompt) }),
    }),
    head: (kind) =>
      named('message_start', { message }) +
      named('content_block_start', { index: 0, content_block: messageBlocks[kind] }),
    delta: (kind, words) => named('content_block_delta', { index: 0, delta: messageDeltas[kind](words) }),
    tail: () =>
      named('content_block_stop', { index: 0 }) +
      named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 200 } }) +
      named('message_stop', {}),
  }),
  responses: (model) => ({
    request: (prompt) => ({ path: '/v1/responses', body: bodyOf(model, { store: false, input: userMessage(prompt) }) }),
    head: (kind) =>
      named('response.created', { response: { ...response, status: 'in_progress', output: [] }, sequence_number: 0 }) +
      named('response.output_item.added', { output_index: 0, item: responseItems[kind], sequence_number: 1 }),
    delta: (kind, words) => {
      const [type, more] = responseDeltas[kind];
      return named(type, { ...item, ...more, delta: words, sequence_number: 2 });
    },
    tail: responseTail,
  }),
  gemini: (model) => ({
    request: (prompt) => ({
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt }] }] }),
    }),
    head: () => '',
    delta: (kind, words) => {
      if (kind === 'call') return undefined;
      return geminiFrame([kind === 'text' ? { text: words } : { text: words, thought: true }]);
    },
    tail: () => geminiFrame([{ text: '.' }], { finishReason: 'STOP' }),
  }),
};
