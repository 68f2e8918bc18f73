/** Encodes a script as Chat Completions, whole and in chunks. Pure. Form from recordings; source: OpenAI API reference. */

import { type Counts, cacheWrites, inputTokens, outputTokens } from '../counts.ts';
import { objectOf } from '../json.ts';
import type { Frame, Protocol, Turn } from '../protocol.ts';
import type { Choice, Finish, ToolCall } from '../script/script.ts';
import { piecesOf } from '../script/tokens.ts';
import { bearerKey, chatFault, chatHeaders, wireFault } from './chat-faults.ts';
import { decodeChat } from './chat-request.ts';

const fingerprint = 'fp_sandbox';

const finishWords: Record<Finish, string> = {
  stop: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  refusal: 'stop',
};

export const chat: Protocol = {
  key: (call) => bearerKey(call.headers.authorization),
  decode: decodeChat,
  whole: wholeChat,
  stream: streamChat,
  counted: (tokens) => JSON.stringify({ input_tokens: tokens }),
  fault: chatFault,
  streamFault: (fault) => `data: ${JSON.stringify({ error: wireFault(fault) })}\n\n`,
  headers: chatHeaders,
  streamType: () => 'text/event-stream; charset=utf-8',
};

function chatUsage(counts: Counts): object {
  const prompt = inputTokens(counts);
  const completion = outputTokens(counts);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: counts.cacheRead,
      cache_write_tokens: cacheWrites(counts),
      audio_tokens: counts.audio,
      image_tokens: counts.image,
      text_tokens: prompt - counts.audio - counts.image,
    },
    completion_tokens_details: {
      reasoning_tokens: counts.reasoning,
      audio_tokens: 0,
      text_tokens: counts.output,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function wholeChat(turn: Turn): string {
  const { modelRequest, script } = turn;
  const answer = {
    id: `chatcmpl-${turn.id}`,
    object: 'chat.completion',
    created: Math.floor(turn.startedAt / 1000),
    model: modelRequest.model,
    choices: script.choices.map((choice, index) => ({
      index,
      message: messageOf(turn, choice, index),
      logprobs: null,
      finish_reason: finishWords[choice.finish],
    })),
    ...(modelRequest.directives.no_usage ? {} : { usage: chatUsage(turn.counts) }),
    service_tier: 'default',
    system_fingerprint: fingerprint,
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function messageOf(turn: Turn, choice: Choice, index: number): object {
  const refused = choice.finish === 'refusal';
  return {
    role: 'assistant',
    content: refused || choice.calls.length > 0 ? null : choice.text,
    ...(showsThoughts(turn) && choice.reasoning !== '' ? { reasoning_content: choice.reasoning } : {}),
    ...(choice.calls.length === 0
      ? {}
      : { tool_calls: choice.calls.map((call, at) => wireCall(turn, call, index, at)) }),
    refusal: refused ? choice.text : null,
    annotations: [],
  };
}

/** The official protocol hides thoughts; other vendors of this dialect send them as `reasoning_content`. */
function showsThoughts(turn: Turn): boolean {
  return turn.modelRequest.directives.thinking === true;
}

function callId(turn: Turn, choice: number, at: number): string {
  return `call_${turn.id}${choice}${String(at).padStart(2, '0')}`;
}

function wireCall(turn: Turn, call: ToolCall, choice: number, at: number): object {
  const id = callId(turn, choice, at);
  return call.kind === 'custom'
    ? { id, type: 'custom', custom: { name: call.name, input: call.input } }
    : { id, type: 'function', function: { name: call.name, arguments: call.input } };
}

/** One step of a choice: the `delta` as JSON, and what it represents. */
interface Delta {
  readonly json: string;
  readonly text?: number;
  readonly reasoning?: number;
}

function* deltasOf(turn: Turn, choice: Choice, index: number): Generator<Delta> {
  const count = turn.modelRequest.directives.chunks;
  const isShown = showsThoughts(turn);
  const hidden = isShown ? 0 : choice.reasoning.length;
  const content = choice.calls.length > 0 || choice.finish === 'refusal' ? 'null' : '""';
  yield { json: `{"role":"assistant","content":${content},"refusal":null}`, reasoning: hidden };
  if (isShown) {
    for (const piece of piecesOf(choice.reasoning, count)) {
      yield { json: `{"reasoning_content":${JSON.stringify(piece)}}`, reasoning: piece.length };
    }
  }
  const member = choice.finish === 'refusal' ? 'refusal' : 'content';
  for (const piece of piecesOf(choice.text, count)) {
    yield { json: `{"${member}":${JSON.stringify(piece)}}`, text: piece.length };
  }
  for (const [at, call] of choice.calls.entries()) {
    const [type, argument] = call.kind === 'custom' ? ['custom', 'input'] : ['function', 'arguments'];
    const start = `"id":"${callId(turn, index, at)}","type":"${type}","${type}":{"name":${JSON.stringify(call.name)},"${argument}":""}`;
    yield { json: `{"tool_calls":[{"index":${at},${start}}]}`, text: call.name.length };
    for (const piece of piecesOf(call.input, count)) {
      const json = `{"tool_calls":[{"index":${at},"${type}":{"${argument}":${JSON.stringify(piece)}}}]}`;
      yield { json, text: piece.length };
    }
  }
}

const padding = 'sandboxpadding00';

function* streamChat(turn: Turn): Generator<Frame> {
  const options = objectOf(turn.body['stream_options']);
  const withUsage = options['include_usage'] === true && !turn.modelRequest.directives.no_usage;
  const isShown = showsThoughts(turn);
  const padded = options['include_obfuscation'] !== false;
  const head = `data: {"id":"chatcmpl-${turn.id}","object":"chat.completion.chunk","created":${Math.floor(turn.startedAt / 1000)},"model":${JSON.stringify(turn.modelRequest.model)},"service_tier":"default","system_fingerprint":"${fingerprint}","choices":[`;
  const usage = withUsage ? ',"usage":null' : '';
  const close = (json: string) => (padded ? `,"obfuscation":"${padding.slice(json.length % 16)}"}\n\n` : '}\n\n');
  const frame = (index: number, delta: string, finish: string) =>
    `${head}{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${usage}${close(delta)}`;
  for (const { index, delta } of inTurns(turn)) {
    const { json, text = 0, reasoning = 0 } = delta;
    const shown = text > 0 || (reasoning > 0 && isShown);
    yield { bytes: frame(index, json, 'null'), text, reasoning, ...(shown ? { chunk: true } : {}) };
  }
  for (const [index, choice] of turn.script.choices.entries()) {
    yield { bytes: frame(index, '{}', `"${finishWords[choice.finish]}"`), ending: true };
  }
  if (withUsage) {
    yield { bytes: `${head}],"usage":${JSON.stringify(chatUsage(turn.counts))}${close('')}`, ending: true };
  }
  yield { bytes: 'data: [DONE]\n\n', ending: true };
}

/** The choices' deltas, one of each in turn, as vendors interleave them. */
function* inTurns(turn: Turn): Generator<{ index: number; delta: Delta }> {
  let open = turn.script.choices.map((choice, index) => ({ index, deltas: deltasOf(turn, choice, index) }));
  while (open.length > 0) {
    const still: typeof open = [];
    for (const one of open) {
      const next = one.deltas.next();
      if (next.done) continue;
      still.push(one);
      yield { index: one.index, delta: next.value };
    }
    open = still;
  }
}
