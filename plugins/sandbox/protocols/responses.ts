/** Encodes a script as Responses, whole and as events; compaction and token counts. Pure. Form from recordings. */

import { type Counts, cacheWrites, inputTokens, outputTokens } from '../counts.ts';
import type { Fault } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../json.ts';
import type { Frame, Protocol, Turn } from '../protocol.ts';
import { bearerKey, chatFault, chatHeaders, wireFault } from './chat-faults.ts';
import { compactionItem, type ItemEvent, itemsOf } from './responses-items.ts';
import { decodeResponses } from './responses-request.ts';

export const responses: Protocol = {
  key: (call) => bearerKey(call.headers.authorization),
  decode: decodeResponses,
  whole: wholeResponse,
  stream: streamResponse,
  counted: (tokens) => `${JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }, null, 2)}\n`,
  fault: chatFault,
  streamFault,
  headers: chatHeaders,
  streamType: () => 'text/event-stream; charset=utf-8',
};

function responsesUsage(counts: Counts): object {
  const input = inputTokens(counts);
  const output = outputTokens(counts);
  return {
    input_tokens: input,
    input_tokens_details: { cache_write_tokens: cacheWrites(counts), cached_tokens: counts.cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: counts.reasoning },
    total_tokens: input + output,
  };
}

function usageJson(turn: Turn): string {
  return turn.modelRequest.directives.no_usage ? 'null' : JSON.stringify(responsesUsage(turn.counts));
}

/** The constant members of a response while it runs, as JSON without braces. */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one line for each member with its default, and no line depends on another.
function constantMembers(turn: Turn): string {
  const { body, modelRequest } = turn;
  const reasoning = objectOf(body['reasoning']);
  const constant = {
    background: false,
    frequency_penalty: body['frequency_penalty'] ?? 0,
    instructions: body['instructions'] ?? null,
    max_output_tokens: modelRequest.maxTokens ?? null,
    max_tool_calls: body['max_tool_calls'] ?? null,
    model: modelRequest.model,
    moderation: null,
    parallel_tool_calls: modelRequest.parallel,
    presence_penalty: body['presence_penalty'] ?? 0,
    previous_response_id: body['continued_response_id'] ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    prompt_cache_retention: body['prompt_cache_retention'] ?? '24h',
    reasoning: { context: null, effort: reasoning['effort'] ?? null, summary: reasoning['summary'] ?? null },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: echoedText(objectOf(body['text'])),
    tool_choice: echoedChoice(body['tool_choice']),
    tool_usage: { image_gen: noImageUsage, web_search: { num_requests: 0 } },
    tools: listOf(body['tools']).map(echoedTool),
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    user: body['user'] ?? null,
    metadata: objectOf(body['metadata']),
  };
  return JSON.stringify(constant).slice(1, -1);
}

const noImageUsage = {
  input_tokens: 0,
  input_tokens_details: { image_tokens: 0, text_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { image_tokens: 0, text_tokens: 0 },
  total_tokens: 0,
};

interface State {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  /** JSON of the finished items, with commas between. */
  readonly output: string;
  readonly usage: string;
  readonly error?: string;
}

function responseJson(turn: Turn, constant: string, state: State): string {
  const createdAt = Math.floor(turn.startedAt / 1000);
  const completedAt = state.status === 'completed' ? createdAt : 'null';
  const details = state.status === 'incomplete' ? '{"reason":"max_output_tokens"}' : 'null';
  return `{"id":"resp_${turn.id}","object":"response","created_at":${createdAt},"status":"${state.status}","completed_at":${completedAt},"error":${state.error ?? 'null'},"incomplete_details":${details},"output":[${state.output}],"usage":${state.usage},${constant}}`;
}

function finalState(turn: Turn, output: string): State {
  const status = turn.script.choices[0]!.finish === 'length' ? 'incomplete' : 'completed';
  return { status, output, usage: usageJson(turn) };
}

export function wholeResponse(turn: Turn): string {
  if (turn.call.operation === 'compact') return wholeCompaction(turn);
  const output = itemsOf(turn).map((item) => item.json);
  const json = responseJson(turn, constantMembers(turn), finalState(turn, output.join(',')));
  return `${JSON.stringify(JSON.parse(json), null, 2)}\n`;
}

/** All user messages, then one compaction item: the next request's input. */
function wholeCompaction(turn: Turn): string {
  const input = turn.body['input'];
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input);
  const users = items
    .filter((item) => isObject(item) && item['role'] === 'user')
    .map((item, index) => userMessage(objectOf(item)['content'], `msg_${turn.id}${index}`));
  const compaction: unknown = JSON.parse(compactionItem(turn, turn.script.choices[0]!).json);
  const answer = {
    id: `resp_${turn.id}`,
    object: 'response.compaction',
    created_at: Math.floor(turn.startedAt / 1000),
    output: [...users, compaction],
    usage: responsesUsage(turn.counts),
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function userMessage(content: unknown, id: string): object {
  const parts = typeof content === 'string' ? [{ type: 'input_text', text: content }] : listOf(content);
  return { id, type: 'message', status: 'completed', content: parts, role: 'user' };
}

function eventBytes(number: number, event: ItemEvent): string {
  return `event: ${event.type}\ndata: {"type":"${event.type}",${event.fields},"sequence_number":${number}}\n\n`;
}

function* streamResponse(turn: Turn): Generator<Frame> {
  const constant = constantMembers(turn);
  let number = 0;
  const begun = responseJson(turn, constant, { status: 'in_progress', output: '', usage: 'null' });
  for (const type of ['response.created', 'response.in_progress']) {
    yield { bytes: eventBytes(number++, { type, fields: `"response":${begun}` }) };
  }
  const output: string[] = [];
  for (const [index, item] of itemsOf(turn).entries()) {
    for (const event of item.events(index)) {
      const { text = 0, reasoning = 0 } = event;
      yield { bytes: eventBytes(number++, event), text, reasoning, ...(event.chunk ? { chunk: true } : {}) };
    }
    output.push(item.json);
  }
  const state = finalState(turn, output.join(','));
  const fields = `"response":${responseJson(turn, constant, state)}`;
  yield { bytes: eventBytes(number++, { type: `response.${state.status}`, fields }), ending: true };
}

/** `error`, then `response.failed`, as recorded. */
function streamFault(fault: Fault, turn: Turn, events: number): string {
  const { message, type, param, code: known } = wireFault(fault);
  const code = known ?? (fault.status < 500 ? 'invalid_prompt' : 'server_error');
  const error = JSON.stringify({ type, code, message, param });
  const failed = responseJson(turn, constantMembers(turn), {
    status: 'failed',
    output: '',
    usage: 'null',
    error: JSON.stringify({ code, message }),
  });
  return (
    eventBytes(events, { type: 'error', fields: `"error":${error}` }) +
    eventBytes(events + 1, { type: 'response.failed', fields: `"response":${failed}` })
  );
}

/** A function is strict unless the request says otherwise. */
function echoedTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  if (tool['type'] === 'namespace') return { ...tool, tools: listOf(tool['tools']).map(echoedTool) };
  if (tool['type'] !== 'function') return tool;
  return {
    ...tool,
    description: tool['description'] ?? null,
    parameters: tool['parameters'] ?? null,
    strict: tool['strict'] ?? true,
  };
}

function echoedText(text: JsonObject): object {
  const format = objectOf(text['format']);
  return { format: echoedFormat(format), verbosity: text['verbosity'] ?? 'medium' };
}

function echoedFormat(format: JsonObject): object {
  if (format['type'] === undefined) return { type: 'text' };
  if (format['type'] !== 'json_schema') return format;
  return { ...format, description: format['description'] ?? null, strict: format['strict'] ?? false };
}

function echoedChoice(choice: unknown): unknown {
  if (!isObject(choice)) return choice ?? 'auto';
  return choice['type'] === 'allowed_tools' ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice;
}
