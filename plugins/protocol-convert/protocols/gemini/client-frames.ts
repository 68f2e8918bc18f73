/** Chunks in the form in which this client reads them: official or the specification's members, SSE or one on each line. Pure. */
import type { GatewayError } from '../../../../core/errors.ts';
import { formatFrame } from '../../../../core/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import type { ShapeMembers } from '../../protocol.ts';
import { streamError } from './errors.ts';
import { isSnake } from './flat-request.ts';
import { payloadText } from './payload.ts';
import { specAnswer } from './spec-answer.ts';

/** How this client writes and reads. */
export interface Dialect {
  readonly isSnake: boolean;
  /** `alt=sse` was asked for; otherwise a stream is one JSON object on each line. */
  readonly isSse: boolean;
}

export function dialectOf(json: JsonObject, query: URLSearchParams): Dialect {
  return { isSnake: isSnake(json), isSse: query.get('alt') === 'sse' };
}

export function streamTypeOf(dialect: Dialect): string {
  return dialect.isSse ? 'text/event-stream' : 'application/x-ndjson';
}

/** Words official answers for one client. `createdAt` is Unix seconds. */
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
    return this.dialect.isSnake ? specAnswer(official, this.#model, this.#createdAt) : official;
  }

  /** The frame of one official chunk. */
  frame(official: JsonObject): string {
    return this.line(JSON.stringify(this.answer(official)));
  }

  /** The frame of one chunk that is worded already; it holds no line ends. */
  line(text: string): string {
    return this.dialect.isSse ? formatFrame(text) : `${text}\n`;
  }

  /** What stands in a frame before and behind the JSON text of the one member whose value is `hole`. */
  around(official: JsonObject, hole: string): readonly [head: string, tail: string] {
    const frame = this.frame(official);
    const mark = JSON.stringify(hole);
    const at = frame.indexOf(mark);
    return [frame.slice(0, at), frame.slice(at + mark.length)];
  }

  /** A frame of an upstream of this protocol; undefined when it carries nothing. */
  relayed(raw: Buffer): string | undefined {
    const text = payloadText(raw);
    if (text === undefined) return undefined;
    if (!this.dialect.isSnake && !/[\r\n]/.test(text)) return this.line(text);
    const json = tryParse(text);
    return this.line(isObject(json) ? JSON.stringify(this.answer(json)) : text);
  }

  error(error: GatewayError, shape: ShapeMembers | undefined): string {
    return this.errorFrames(streamError(error, { shape }));
  }

  /** Error objects keep their members in every dialect. */
  errorFrames(frames: string): string {
    return this.dialect.isSse ? frames : `${payloadText(Buffer.from(frames)) ?? '{}'}\n`;
  }
}
