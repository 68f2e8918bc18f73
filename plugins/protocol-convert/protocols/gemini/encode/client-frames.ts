/** Chunks in the client's form: official or the specification's members, SSE or one object on each line. Pure. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import { isObject, type JsonObject, tryParse } from '../../../../../core/json/json.ts';
import type { ShapeMembers } from '../../../../common/domain/error-shape.ts';
import { googleError } from '../../../../common/kit/error-envelope.ts';
import { formatFrame } from '../../../../common/kit/sse.ts';
import type { BrokenStream } from '../../../../common/wire/protocols.ts';
import { isSpecRequest } from '../decode/flat-request.ts';
import { payloadText } from '../decode/payload.ts';
import { specAnswer } from './spec-answer.ts';

/** The client's dialect. */
export interface Dialect {
  /** The request has the specification's shape, and so has the answer. */
  readonly isSpec: boolean;
  /** The client requested `alt=sse`; otherwise a stream is one JSON object on each line. */
  readonly isSse: boolean;
}

export function dialectOf(json: JsonObject, query: URLSearchParams): Dialect {
  return { isSpec: isSpecRequest(json), isSse: query.get('alt') === 'sse' };
}

export function streamTypeOf(dialect: Dialect): string {
  return dialect.isSse ? 'text/event-stream' : 'application/x-ndjson';
}

/** Encodes official answers for one client. `createdAt` is Unix seconds. */
export class ClientFrames {
  readonly dialect: Dialect;
  readonly #model: string;
  readonly #createdAt: number;

  constructor(dialect: Dialect, model: string, createdAt: number) {
    this.dialect = dialect;
    this.#model = model;
    this.#createdAt = createdAt;
  }

  /** One official answer or chunk, in the client's members. */
  answer(official: JsonObject): JsonObject {
    return this.dialect.isSpec ? specAnswer(official, this.#model, this.#createdAt) : official;
  }

  /** The frame of one official chunk. */
  frame(official: JsonObject): string {
    return this.line(JSON.stringify(this.answer(official)));
  }

  /** The frame of one encoded chunk, which contains no line ends. */
  line(text: string): string {
    return this.dialect.isSse ? formatFrame(text) : `${text}\n`;
  }

  /** The constant text of a frame before and after the JSON text of the member with the value `hole`. */
  around(official: JsonObject, hole: string): readonly [head: string, tail: string] {
    const frame = this.frame(official);
    const mark = JSON.stringify(hole);
    const at = frame.indexOf(mark);
    return [frame.slice(0, at), frame.slice(at + mark.length)];
  }

  /** A frame of an upstream of this protocol; undefined if it has no content. */
  relayed(raw: Buffer): string | undefined {
    const text = payloadText(raw);
    if (text === undefined) return undefined;
    if (!this.dialect.isSpec && !/[\r\n]/.test(text)) return this.line(text);
    const json = tryParse(text);
    return this.line(isObject(json) ? JSON.stringify(this.answer(json)) : text);
  }

  error(error: GatewayError, shape: ShapeMembers | undefined): string {
    return this.errorFrames(streamError(error, { shape }));
  }

  /** Error objects have the same members in every dialect. */
  errorFrames(frames: string): string {
    return this.dialect.isSse ? frames : `${payloadText(Buffer.from(frames)) ?? '{}'}\n`;
  }
}

/** An error object instead of a chunk: official SDKs throw on it if its `code` is a status, so an error shape is added beside it. */
export function streamError(error: GatewayError, { shape }: Pick<BrokenStream, 'shape'>): string {
  const body = googleError(error);
  return formatFrame(JSON.stringify({ ...body, ...shape, ...body }));
}
