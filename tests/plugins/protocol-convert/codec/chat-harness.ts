/** What the tests of the chat codec share: contexts, decoding of frames into events and replies, encoding back. */

import type { JsonObject } from '../../../../core/json/json.ts';
import type { DecodeContext, EncodeContext, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Citation, OpaqueState, Prompt, TokenLogprob } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../../plugins/common/domain/usage.ts';
import { FrameReader, parseFrame } from '../../../../plugins/common/kit/sse.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import { collected } from '../canonical/collect-events.ts';

/** Opens what `sealed` made. */
export function open(text: string): OpaqueState | undefined {
  const [prefix, maker, ...value] = text.split('.');
  return prefix === 'gw1' ? { maker: maker!, value: Buffer.from(value.join('.'), 'base64url').toString() } : undefined;
}
export function sealed(value: string, maker = 'maker'): string {
  return `gw1.${maker}.${Buffer.from(value).toString('base64url')}`;
}

function decodeContext(): DecodeContext {
  return { dropped: new DroppedParameters(chatCodec.spelling), open };
}
export function decode(body: JsonObject): { prompt: Prompt; dropped: readonly string[] } {
  const context = decodeContext();
  return { prompt: chatCodec.decodeRequest({ model: 'm', ...body }, context), dropped: context.dropped.dropped };
}

export function encodeContext(
  options: Partial<EncodeContext> & { dropFields?: readonly string[]; usageOption?: boolean } = {},
): EncodeContext {
  const { dropFields = [], usageOption = true, ...rest } = options;
  const target = {
    provider: 'p',
    model: 'up-model',
    protocol: 'chat',
    upstream: { dropFields: { chat: dropFields }, streamUsageOption: usageOption },
  } as unknown as Target;
  return {
    target,
    traits: {},
    maker: 'maker',
    dropped: new DroppedParameters(chatCodec.spelling),
    stream: false,
    maxOutputTokens: undefined,
    ...rest,
  };
}
export function encode(prompt: Partial<Prompt>, options: Parameters<typeof encodeContext>[0] = {}) {
  const context = encodeContext(options);
  const whole = { turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Hi' }] }], tools: [], ...prompt } as Prompt;
  const encoded = chatCodec.encodeRequest(whole, context);
  return { ...encoded, body: encoded.body as unknown as UpstreamBody, dropped: context.dropped.dropped };
}

/** What the tests look at in an encoded request. */
interface UpstreamBody extends JsonObject {
  readonly messages: readonly UpstreamMessage[];
  readonly tools?: readonly { readonly function: UpstreamFunction; readonly cache_control?: unknown }[];
}
interface UpstreamFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters: JsonObject;
  readonly strict?: boolean;
}
interface UpstreamMessage extends JsonObject {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: string;
    readonly function: { readonly name: string; readonly arguments: string };
    readonly extra_content?: unknown;
  }[];
}

export function replyContext(request: JsonObject = {}, usage: Usage = {}): ReplyContext {
  return {
    exchangeId: '0198-exchange',
    call: { protocol: 'chat', model: 'asked-model', stream: true } as Call,
    request,
    createdAt: 1_800_000_000,
    now: () => 1_800_000_009,
    seal: (value) => sealed(value),
    usage: () => ({ usage, estimated: false }),
  };
}

/** Parsed `data:` payloads of an SSE body, without `[DONE]`. */
export function payloads(body: Uint8Array): JsonObject[] {
  const found: JsonObject[] = [];
  const take = (raw: Buffer) => {
    const data = parseFrame(raw)?.data;
    if (data !== undefined && data !== '[DONE]') found.push(JSON.parse(data) as JsonObject);
  };
  const reader = new FrameReader(take);
  reader.feed(body);
  const rest = reader.end();
  if (rest !== undefined) take(rest);
  return found;
}

/** A chunk for a client, as far as the tests look at it. */
export interface ClientChunk {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly [ClientChoice, ...ClientChoice[]];
  readonly usage?: ClientUsage | null;
  readonly error?: { readonly message: string };
}
interface ClientUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: JsonObject;
  readonly completion_tokens_details: JsonObject;
}
interface ClientChoice {
  readonly index: number;
  readonly finish_reason: string | null;
  readonly logprobs: unknown;
  readonly delta: {
    readonly role?: string;
    readonly content?: string;
    readonly refusal?: string;
    readonly reasoning_content?: string;
    readonly reasoning_details?: readonly { readonly text: string; readonly signature: string }[];
    readonly tool_calls?: readonly {
      readonly index: number;
      readonly id?: string;
      readonly extra_content?: { readonly google: { readonly thought_signature: string } };
    }[];
    readonly function_call?: unknown;
    readonly annotations?: readonly unknown[];
    readonly images?: readonly unknown[];
    readonly audio?: unknown;
  };
}

/** What a client gets of these events, parsed again. */
export function clientChunks(events: readonly Event[], context = replyContext()): ClientChunk[] {
  return payloads(Buffer.from(encodeStream(events, context))) as unknown as ClientChunk[];
}

/** Any part, as far as the tests look at it. */
export interface LoosePart {
  kind: string;
  id?: string;
  name?: string;
  namespace?: string;
  input?: string;
  text: string;
  custom?: boolean;
  redacted?: boolean;
  citations?: readonly Citation[];
  logprobs?: readonly TokenLogprob[];
  opaqueState?: OpaqueState;
  source?: { readonly mediaType: string; readonly base64: string };
  transcript?: string;
}

/** The events that these chunks amount to, to their end. */
export function streamEvents(chunks: readonly unknown[]): Event[] {
  const sent: Event[] = [];
  const decoder = chatCodec.createDecoder(
    new ReplyEvents((event) => sent.push(event), { names: new Map(), idSeed: 's' }),
  );
  for (const chunk of chunks) decoder.payload(chunk as JsonObject, undefined);
  decoder.end();
  return sent;
}
/** A stream of one choice: its deltas, then a reason. */
export function deltas(list: readonly unknown[], finish: string | null = 'stop'): Event[] {
  const chunk = (delta: unknown, finish_reason: string | null) => ({
    id: 'x',
    choices: [{ index: 0, delta, finish_reason }],
  });
  return streamEvents([...list.map((delta) => chunk(delta, null)), chunk({}, finish)]);
}
export function replyEvents(json: unknown): Event[] {
  const sent: Event[] = [];
  chatCodec.decodeReply(
    json as JsonObject,
    new ReplyEvents((event) => sent.push(event), { names: new Map(), idSeed: 's' }),
  );
  return sent;
}

/** The client's frames for these events. */
export function encodeStream(events: readonly Event[], context: ReplyContext): string {
  const encoder = chatCodec.createEncoder(context);
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}

/** The parts of the only choice. */
export const parts = (events: readonly Event[]) => collected(events).choices[0]!.parts as unknown as LoosePart[];
export const stopOf = (events: readonly Event[]) => collected(events).choices[0]!.stop;
/** A delta of a call. */
export const call = (index: number | undefined, id: string | undefined, name: string | undefined, args?: unknown) => ({
  tool_calls: [{ index, id, function: { name, arguments: args } }],
});
/** Id, name and input of each call. */
export const calls = (events: readonly Event[]) =>
  parts(events)
    .filter(({ kind }) => kind === 'tool-call')
    .map(({ id, name, input }) => [id, name, input]);
