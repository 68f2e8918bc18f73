/** A client of the messages protocol, as the official SDK words requests and reads answers. */
import assert from 'node:assert/strict';
import type {
  Client,
  ClientRequest,
  Meaning,
  PlayUsage,
  RequestPart,
  RequestResult,
  RequestTurn,
  Seen,
  SeenError,
} from '../scenario.ts';
import { dataFrames } from './frames.ts';

const meanings: Readonly<Record<string, readonly Meaning[]>> = {
  end_turn: ['stop'],
  stop_sequence: ['stop-sequence'],
  tool_use: ['tool-calls'],
  max_tokens: ['length'],
  refusal: ['refusal'],
};

interface Block {
  type: string;
  text?: string;
  thinking?: string;
  signature?: string;
  data?: string;
  id?: string;
  name?: string;
  input?: unknown;
}
interface MessagesUsage {
  readonly input_tokens?: number | null;
  readonly output_tokens?: number;
  readonly cache_read_input_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
  readonly output_tokens_details?: { readonly thinking_tokens?: number } | null;
}
interface Message {
  readonly id: string;
  readonly type: string;
  readonly role: string;
  readonly model: string;
  content: Block[];
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: MessagesUsage;
}
interface Payload {
  readonly type: string;
  readonly message?: Message;
  readonly index?: number;
  readonly content_block?: Block;
  readonly delta?: Partial<Block> & {
    partial_json?: string;
    stop_reason?: string | null;
    stop_sequence?: string | null;
  };
  readonly usage?: MessagesUsage;
  readonly error?: { readonly type: string; readonly message: string };
}

export const messagesClient: Client = {
  protocol: 'messages',
  lacks: new Set(['audio', 'choices']),

  word(request, { model, isStream }) {
    const body = {
      model,
      max_tokens: request.maxOutputTokens ?? 4096,
      messages: request.turns.map(messageOf),
      ...(request.system === undefined ? {} : { system: request.system }),
      ...optionsOf(request),
      ...(isStream ? { stream: true } : {}),
    };
    const headers = { 'anthropic-version': '2023-06-01', 'x-api-key': 'client-key' };
    return { path: '/v1/messages', headers, body: JSON.stringify(body) };
  },

  readWhole(text) {
    const message = JSON.parse(text) as Message;
    assertHead(message);
    assert.equal(typeof message.stop_reason, 'string');
    return seen(message);
  },

  readStream(text) {
    const folding: Folding = { message: undefined, openBlock: undefined, json: '', isOver: false };
    for (const { event, data } of dataFrames(text)) {
      const payload = JSON.parse(data) as Payload;
      assert.equal(event, payload.type, 'the event is named as its payload');
      assert.ok(!folding.isOver, 'nothing comes after the end');
      if (payload.type === 'error') {
        const soFar = folding.message === undefined ? empty : { ...seen(folding.message), meanings: [] };
        return { ...soFar, error: errorOf(payload) };
      }
      if (payload.type !== 'ping') take(folding, payload);
    }
    assert.ok(folding.isOver && folding.message, 'message_stop came');
    return seen(folding.message);
  },

  readError: (body) => {
    const payload = JSON.parse(body) as Payload;
    assert.equal(payload.type, 'error');
    return errorOf(payload);
  },
};

function optionsOf(request: ClientRequest): object {
  const output = {
    ...(request.reasons ? { effort: 'high' } : {}),
    ...(request.schema === undefined ? {} : { format: { type: 'json_schema', schema: request.schema } }),
  };
  return {
    ...(request.hints ? { temperature: 0.5, top_k: 5, metadata: { user_id: 'user-1' } } : {}),
    ...(request.stop === undefined ? {} : { stop_sequences: request.stop }),
    ...(request.reasons ? { thinking: { type: 'adaptive', display: 'summarized' } } : {}),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
    ...(request.tools === undefined
      ? {}
      : { tools: request.tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })) }),
  };
}

function messageOf(turn: RequestTurn): unknown {
  switch (turn.by) {
    case 'user':
      return { role: 'user', content: turn.parts.map(partOf) };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(turn.text === undefined ? [] : [{ type: 'text', text: turn.text }]),
          ...(turn.calls ?? []).map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
        ],
      };
    case 'echo':
      return { role: 'assistant', content: turn.native };
    case 'tools':
      return { role: 'user', content: turn.results.map(resultOf) };
  }
}

function partOf(part: RequestPart): unknown {
  if (part.kind === 'audio') throw new Error('there is no word for a sound');
  if (part.kind === 'text') return { type: 'text', text: part.text };
  const source = { type: 'base64', media_type: part.mediaType, data: part.base64 };
  return part.kind === 'image' ? { type: 'image', source } : { type: 'document', source, title: part.name };
}

function resultOf({ callId, text, image, isError }: RequestResult): unknown {
  return {
    type: 'tool_result',
    tool_use_id: callId,
    content: [{ type: 'text', text }, ...(image ? [partOf({ kind: 'image', ...image })] : [])],
    ...(isError ? { is_error: true } : {}),
  };
}

function assertHead(message: Message): void {
  assert.equal(message.type, 'message');
  assert.equal(message.role, 'assistant');
  assert.ok(message.id !== '' && typeof message.model === 'string');
  assert.ok(Array.isArray(message.content));
  assert.ok(Number.isInteger(message.usage.input_tokens), 'usage.input_tokens is a number');
  assert.ok(Number.isInteger(message.usage.output_tokens), 'usage.output_tokens is a number');
}

interface Folding {
  message: Message | undefined;
  openBlock: Block | undefined;
  json: string;
  isOver: boolean;
}

/** Blocks come one after the other, numbered without gaps; nothing comes outside of them. */
function take(folding: Folding, payload: Payload): void {
  const { message } = folding;
  if (payload.type === 'message_start') {
    assert.equal(message, undefined, 'one message_start');
    assertHead(payload.message!);
    assert.deepEqual(payload.message!.content, []);
    folding.message = { ...payload.message!, content: [] };
    return;
  }
  assert.ok(message, 'message_start comes first');
  switch (payload.type) {
    case 'content_block_start':
      assert.equal(folding.openBlock, undefined, 'one block at a time');
      assert.equal(payload.index, message.content.length, 'blocks are numbered without gaps');
      folding.openBlock = { ...payload.content_block! };
      folding.json = '';
      message.content.push(folding.openBlock);
      return;
    case 'content_block_delta':
      assert.ok(folding.openBlock && payload.index === message.content.length - 1);
      takeDelta(folding, folding.openBlock, payload.delta!);
      return;
    case 'content_block_stop':
      assert.ok(folding.openBlock && payload.index === message.content.length - 1);
      if (folding.openBlock.type === 'tool_use') folding.openBlock.input = JSON.parse(folding.json || '{}');
      folding.openBlock = undefined;
      return;
    case 'message_delta':
      assert.equal(folding.openBlock, undefined, 'every block has ended');
      assert.equal(message.stop_reason, null, 'one stop reason');
      message.stop_reason = payload.delta!.stop_reason!;
      message.stop_sequence = payload.delta!.stop_sequence ?? null;
      message.usage = merged(message.usage, payload.usage!);
      return;
    default:
      assert.equal(payload.type, 'message_stop');
      assert.equal(typeof message.stop_reason, 'string');
      folding.isOver = true;
  }
}

/** Only counters that are reported replace those of the start, as in the official SDK. */
function merged(before: MessagesUsage, after: MessagesUsage): MessagesUsage {
  const reply = Object.entries(after).filter(([, value]) => value !== null && value !== undefined);
  return { ...before, ...Object.fromEntries(reply) };
}

function takeDelta(folding: Folding, block: Block, delta: NonNullable<Payload['delta']>): void {
  switch (delta.type) {
    case 'text_delta':
      assert.equal(block.type, 'text');
      block.text += delta.text!;
      return;
    case 'thinking_delta':
      assert.equal(block.type, 'thinking');
      block.thinking += delta.thinking!;
      return;
    case 'signature_delta':
      assert.equal(block.type, 'thinking');
      block.signature = delta.signature!;
      return;
    case 'input_json_delta':
      assert.equal(block.type, 'tool_use');
      folding.json += delta.partial_json!;
      return;
    default:
      assert.equal(delta.type, 'citations_delta');
  }
}

const empty: Seen = {
  text: '',
  second: '',
  refusal: '',
  reasoning: '',
  calls: [],
  meanings: [],
  sequence: undefined,
  usage: undefined,
  echo: [],
  error: undefined,
};

function seen(message: Message): Seen {
  const of = (type: string) => message.content.filter((block) => block.type === type);
  const text = of('text').map((block) => block.text!);
  for (const block of of('text')) assert.equal(typeof block.text, 'string');
  return {
    ...empty,
    text: text.join(''),
    reasoning: of('thinking')
      .map((block) => block.thinking!)
      .join(''),
    calls: of('tool_use').map(({ id, name, input }) => ({
      id: id!,
      name: name!,
      input: input as Record<string, unknown>,
    })),
    meanings: meanings[message.stop_reason ?? ''] ?? [],
    sequence: message.stop_sequence ?? undefined,
    usage: usageOf(message.usage),
    echo: message.content,
  };
}

function usageOf(usage: MessagesUsage): Partial<PlayUsage> {
  const cacheRead = usage.cache_read_input_tokens ?? 0;
  const cacheWrite = usage.cache_creation_input_tokens ?? 0;
  return {
    input: usage.input_tokens! + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    output: usage.output_tokens!,
    reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
  };
}

function errorOf({ error }: Payload): SeenError {
  assert.equal(typeof error?.message, 'string');
  const { type, message } = error!;
  // The protocol has no member for the field; it stands in the message.
  const field = /^"?([\w.[\]]+)"?:|The field "([^"]+)"/.exec(message);
  return { message, type, code: undefined, field: field?.[1] ?? field?.[2] };
}
