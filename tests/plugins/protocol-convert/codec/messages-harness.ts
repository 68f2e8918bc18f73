/** Runs the messages codec in tests: recorded answers to events, events to frames, frames through the official SDK. */
import Anthropic from '@anthropic-ai/sdk';
import type { Message } from '@anthropic-ai/sdk/resources/messages';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents, type ToolNames } from '../../../../plugins/common/canonical/events.ts';
import type { OpaqueState, Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
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
