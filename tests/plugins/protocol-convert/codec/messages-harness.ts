/** Runs the messages codec in tests: recorded answers to events, events to frames, frames through the official SDK. */
import Anthropic from '@anthropic-ai/sdk';
import type { Message } from '@anthropic-ai/sdk/resources/messages';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents, type ToolNames } from '../../../../plugins/common/canonical/events.ts';
import type { OpaqueState, Part, Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import type { Choice, Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import type { Traits } from '../../../../plugins/common/domain/traits.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../../plugins/common/domain/usage.ts';
import { FrameReader, parseFrame } from '../../../../plugins/common/kit/sse.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';

export const maker = 'maker-of-the-target';

/** Sealed texts of these tests: readable, and only these can be opened. */
const seal = (value: string) => `gw1.${value}`;
export const open = (text: string): OpaqueState | undefined =>
  text.startsWith('gw1.') ? { maker, value: text.slice(4) } : undefined;

export const plainSeal = (value: string) => value;

/** What of a message must come through the common tongue unchanged. */
export function essence(message: Message) {
  const content = message.content.flatMap((block): unknown[][] => {
    if (block.type === 'text') {
      const pages = (block.citations ?? []).filter((citation) => 'url' in citation);
      return block.text === '' ? [] : [['text', block.text, pages.map(({ url, cited_text: quote }) => [url, quote])]];
    }
    if (block.type === 'thinking') return [['thinking', block.thinking, block.signature]];
    if (block.type === 'tool_use') return [['tool', block.id, block.name, block.input]];
    if (block.type === 'server_tool_use')
      return block.name === 'web_search' ? [['search', block.id, (block.input as JsonObject)['query']]] : [];
    if (block.type === 'web_search_tool_result') {
      const results = Array.isArray(block.content) ? block.content : [];
      return [
        [
          'found',
          block.tool_use_id,
          results.map(({ url, title, encrypted_content }) => [url, title, encrypted_content]),
        ],
      ];
    }
    return [];
  });
  return { content, reason: message.stop_reason, sequence: message.stop_sequence };
}

export function replyContext(options: Partial<Omit<ReplyContext, 'usage'>> & { usage?: Usage } = {}): ReplyContext {
  const { usage = { input: 11, output: 7 }, ...rest } = options;
  return {
    exchangeId: '0198a7',
    call: {
      protocol: 'messages',
      model: 'the-model',
      stream: true,
      billable: true,
      inputTokens: 42,
      maxOutputTokens: 100,
      choices: 1,
    },
    request: {},
    createdAt: 1_800_000_000,
    now: () => 1_800_000_009,
    seal,
    usage: () => ({ usage, estimated: false }),
    ...rest,
  };
}

/** Everything the decoder makes of payloads, ended. */
export function eventsOf(payloads: readonly JsonObject[], names: ToolNames = new Map()): Event[] {
  const events: Event[] = [];
  const decoder = messagesCodec.createDecoder(
    new ReplyEvents((event) => events.push(event), { names, idSeed: 'seed' }),
  );
  for (const payload of payloads) decoder.payload(payload, undefined);
  decoder.end();
  return events;
}

export function eventsOfReply(json: JsonObject): Event[] {
  const events: Event[] = [];
  messagesCodec.decodeReply(json, new ReplyEvents((event) => events.push(event), { names: new Map(), idSeed: 'seed' }));
  return events;
}

export function payloadsOf(stream: Uint8Array): JsonObject[] {
  const payloads: JsonObject[] = [];
  const reader = new FrameReader((raw) => {
    const frame = parseFrame(raw);
    if (frame !== undefined) payloads.push(JSON.parse(frame.data) as JsonObject);
  });
  reader.feed(stream);
  return payloads;
}

export function encoded(events: readonly Event[], context = replyContext()): string {
  const encoder = messagesCodec.createEncoder(context);
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}

/** What the official SDK makes of a stream. It runs without a network. */
export async function throughSdk(frames: string | Uint8Array): Promise<Message> {
  const client = new Anthropic({
    apiKey: 'none',
    baseURL: 'http://127.0.0.1:1',
    maxRetries: 0,
    fetch: async () =>
      new Response(Buffer.from(frames as string), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const stream = client.messages.stream({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] });
  return await stream.finalMessage();
}

/** The answer that events amount to: one choice. */
export function replyOf(events: readonly Event[]): Reply {
  const parts: Part[] = [];
  const cutCalls = new Set<string>();
  let stop: Choice['stop'] = 'stop';
  let sequence: string | undefined;
  const texts = new Map<number, { [key: string]: unknown }>();
  const add = (block: number, part: object) => {
    texts.set(block, part as { [key: string]: unknown });
    parts.push(part as Part);
  };
  const grow = (block: number, member: string, text: string) => {
    const part = texts.get(block)!;
    part[member] = `${part[member] as string}${text}`;
  };
  for (const event of events) {
    if (event.type === 'text-start') add(event.block, { kind: 'text', text: '' });
    else if (event.type === 'refusal-start') add(event.block, { kind: 'refusal', text: '' });
    else if (event.type === 'reasoning-start') add(event.block, { kind: 'reasoning', text: '' });
    else if (event.type === 'tool-start')
      add(event.block, { kind: 'tool-call', id: event.id, name: event.name, input: '', custom: event.custom });
    else if (event.type === 'text-delta' || event.type === 'refusal-delta' || event.type === 'reasoning-delta')
      grow(event.block, 'text', event.text);
    else if (event.type === 'tool-delta') grow(event.block, 'input', event.text);
    else if (event.type === 'citation') {
      const part = texts.get(event.block)!;
      part['citations'] = [...((part['citations'] as unknown[]) ?? []), event.citation];
    } else if (event.type === 'reasoning-end') {
      if (event.opaqueState !== undefined)
        texts.get(event.block)!['opaqueState'] = { maker: '', value: event.opaqueState };
      if (event.redacted) texts.get(event.block)!['redacted'] = true;
    } else if (event.type === 'tool-end') {
      if (event.opaqueState !== undefined)
        texts.get(event.block)!['opaqueState'] = { maker: '', value: event.opaqueState };
      if (event.isCut) cutCalls.add(texts.get(event.block)!['id'] as string);
    } else if (event.type === 'media') parts.push(event.media);
    else if (event.type === 'search') parts.push(event.search);
    else if (event.type === 'stop') {
      stop = event.reason;
      sequence = event.sequence;
    }
  }
  return { id: 'x', createdAt: undefined, serviceTier: undefined, choices: [{ parts, stop, sequence, cutCalls }] };
}

export function decoded(json: JsonObject): { prompt: Prompt; dropped: readonly string[] } {
  const losses = new DroppedParameters(messagesCodec.spelling);
  const prompt = messagesCodec.decodeRequest(json, { dropped: losses, open });
  return { prompt, dropped: losses.dropped };
}

export interface WordOptions {
  readonly traits?: Traits;
  readonly stream?: boolean;
  readonly maxOutputTokens?: number;
  readonly dropFields?: readonly string[];
}

export function word(prompt: Prompt, options: WordOptions = {}): EncodedRequest & { dropped: readonly string[] } {
  const losses = new DroppedParameters(messagesCodec.spelling);
  const context: EncodeContext = {
    target: targetOf(options.dropFields ?? []),
    traits: options.traits ?? {},
    maker,
    dropped: losses,
    stream: options.stream ?? false,
    maxOutputTokens: options.maxOutputTokens,
  };
  const request = messagesCodec.encodeRequest(prompt, context);
  return { ...request, dropped: losses.dropped };
}

function targetOf(dropFields: readonly string[]): Target {
  return {
    provider: 'vendor',
    model: 'upstream-model',
    protocol: 'messages',
    baseUrl: 'http://127.0.0.1:1',
    key: { reveal: () => '' },
    credential: 'vendor#1',
    upstream: {
      auth: undefined,
      headers: {},
      dropFields: { messages: dropFields },
      streamUsageOption: false,
      connectTimeoutMs: 1,
      firstByteTimeoutMs: 1,
      idleTimeoutMs: 1,
    },
    traits: {},
  };
}

/** A prompt of one question, with more. */
export function promptOf(more: Partial<Prompt> = {}): Prompt {
  return { turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Hello' }] }], tools: [], ...more };
}
