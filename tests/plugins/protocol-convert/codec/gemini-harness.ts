/** What the tests of the generate-content codec share: requests and answers decoded and encoded with plain stand-ins. */

import type { JsonObject } from '../../../../core/json/json.ts';
import type { OpenSeal, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Prompt, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import type { Traits } from '../../../../plugins/common/domain/traits.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../../plugins/common/domain/usage.ts';
import { FrameReader } from '../../../../plugins/common/kit/sse.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { payloadOf } from '../../../../plugins/protocol-convert/protocols/gemini/decode/payload.ts';
import { JsonArrayReader } from '../../../../plugins/protocol-convert/protocols/gemini/encode/json-array.ts';

export const maker = 'maker';

/** Seals that can be read by the one that tests them. */
export function seal(value: string): string {
  return `gw1.${Buffer.from(JSON.stringify({ maker, value })).toString('base64url')}`;
}
export const openSeal: OpenSeal = (text) =>
  text.startsWith('gw1.') ? JSON.parse(Buffer.from(text.slice(4), 'base64url').toString('utf8')) : undefined;

export function decode(json: unknown, open: OpenSeal = openSeal): { prompt: Prompt; dropped: readonly string[] } {
  const losses = new DroppedParameters(geminiCodec.spelling);
  const prompt = geminiCodec.decodeRequest(json as JsonObject, { dropped: losses, open });
  return { prompt, dropped: losses.dropped };
}

/** The turns of a request that has these contents. */
export function turnsOf(...contents: unknown[]): readonly Turn[] {
  return decode({ contents }).prompt.turns;
}

export interface EncodeOptions {
  readonly traits?: Traits;
  readonly stream?: boolean;
  readonly dropFields?: readonly string[];
  readonly model?: string;
  readonly maxOutputTokens?: number;
}

/** Parsed JSON that tests look into freely. */
export type Body = ReturnType<typeof JSON.parse>;

export function encode(prompt: Partial<Prompt>, options: EncodeOptions = {}) {
  const losses = new DroppedParameters(geminiCodec.spelling);
  const { traits = {}, stream = false, dropFields = [], model = 'm', maxOutputTokens } = options;
  const upstream = { dropFields: { gemini: dropFields } };
  const target = { protocol: 'gemini', model, upstream, traits } as unknown as Target;
  const whole: Prompt = { turns: [user('hi')], tools: [], ...prompt };
  const encoded = geminiCodec.encodeRequest(whole, { target, traits, maker, dropped: losses, stream, maxOutputTokens });
  return { ...encoded, body: encoded.body as Body, dropped: losses.dropped };
}

export function user(text: string): Turn {
  return { role: 'user', parts: [{ kind: 'text', text }] };
}

/** The events of upstream chunks, and why there is no answer, if so. */
export function eventsOf(chunks: readonly unknown[]): { events: Event[]; failure: string | undefined } {
  const sent: Event[] = [];
  const events = new ReplyEvents((event) => sent.push(event), { names: new Map(), idSeed: 'seed' });
  const decoder = geminiCodec.createDecoder(events);
  for (const chunk of chunks) decoder.payload(chunk as JsonObject, undefined);
  decoder.end();
  return { events: sent, failure: events.failure };
}

/** The chunks of a recorded body: a stream, an array, or one answer. */
export function chunksOf(response: Buffer, isStream: boolean): JsonObject[] {
  if (!isStream) return [JSON.parse(response.toString('utf8'))];
  const chunks: JsonObject[] = [];
  const onFrame = (raw: Buffer) => {
    const json = payloadOf(raw);
    if (json !== undefined) chunks.push(json);
  };
  const isArray = response.toString('utf8').trimStart().startsWith('[');
  const reader = isArray ? new JsonArrayReader(onFrame) : new FrameReader(onFrame);
  reader.feed(response);
  const rest = reader.end();
  if (rest !== undefined) onFrame(rest);
  return chunks;
}

export interface ClientOptions {
  readonly request?: unknown;
  readonly query?: string;
  readonly usage?: Usage;
}

export function replyContext({ request, query = 'alt=sse', usage = {} }: ClientOptions = {}): ReplyContext {
  return {
    exchangeId: 'exchange',
    call: {
      protocol: 'gemini',
      model: 'asked',
      stream: true,
      billable: true,
      inputTokens: 1,
      maxOutputTokens: undefined,
      choices: 1,
    },
    request: (request ?? { contents: [] }) as JsonObject,
    query: new URLSearchParams(query),
    createdAt: 1_700_000_000,
    now: () => 1_700_000_009,
    seal,
    usage: () => ({ usage, estimated: false }),
  };
}

/** The client's stream of these events, as text. */
export function streamOf(events: readonly Event[], options: ClientOptions = {}): string {
  const encoder = geminiCodec.createEncoder(replyContext(options));
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}

export function parsedFrames(stream: string): Body[] {
  return chunksOf(Buffer.from(stream), true) as Body[];
}

export const requestThoughts = { contents: [], generationConfig: { thinkingConfig: { includeThoughts: true } } };

/** One chunk with these parts. */
export function chunk(...parts: unknown[]): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, index: 0 }], responseId: 'r' };
}
export function last(finishReason: string, ...parts: unknown[]): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }] };
}
