/** Encodes a script as Messages, whole and as events. Pure. Form from recordings; source: Anthropic API reference. */

import { type Counts, outputTokens } from '../counts.ts';
import type { Fault } from '../fault.ts';
import type { Frame, Protocol, Refusal, Turn } from '../protocol.ts';
import type { Choice, Finish, ToolCall } from '../script/script.ts';
import { piecesOf } from '../script/tokens.ts';
import { seal } from '../seal.ts';
import { bearerKey } from './chat-faults.ts';
import { decodeMessages } from './messages-request.ts';

const stopReasons: Record<Finish, string> = {
  stop: 'end_turn',
  stop_sequence: 'stop_sequence',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  refusal: 'refusal',
};

const errorTypes: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

export const messages: Protocol = {
  key: ({ headers }) =>
    typeof headers['x-api-key'] === 'string' ? headers['x-api-key'] : bearerKey(headers.authorization),
  decode: decodeMessages,
  whole: wholeMessage,
  stream: streamMessage,
  counted: (tokens) => JSON.stringify({ input_tokens: tokens }),
  fault: messagesFault,
  streamFault: (fault) => event('error', `"error":${JSON.stringify({ details: null, ...wireFault(fault) })}`),
  headers: (id) => ({ 'request-id': `req_${id}` }),
  streamType: () => 'text/event-stream; charset=utf-8',
};

function wireFault(fault: Fault): { type: string; message: string } {
  const type = errorTypes[fault.status] ?? (fault.status >= 500 ? 'api_error' : 'invalid_request_error');
  return { type, message: fault.message };
}

function messagesFault({ fault, id, now }: Refusal): { body: string; headers: Record<string, string> } {
  const headers: Record<string, string> = {};
  headers['x-should-retry'] = String(fault.status === 429 || fault.status >= 500);
  if (fault.retryAfter !== undefined) headers['retry-after'] = String(fault.retryAfter);
  if (fault.status === 429) {
    headers['anthropic-ratelimit-requests-limit'] = '60';
    headers['anthropic-ratelimit-requests-remaining'] = '0';
    headers['anthropic-ratelimit-requests-reset'] = new Date(now + (fault.retryAfter ?? 1) * 1000).toISOString();
  }
  return { body: JSON.stringify({ type: 'error', error: wireFault(fault), request_id: `req_${id}` }), headers };
}

/** The prompt's counts in a usage object, at the start and again at the end. */
function inputUsage(counts: Counts): object {
  return {
    input_tokens: counts.input,
    cache_creation_input_tokens: counts.cacheWrite5m + counts.cacheWrite1h,
    cache_read_input_tokens: counts.cacheRead,
  };
}

function cacheCreation(counts: Counts): object {
  return { ephemeral_5m_input_tokens: counts.cacheWrite5m, ephemeral_1h_input_tokens: counts.cacheWrite1h };
}

/** The usage at a stream's end: cumulative, with the prompt's counts again. */
function endUsage(counts: Counts): object {
  return {
    ...inputUsage(counts),
    output_tokens: outputTokens(counts),
    output_tokens_details: { thinking_tokens: counts.reasoning },
  };
}

function wholeUsage(counts: Counts): object {
  return {
    ...endUsage(counts),
    cache_creation: cacheCreation(counts),
    server_tool_use: null,
    service_tier: 'standard',
    speed: 'standard',
    inference_geo: 'global',
  };
}

function startUsage(turn: Turn): object | undefined {
  if (turn.modelRequest.directives.no_usage) return undefined;
  return {
    ...inputUsage(turn.counts),
    cache_creation: cacheCreation(turn.counts),
    output_tokens: Math.min(1, outputTokens(turn.counts)),
    service_tier: 'standard',
    inference_geo: 'global',
  };
}

function stopMembers(choice: Choice): object {
  const details = choice.finish === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null;
  return { stop_reason: stopReasons[choice.finish], stop_sequence: choice.stop ?? null, stop_details: details };
}

/** A content block: whole, at its start, and its deltas with the characters that they represent. */
interface Block {
  readonly whole: object;
  readonly start: object;
  deltas(): Iterable<{ json: string; text?: number; reasoning?: number; chunk?: true }>;
}

function blocksOf(turn: Turn): Block[] {
  const choice = turn.script.choices[0]!;
  const blocks: Block[] = [];
  if (choice.reasoning !== '') blocks.push(thinkingBlock(turn, choice.reasoning));
  if (choice.calls.length === 0 && choice.text !== '') blocks.push(textBlock(turn, choice.text));
  for (const [at, call] of choice.calls.entries()) blocks.push(toolBlock(turn, call, at));
  return blocks;
}

function thinkingBlock(turn: Turn, thought: string): Block {
  const shown = turn.modelRequest.thoughtsShown || turn.modelRequest.directives.thinking === true;
  const signature = seal(thought);
  return {
    whole: { type: 'thinking', thinking: shown ? thought : '', signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    *deltas() {
      for (const piece of shown ? piecesOf(thought, turn.modelRequest.directives.chunks) : []) {
        const json = `{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}`;
        yield { json, reasoning: piece.length, chunk: true };
      }
      yield { json: `{"type":"signature_delta","signature":"${signature}"}`, reasoning: shown ? 0 : thought.length };
    },
  };
}

function textBlock(turn: Turn, text: string): Block {
  return {
    whole: { type: 'text', text },
    start: { type: 'text', text: '' },
    *deltas() {
      for (const piece of piecesOf(text, turn.modelRequest.directives.chunks)) {
        yield { json: `{"type":"text_delta","text":${JSON.stringify(piece)}}`, text: piece.length, chunk: true };
      }
    },
  };
}

function toolBlock(turn: Turn, call: ToolCall, at: number): Block {
  const id = `toolu_${turn.id}${String(at).padStart(2, '0')}`;
  const named = { type: 'tool_use', id, name: call.name };
  const caller = { type: 'direct' };
  return {
    whole: { ...named, input: JSON.parse(call.input) as unknown, caller },
    start: { ...named, input: {}, caller },
    *deltas() {
      yield { json: '{"type":"input_json_delta","partial_json":""}', text: call.name.length };
      for (const piece of piecesOf(call.input, turn.modelRequest.directives.chunks)) {
        const json = `{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}`;
        yield { json, text: piece.length, chunk: true };
      }
    },
  };
}

function wholeMessage(turn: Turn): string {
  const { modelRequest, script, counts } = turn;
  return JSON.stringify({
    model: modelRequest.model,
    id: `msg_${turn.id}`,
    type: 'message',
    role: 'assistant',
    content: blocksOf(turn).map((block) => block.whole),
    ...stopMembers(script.choices[0]!),
    container: null,
    diagnostics: null,
    usage: modelRequest.directives.no_usage ? undefined : wholeUsage(counts),
  });
}

const spaces = ' '.repeat(16);

/** The vendor pads nearly every line with spaces before its last brace; here by a rule, from 0 to 15. */
function event(type: string, members: string): string {
  const separator = members === '' ? '' : ',';
  const padding = spaces.slice(0, (members.length * 7) % 16);
  return `event: ${type}\ndata: {"type":"${type}"${separator}${members}${padding}}\n\n`;
}

function* streamMessage(turn: Turn): Generator<Frame> {
  const { modelRequest, counts } = turn;
  const message = {
    model: modelRequest.model,
    id: `msg_${turn.id}`,
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: startUsage(turn),
  };
  yield { bytes: event('message_start', `"message":${JSON.stringify(message)}`) };
  for (const [index, block] of blocksOf(turn).entries()) {
    const start = `"index":${index},"content_block":${JSON.stringify(block.start)}`;
    yield { bytes: event('content_block_start', start) };
    if (index === 0) yield { bytes: 'event: ping\ndata: {"type": "ping"}\n\n' };
    for (const { json, ...rest } of block.deltas()) {
      yield { bytes: event('content_block_delta', `"index":${index},"delta":${json}`), ...rest };
    }
    yield { bytes: event('content_block_stop', `"index":${index}`) };
  }
  const delta = JSON.stringify({ ...stopMembers(turn.script.choices[0]!), container: null });
  const reported = modelRequest.directives.no_usage ? '' : `,"usage":${JSON.stringify(endUsage(counts))}`;
  yield { bytes: event('message_delta', `"delta":${delta}${reported}`), ending: true };
  yield { bytes: event('message_stop', ''), ending: true };
}
