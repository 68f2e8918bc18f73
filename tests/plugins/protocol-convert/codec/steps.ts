/** Runs one step of a codec's table: JSON in, what the codec makes of it as JSON out. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject, tryParse } from '../../../../core/json/json.ts';
import type { Codec, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { type DeclaredTool, ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { OpaqueState, Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../../plugins/common/domain/usage.ts';

/** What the steps of a row may use, beside the step itself. */
export interface Seals {
  /** Sealed texts that can be opened. */
  readonly opens?: Readonly<Record<string, OpaqueState>>;
  /** Sealed texts by the opaque state in them. */
  readonly seals?: Readonly<Record<string, string>>;
}

/** The members of contexts that a step may set. */
interface Options {
  readonly encode?: { readonly target?: object; readonly ownCallIds?: readonly string[] };
  readonly reply?: {
    readonly usage?: Usage;
    readonly estimated?: true;
    readonly query?: string;
    readonly now?: number;
  };
  readonly events?: { readonly names?: Readonly<Record<string, DeclaredTool>>; readonly idSeed?: string };
}

/** One of `decode`, `prompt`, `counts`, `counted`, `chunks`, `answer`, `stream`, `whole`, `unseal`. */
export interface Step extends Options {
  /** A client's request. */
  readonly decode?: JsonObject;
  /** A prompt for an upstream. */
  readonly prompt?: Prompt;
  /** A prompt of which an upstream counts the tokens, and what such an upstream answers. */
  readonly counts?: Prompt;
  readonly counted?: JsonObject;
  /** The payloads of an upstream's stream; with the name of its event, if it has one. */
  readonly chunks?: readonly (JsonObject | readonly [JsonObject, string])[];
  /** An upstream's whole answer. */
  readonly answer?: JsonObject;
  /** Events for a client that streams; with the failure that ends them. */
  readonly stream?: readonly Event[];
  readonly fails?: readonly [ConstructorParameters<typeof GatewayError>[0], string];
  /** A reply for a client that does not. */
  readonly whole?: Reply;
  /** A client's request that is relayed. */
  readonly unseal?: JsonObject;
  readonly gives: unknown;
}

/** What a codec makes of a step; a refusal by its kind, field, code and words. */
export function run(codec: Codec, step: Omit<Step, 'gives'>, seals: Seals, defaults: Options): unknown {
  const options = { ...step };
  for (const name of ['encode', 'reply', 'events'] as const)
    Object.assign(options, { [name]: { ...defaults[name], ...step[name] } });
  Object.assign(options.encode!, { target: { ...defaults.encode?.target, ...step.encode?.target } });
  try {
    return plain(made(codec, options, seals));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { kind, field, code, message } = error;
    return plain({ refused: { kind, field, code, message } });
  }
}

function made(codec: Codec, step: Omit<Step, 'gives'>, seals: Seals): unknown {
  const open = (text: string) => seals.opens?.[text];
  const dropped = new DroppedParameters(codec.spelling);
  const sent: Event[] = [];
  const { names = {}, idSeed = 'seed', ...rest } = step.events ?? {};
  const events = new ReplyEvents((event) => sent.push(structuredClone(event)), {
    names: new Map(Object.entries(names)),
    idSeed,
    ...rest,
  });
  if (step.decode !== undefined) {
    const prompt = codec.decodeRequest(step.decode, { dropped, open });
    return { prompt, dropped: dropped.dropped };
  }
  const prompt = step.prompt ?? step.counts;
  if (prompt !== undefined) {
    const { target, ownCallIds, ...context } = step.encode ?? {};
    const encoded = codec.encodeRequest(prompt, {
      target: target as Target,
      traits: {},
      maker: 'maker',
      stream: false,
      maxOutputTokens: undefined,
      ...(ownCallIds === undefined ? {} : { ownCallIds: new Set(ownCallIds) }),
      ...context,
      dropped,
    });
    return step.counts === undefined ? { ...encoded, dropped: dropped.dropped } : codec.counting!.request(encoded);
  }
  if (step.counted !== undefined) return codec.counting!.tokens(step.counted);
  if (step.chunks !== undefined) {
    const decoder = codec.createDecoder(events);
    for (const chunk of step.chunks)
      if (Array.isArray(chunk)) decoder.payload(chunk[0], chunk[1]);
      else decoder.payload(chunk as JsonObject, undefined);
    decoder.end();
    return { events: sent, failure: events.failure };
  }
  if (step.answer !== undefined) {
    codec.decodeReply(step.answer, events);
    return { events: sent, failure: events.failure };
  }
  if (step.unseal !== undefined) return codec.withoutSeals(step.unseal, open);
  const context = replyContext(step.reply, seals);
  if (step.whole !== undefined) return codec.encodeReply(asReply(step.whole), context);
  const encoder = codec.createEncoder(context);
  const frames = (step.stream ?? []).map((event) => encoder.event(event)).join('');
  const end = step.fails === undefined ? encoder.finish() : encoder.fail(new GatewayError(...step.fails));
  return framesOf(frames + end);
}

function replyContext(options: NonNullable<Options['reply']> = {}, seals: Seals): ReplyContext {
  const { usage = {}, estimated = false, query, now = 1_800_000_009, ...context } = options;
  return {
    exchangeId: 'exchange',
    call: {} as Call,
    request: {},
    createdAt: 1_800_000_000,
    ...context,
    ...(query === undefined ? {} : { query: new URLSearchParams(query) }),
    now: () => now,
    seal: (state) => seals.seals?.[state] ?? state,
    usage: () => ({ usage, estimated }),
  };
}

function asReply(reply: Reply): Reply {
  return { ...reply, choices: reply.choices.map((choice) => ({ ...choice, cutCalls: new Set(choice.cutCalls) })) };
}

/** The frames of a stream: their data as JSON where that is all they are, else their text. */
function framesOf(text: string): unknown[] {
  return text.split(/(?<=\n\n)/).map((frame) => {
    const [, event, data] = /^(?:event: (.*)\n)?data: (.*)\n\n$/.exec(frame) ?? [];
    const json = data === undefined ? undefined : tryParse(data);
    if (!isObject(json) || JSON.stringify(json) !== data) return frame;
    return event === undefined ? json : [event, json];
  });
}

/** As JSON has it: sets as lists, maps as objects, nothing that is undefined. */
function plain(value: unknown): unknown {
  const json = JSON.stringify(value, (_, one) => {
    if (one instanceof Map) return Object.fromEntries(one);
    return one instanceof Set ? [...one] : one;
  });
  return json === undefined ? null : JSON.parse(json);
}
