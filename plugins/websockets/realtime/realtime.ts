/** The realtime protocol: events as JSON in both directions, a response from `response.created` to `response.done`. */
import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParseBytes } from '../../../core/json/json.ts';
import { applyEdits, editsFor, findMember, scanObject } from '../../../core/json/splice.ts';
import type { ShapeMembers } from '../../common/domain/error-shape.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { envelope } from '../../common/kit/error-envelope.ts';
import { type IsPriced, notFound, unpricedTool } from '../../common/wire/named.ts';
import type { ClientReading, Dialect, RelayProtocol, UpstreamReading } from '../relay/dialect.ts';
import type { Message } from '../relay/upstream.ts';
import { realtimeAnswers } from './answer-reader.ts';
import { responseUsage, transcriptionUsage } from './usage.ts';

export const realtimeProtocol: RelayProtocol = {
  name: 'openai-realtime',
  base: '/realtime',
  endpoint: '/v1/realtime',
  wire: {
    auth: { header: 'authorization', value: 'Bearer {key}' },
    passedHeaders: ['openai-beta', 'openai-safety-identifier'],
    defaultHeaders: {},
  },
  path: (model) => `/realtime?model=${encodeURIComponent(model)}`,
};

/** Client events that make the model do nothing. */
const freeEvents = new Set([
  ...['session.update', 'transcription_session.update', 'response.cancel', 'conversation.item.create'],
  ...['conversation.item.retrieve', 'conversation.item.delete', 'conversation.item.truncate'],
  ...['input_audio_buffer.clear', 'output_audio_buffer.clear'],
]);
/** The client event that starts a response. */
const asking = 'response.create';
/** Larger events are treated as charged without parsing. */
const parsedBytes = 64 * 1024;
/** Base64 bytes of 24 kHz audio for one token of the answer: an audio token is 100 ms of input and costs half as much. */
const bytesPerAudioToken = 12_800;
const bytesPerTextToken = 3;
const imageTokens = 1_500;
/** Ids of one session that are remembered. */
const mostSeenIds = 1_000;

/** A message without any of them names no model and no object of the vendor. */
const namingMarks = ['"model"', '"voice"', '"prompt"', '"tools"', '\\u'].map((text) => Buffer.from(text));
const dataUrl = Buffer.from('data:image');
const soundMember = Buffer.from('"audio"');
const typeFirst = /^\s*\{\s*"type"\s*:\s*"([\w.]{1,80})"/;

export class RealtimeDialect implements Dialect {
  readonly protocol = realtimeProtocol;
  readonly cancel = '{"type":"response.cancel"}';
  readonly answers = realtimeAnswers;
  /** As the client names the model. */
  readonly #model: string;
  /** The upstream's name of it. */
  #upstreamModel = '';
  #upstream: Target['upstream'] | undefined;
  #isPriced: IsPriced | undefined;
  /** The transcription model, by the upstream's name; undefined: input is not transcribed. */
  #transcriptionModel: string | undefined;
  #responding = 0;
  readonly #begun = new SeenIds();
  readonly #ended = new SeenIds();
  readonly #transcribed = new SeenIds();

  constructor(model: string) {
    this.#model = model;
  }

  get isResponding(): boolean {
    return this.#responding > 0;
  }

  opened(upstreamModel: string, upstream?: Target['upstream'], isPriced?: IsPriced): void {
    this.#upstreamModel = upstreamModel;
    this.#upstream = upstream;
    this.#isPriced = isPriced;
  }

  client({ data, isBinary }: Message): ClientReading {
    const type = isBinary ? undefined : typeOf(data);
    const tokens = tokensOf(data, isBinary);
    const mayNameModel = !isBinary && namingMarks.some((mark) => data.includes(mark));
    const mayBeFree = type !== undefined && freeEvents.has(type) && data.length <= parsedBytes;
    if (!mayNameModel && !mayBeFree) return { needsHold: true, asks: type === asking, tokens };
    const json = tryParseBytes(data);
    // The upstream answers it with an error.
    if (!isObject(json)) return { needsHold: false, tokens: 0 };
    const needsHold = !freeEvents.has(String(json['type']));
    const asks = json['type'] === asking;
    const refusal = this.#refused(json);
    if (refusal !== undefined) return { refusal, needsHold: false, tokens: 0 };
    for (const part of ['session', 'response'] as const) {
      const named = objectOf(json[part])?.['model'];
      if (named === undefined) continue;
      if (named !== this.#model && named !== this.#upstreamModel)
        return { refusal: otherModel(`${part}.model`), needsHold: false, tokens: 0 };
      if (named !== this.#upstreamModel)
        return { replaced: withModel(data, part, this.#upstreamModel), needsHold, asks, tokens };
    }
    return { needsHold, asks, tokens };
  }

  /** A voice or a prompt that the vendor keeps for another customer: no answer here has issued it. */
  #foreignObject(json: JsonObject): GatewayError | undefined {
    for (const part of ['session', 'response'] as const) {
      const settings = objectOf(json[part]) ?? {};
      const output = objectOf(objectOf(settings['audio'])?.['output']);
      for (const [kind, field, value] of [
        ['Voice', 'voice', settings['voice']],
        ['Voice', 'audio.output.voice', output?.['voice']],
        ['Prompt', 'prompt', settings['prompt']],
      ] as const) {
        if (!isObject(value)) continue;
        const named = { id: textOf(value['id']) ?? '', kind, field: `${part}.${field}.id` };
        if (this.#upstream?.uncheckedIds?.all === true) continue;
        if (this.#upstream?.uncheckedIds?.shared.has(named.id) !== true) return notFound(named);
      }
    }
    return undefined;
  }

  #refused(json: JsonObject): GatewayError | undefined {
    const foreign = this.#foreignObject(json);
    if (foreign !== undefined) return foreign;
    for (const part of ['session', 'response'] as const) {
      const settings = objectOf(json[part]);
      if (settings === undefined || this.#isPriced === undefined) continue;
      const refusal = unpricedTool('responses', settings, this.#isPriced, part);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  upstream({ data, isBinary }: Message): UpstreamReading | undefined {
    const type = isBinary ? undefined : typeOf(data);
    switch (type) {
      case 'response.created':
        if (!this.#begun.add(responseIdIn(tryParseBytes(data)))) return undefined;
        this.#responding += 1;
        return { begins: true };
      case 'response.done': {
        const event = tryParseBytes(data);
        const reading = doneReading(event);
        if (!this.#ended.add(responseIdIn(event))) return { errorAt: reading.errorAt };
        this.#responding = Math.max(0, this.#responding - 1);
        return reading;
      }
      case 'conversation.item.input_audio_transcription.completed': {
        const event = objectOf(tryParseBytes(data)) ?? {};
        const usage = transcriptionUsage(event['usage']);
        if (usage === undefined || !this.#transcribed.add(contentIdIn(event))) return undefined;
        return { metered: { usage, model: this.#transcriptionModel } };
      }
      case 'error':
        return { answers: true, errorAt: ['error'] };
      case 'conversation.item.input_audio_transcription.failed':
        return { errorAt: ['error'] };
      case 'session.created':
      case 'session.updated':
      case 'transcription_session.updated':
        this.#transcriptionModel = transcriptionModelIn(tryParseBytes(data));
        return undefined;
      default:
        return undefined;
    }
  }

  refusal(greeting: Buffer): JsonObject | undefined {
    const json = typeOf(greeting) === 'error' ? tryParseBytes(greeting) : undefined;
    return isObject(json) ? json : undefined;
  }

  error(error: GatewayError, shape?: ShapeMembers): string {
    const shown = envelope(error).error;
    const code = error.kind === 'insufficient_balance' ? (error.code ?? error.kind) : shown.code;
    return JSON.stringify({
      type: 'error',
      event_id: `event_${randomUUID()}`,
      error: { ...shown, code, event_id: null, ...shape },
    });
  }
}

/** SDKs and vendors write `type` first; otherwise the whole message is read. */
function typeOf(data: Buffer): string | undefined {
  const first = typeFirst.exec(data.toString('latin1', 0, 120));
  if (first !== null) return first[1];
  const json = tryParseBytes(data);
  return isObject(json) ? textOf(json['type']) : undefined;
}

function tokensOf(data: Buffer, isBinary: boolean): number {
  if (isBinary || data.includes(soundMember)) return data.length / bytesPerAudioToken;
  return data.includes(dataUrl) ? imageTokens : data.length / bytesPerTextToken;
}

/** What a vendor reports again under the same id is no further response: it is passed on, and charged once. */
class SeenIds {
  readonly #ids = new Set<string>();

  /** false: the id was added before. Without an id nothing shows a repetition. */
  add(id: string | undefined): boolean {
    if (id === undefined) return true;
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size > mostSeenIds) for (const oldest of this.#ids) return this.#ids.delete(oldest);
    return true;
  }
}

function responseIdIn(event: unknown): string | undefined {
  return shortText(objectOf(objectOf(event)?.['response'])?.['id']);
}

/** The part of an item that was transcribed. */
function contentIdIn({ item_id: item, content_index: index }: JsonObject): string | undefined {
  const id = shortText(item);
  return id === undefined ? undefined : `${id} ${typeof index === 'number' ? index : 0}`;
}

/** Longer texts are no ids. */
function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= 200 ? value : undefined;
}

function doneReading(event: unknown): UpstreamReading {
  const response = objectOf(objectOf(event)?.['response']) ?? {};
  const tokens = responseUsage(response['usage']);
  const runs = listOf(response['output']).filter((item) => objectOf(item)?.['type'] === 'mcp_call').length;
  const usage = tokens === undefined || runs === 0 ? tokens : { ...tokens, call: runs };
  const finish = textOf(response['status']);
  // A failed response that reports nothing has used nothing.
  const failed = finish === 'failed' || finish === 'cancelled';
  return {
    metered: {
      usage: usage ?? (failed ? { input: 0, output: 0 } : undefined),
      upstreamId: textOf(response['id']),
      finish,
    },
    errorAt: finish === 'failed' ? ['response', 'status_details'] : undefined,
  };
}

function transcriptionModelIn(event: unknown): string | undefined {
  const session = objectOf(objectOf(event)?.['session']);
  const heard = objectOf(objectOf(session?.['audio'])?.['input']);
  const settings = objectOf(heard?.['transcription']) ?? objectOf(session?.['input_audio_transcription']);
  return textOf(settings?.['model']);
}

function withModel(data: Buffer, part: string, model: string): Buffer {
  const outer = findMember(scanObject(data), part)!;
  const value = data.subarray(outer.valueStart, outer.end);
  const changed = applyEdits(value, editsFor(scanObject(value), { replace: { model: JSON.stringify(model) } }));
  return Buffer.concat([data.subarray(0, outer.valueStart), changed, data.subarray(outer.end)]);
}

function otherModel(field: string): GatewayError {
  return new GatewayError('invalid_request', 'The model of a session cannot be changed; open another session.', {
    field,
    code: 'model_cannot_change',
  });
}
