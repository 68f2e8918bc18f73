/** What the tests of the chat codec share: contexts, decoding of frames into events and replies, encoding back. */
import { FrameReader, parseFrame } from '../../../../core/sse.ts';
import type { Usage } from '../../../../core/usage.ts';
import type { Call, Target } from '../../../../core/vocabulary.ts';
import type { Citation, Keepsake, Part, Prompt, TokenLogprob } from '../../../../plugins/protocol-convert/canon.ts';
import type { DecodeContext, EncodeContext, ReplyContext } from '../../../../plugins/protocol-convert/codec.ts';
import type { JsonObject } from '../../../../plugins/protocol-convert/json.ts';
import { Losses } from '../../../../plugins/protocol-convert/losses.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import type { Choice, Event, Reply } from '../../../../plugins/protocol-convert/reply.ts';
import { ReplyEvents } from '../../../../plugins/protocol-convert/reply-events.ts';

/** Opens what `sealed` made. */
export function open(text: string): Keepsake | undefined {
  const [prefix, maker, ...value] = text.split('.');
  return prefix === 'gw1' ? { maker: maker!, value: Buffer.from(value.join('.'), 'base64url').toString() } : undefined;
}
export function sealed(value: string, maker = 'maker'): string {
  return `gw1.${maker}.${Buffer.from(value).toString('base64url')}`;
}

export function decodeContext(): DecodeContext {
  return { losses: new Losses(chatCodec.spelling), open };
}
export function decode(body: JsonObject): { prompt: Prompt; dropped: readonly string[] } {
  const context = decodeContext();
  return { prompt: chatCodec.decodeRequest({ model: 'm', ...body }, context), dropped: context.losses.dropped };
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
    losses: new Losses(chatCodec.spelling),
    stream: false,
    maxOutputTokens: undefined,
    ...rest,
  };
}
export function encode(prompt: Partial<Prompt>, options: Parameters<typeof encodeContext>[0] = {}) {
  const context = encodeContext(options);
  const whole = { turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Hi' }] }], tools: [], ...prompt } as Prompt;
  const encoded = chatCodec.encodeRequest(whole, context);
  return { ...encoded, body: encoded.body as Record<string, any>, dropped: context.losses.dropped };
}

export function replyContext(request: JsonObject = {}, usage: Usage = {}): ReplyContext {
  return {
    exchangeId: '0198-exchange',
    call: { protocol: 'chat', model: 'asked-model', stream: true } as Call,
    request,
    createdAt: 1_800_000_000,
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

/** The events that these chunks amount to, to their end. */
export function streamEvents(chunks: readonly unknown[]): Event[] {
  const told: Event[] = [];
  const decoder = chatCodec.createDecoder(new ReplyEvents((event) => told.push(event), { names: new Map(), idSeed: 's' }));
  for (const chunk of chunks) decoder.payload(chunk as JsonObject, undefined);
  decoder.end();
  return told;
}
/** A stream of one choice: its deltas, then a reason. */
export function deltas(list: readonly unknown[], finish: string | null = 'stop'): Event[] {
  const chunk = (delta: unknown, finish_reason: string | null) => ({ id: 'x', choices: [{ index: 0, delta, finish_reason }] });
  return streamEvents([...list.map((delta) => chunk(delta, null)), chunk({}, finish)]);
}
export function replyEvents(json: unknown): Event[] {
  const told: Event[] = [];
  chatCodec.decodeReply(json as JsonObject, new ReplyEvents((event) => told.push(event), { names: new Map(), idSeed: 's' }));
  return told;
}

/** Collects events into a reply, and checks on the way that they obey the rules of `Event`. */
export function collect(events: readonly Event[]): Reply {
  const start = events[0];
  if (start?.type !== 'reply-start') throw new Error('no reply-start');
  const choices: { parts: Part[]; open: Map<number, any>; stop?: Event & { type: 'stop' }; cut: Set<string> }[] = [];
  for (const event of events.slice(1)) {
    if (event.type === 'reply-start') throw new Error('a second reply-start');
    const choice = (choices[event.choice] ??= { parts: [], open: new Map(), cut: new Set() });
    if (choice.stop !== undefined) throw new Error(`${event.type} after stop`);
    take(choice, event);
  }
  return {
    id: start.id,
    createdAt: start.createdAt,
    serviceTier: start.serviceTier,
    choices: choices.map(({ parts, stop, open: left, cut }): Choice => {
      if (stop === undefined || left.size > 0) throw new Error('not ended');
      return { parts, stop: stop.reason, sequence: stop.sequence, cutCalls: cut };
    }),
  };
}

function take(
  choice: { parts: Part[]; open: Map<number, any>; stop?: Event & { type: 'stop' }; cut: Set<string> },
  event: Exclude<Event, { type: 'reply-start' }>,
): void {
  if (event.type === 'stop') {
    choice.stop = event;
    return;
  }
  if (event.type === 'media') return void choice.parts.push(event.media);
  if (event.type === 'search') return void choice.parts.push(event.search);
  if (event.type.endsWith('-start')) {
    const kind = event.type.slice(0, -'-start'.length);
    const part = kind === 'tool' ? { kind: 'tool-call', ...pick(event), input: '' } : { kind, text: '' };
    choice.open.set(event.block, part);
    choice.parts.push(part as Part);
    return;
  }
  const part = choice.open.get(event.block);
  if (part === undefined) throw new Error(`${event.type} outside its block`);
  if (event.type === 'citation') part.citations = [...((part.citations ?? []) as Citation[]), event.citation];
  else if (event.type === 'tool-delta') part.input += event.text;
  else if ('text' in event) {
    part.text += event.text;
    if ('logprobs' in event && event.logprobs) part.logprobs = [...((part.logprobs ?? []) as TokenLogprob[]), ...event.logprobs];
  } else {
    choice.open.delete(event.block);
    if ('keepsake' in event && event.keepsake !== undefined) part.keepsake = { maker: 'maker', value: event.keepsake };
    if ('redacted' in event && event.redacted) part.redacted = true;
    if (event.type === 'tool-end' && event.isCut) choice.cut.add(part.id);
  }
}

function pick(event: any) {
  return { id: event.id, name: event.name, ...(event.custom ? { custom: true } : {}) };
}

/** The client's frames for these events. */
export function encodeStream(events: readonly Event[], context: ReplyContext): string {
  const encoder = chatCodec.createEncoder(context);
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}
