/** A client of chat completions, as the official SDK words requests and reads answers. */
import assert from 'node:assert/strict';
import type {
  Client,
  ClientRequest,
  Meaning,
  PlayCall,
  PlayUsage,
  RequestPart,
  RequestTurn,
  Seen,
  SeenError,
} from '../scenario.ts';
import { dataFrames } from './frames.ts';

const meanings: Readonly<Record<string, readonly Meaning[]>> = {
  stop: ['stop', 'stop-sequence'],
  tool_calls: ['tool-calls'],
  length: ['length'],
  content_filter: ['refusal'],
};

interface ToolCall {
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly extra_content?: unknown;
}
interface Message {
  readonly role?: string;
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  readonly reasoning_details?: readonly unknown[];
  readonly tool_calls?: readonly ToolCall[];
  readonly extra_content?: unknown;
}
interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number; readonly cache_write_tokens?: number };
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number };
}
interface Body {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly message?: Message;
    readonly delta?: Message;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: ChatUsage | null;
  readonly error?: unknown;
}

export const chatClient: Client = {
  protocol: 'chat',
  lacks: new Set(['result-image', 'result-error', 'stop-sequence']),

  word(request, { model, isStream }) {
    const body = {
      model,
      messages: [
        ...(request.system === undefined ? [] : [{ role: 'system', content: request.system }]),
        ...request.turns.flatMap(messagesOf),
      ],
      ...optionsOf(request),
      ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {}),
    };
    return { path: '/v1/chat/completions', headers: {}, body: JSON.stringify(body) };
  },

  readWhole(text) {
    const body = JSON.parse(text) as Body;
    assert.equal(body.object, 'chat.completion');
    assertHead(body);
    const [choice] = body.choices;
    assert.ok(choice?.message, 'a choice with a message');
    assert.equal(choice.message.role, 'assistant');
    assert.notEqual(choice.message.content, undefined, 'content is there, if null');
    const second = body.choices[1]?.message?.content ?? '';
    return { ...seen(choice.message, choice.finish_reason, body.usage ?? undefined), second };
  },

  readStream(text) {
    const frames = dataFrames(text);
    assert.ok(frames.every(({ event }) => event === undefined || event === 'error'));
    const last = frames.at(-1)!;
    const payloads = frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data) as Body);
    const broken = payloads.find((payload) => payload.error);
    const chunks = payloads.filter((payload) => !payload.error);
    const folded = fold(chunks, 0);
    if (broken !== undefined) {
      assert.ok(!folded.finish, 'nothing pretends that the answer is whole');
      return { ...seen(folded.message, null, undefined), error: errorOf(broken) };
    }
    assert.equal(last.data, '[DONE]');
    assert.equal(frames.filter(({ data }) => data === '[DONE]').length, 1);
    const second = fold(chunks, 1).message.content ?? '';
    return { ...seen(folded.message, folded.finish, folded.usage), second };
  },

  readError: (body) => errorOf(JSON.parse(body)),
};

const hints = {
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  frequency_penalty: 0.1,
  presence_penalty: 0.2,
  logit_bias: { 50256: -100 },
  verbosity: 'low',
  safety_identifier: 'user-1',
  metadata: { team: 'blue' },
};

function optionsOf(request: ClientRequest): object {
  return {
    ...(request.maxOutputTokens === undefined ? {} : { max_completion_tokens: request.maxOutputTokens }),
    ...(request.stop === undefined ? {} : { stop: request.stop }),
    ...(request.reasons ? { reasoning_effort: 'high' } : {}),
    ...(request.twice ? { n: 2 } : {}),
    ...(request.hints ? hints : {}),
    ...(request.tools === undefined
      ? {}
      : {
          tools: request.tools.map(({ name, description, schema }) => ({
            type: 'function',
            function: { name, description, parameters: schema },
          })),
        }),
    ...(request.schema === undefined
      ? {}
      : {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'answer', strict: true, schema: request.schema },
          },
        }),
  };
}

function messagesOf(turn: RequestTurn): readonly unknown[] {
  switch (turn.by) {
    case 'user':
      return [{ role: 'user', content: contentOf(turn.parts) }];
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: turn.text ?? null,
          ...(turn.calls === undefined ? {} : { tool_calls: turn.calls.map(toolCallOf) }),
        },
      ];
    case 'echo':
      return turn.native;
    case 'tools': {
      // A tool message holds text alone; clients show images in a message behind the results.
      const results = turn.results.map(({ callId, text }) => ({ role: 'tool', tool_call_id: callId, content: text }));
      const images = turn.results.flatMap(({ image }): RequestPart[] => (image ? [{ kind: 'image', ...image }] : []));
      return images.length === 0 ? results : [...results, { role: 'user', content: images.map(partOf) }];
    }
  }
}

function contentOf(parts: readonly RequestPart[]): unknown {
  const [only] = parts;
  return parts.length === 1 && only?.kind === 'text' ? only.text : parts.map(partOf);
}

function partOf(part: RequestPart): unknown {
  if (part.kind === 'text') return { type: 'text', text: part.text };
  const url = `data:${part.mediaType};base64,${part.base64}`;
  if (part.kind === 'image') return { type: 'image_url', image_url: { url } };
  if (part.kind === 'audio') return { type: 'input_audio', input_audio: { data: part.base64, format: 'wav' } };
  return { type: 'file', file: { filename: part.name, file_data: url } };
}

function toolCallOf({ id, name, input }: PlayCall): unknown {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function assertHead({ id, created, model }: Body): void {
  assert.ok(typeof id === 'string' && id !== '');
  assert.ok(Number.isInteger(created));
  assert.equal(typeof model, 'string');
}

/** Folds the chunks of one choice as the official SDK does, and throws where it would. */
function fold(
  chunks: readonly Body[],
  choice: number,
): { message: Message; finish: string | null; usage: ChatUsage | undefined } {
  const text = { content: '', refusal: '', reasoning: '' };
  const details: unknown[] = [];
  const calls: { id: string; name: string; arguments: string; extra?: unknown }[] = [];
  let finish: string | null = null;
  let extra: unknown;
  let usage: ChatUsage | undefined;
  let isFirst = true;
  for (const chunk of chunks) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    assertHead(chunk);
    assert.equal(chunk.id, chunks[0]!.id);
    usage = chunk.usage ?? usage;
    for (const { index, delta, finish_reason: reason } of chunk.choices) {
      if (index !== choice) continue;
      assert.ok(delta, 'a delta');
      assert.equal(finish, null, 'nothing comes after the finish reason');
      if (isFirst) assert.equal(delta.role, 'assistant');
      isFirst = false;
      text.content += delta.content ?? '';
      text.refusal += delta.refusal ?? '';
      text.reasoning += delta.reasoning_content ?? '';
      details.push(...(delta.reasoning_details ?? []));
      for (const call of delta.tool_calls ?? []) foldCall(calls, call);
      extra = delta.extra_content ?? extra;
      finish = reason ?? finish;
    }
  }
  const message: Message = {
    role: 'assistant',
    content: text.content === '' ? null : text.content,
    refusal: text.refusal === '' ? null : text.refusal,
    ...(text.reasoning === '' ? {} : { reasoning_content: text.reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(extra === undefined ? {} : { extra_content: extra }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, arguments: text, extra }) => ({
            id,
            type: 'function',
            function: { name, arguments: text },
            ...(extra === undefined ? {} : { extra_content: extra }),
          })),
        }),
  };
  return { message, finish, usage };
}

function foldCall(calls: { id: string; name: string; arguments: string; extra?: unknown }[], call: ToolCall): void {
  assert.ok(Number.isInteger(call.index) && call.index! <= calls.length, 'indexes of calls have no gaps');
  let known = calls[call.index!];
  if (known === undefined) {
    assert.ok(call.id && call.type === 'function' && call.function?.name, 'a call begins with id, type and name');
    known = { id: call.id, name: call.function.name, arguments: '' };
    calls.push(known);
  } else {
    assert.ok(call.id === undefined || call.id === known.id, 'a call keeps its id');
    assert.ok(call.function?.name === undefined, 'the name is reported once');
  }
  known.arguments += call.function?.arguments ?? '';
  if (call.extra_content !== undefined) known.extra = call.extra_content;
}

function seen(message: Message, finish: string | null, usage: ChatUsage | undefined): Seen {
  return {
    text: message.content ?? '',
    second: '',
    refusal: message.refusal ?? '',
    reasoning: message.reasoning_content ?? '',
    calls: (message.tool_calls ?? []).map(({ id, function: call }) => ({
      id: id!,
      name: call!.name!,
      input: JSON.parse(call!.arguments!),
    })),
    // A refusal is reported by the message; its finish reason is `stop`.
    meanings: message.refusal && finish === 'stop' ? ['refusal'] : (meanings[finish ?? ''] ?? []),
    sequence: undefined,
    usage: usage && usageOf(usage),
    echo: [message],
    error: undefined,
  };
}

function usageOf(usage: ChatUsage): Partial<PlayUsage> {
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  return {
    input: usage.prompt_tokens,
    cacheRead: usage.prompt_tokens_details?.cached_tokens ?? 0,
    cacheWrite: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
    output: usage.completion_tokens,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}

function errorOf(body: unknown): SeenError {
  const { error } = body as { error: { message: string; type: string; param?: string | null; code?: string | null } };
  assert.equal(typeof error.message, 'string');
  assert.equal(typeof error.type, 'string');
  return { message: error.message, type: error.type, code: error.code ?? undefined, field: error.param ?? undefined };
}
