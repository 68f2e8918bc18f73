/** Words a generate-content request for an upstream of that protocol, and its answer in the client's dialect. Pure. */
import { formatFrame, keepAliveFrame } from '../../../../core/sse.ts';
import type { Call, Target } from '../../../../core/vocabulary.ts';
import { editBody, nestedEdits } from '../../body-edits.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import type { Prepared, RequestBody, Reshape } from '../../protocol.ts';
import { isFlat, isSnake, officialRequest } from './flat-request.ts';
import { payloadText } from './payload.ts';
import type { Method } from './peek.ts';
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

/** Streams are always asked for as SSE. An official body stays as it came, but for the gateway's own members. */
export function relayRequest(body: RequestBody, method: Method, call: Call, target: Target): Prepared {
  const upstreamMethod = call.stream ? 'streamGenerateContent' : method;
  const path = `/models/${encodeModel(target.model)}:${upstreamMethod}${call.stream ? '?alt=sse' : ''}`;
  if (method !== 'countTokens' && (isSnake(body.json) || isFlat(body.json))) {
    const official = officialRequest(body.json) as Record<string, unknown>;
    const unwanted = target.upstream.dropFields[target.protocol] ?? [];
    const dropped = unwanted.filter((name) => Object.hasOwn(official, name));
    for (const name of dropped) delete official[name];
    return { path, body: Buffer.from(JSON.stringify(official)), dropped };
  }
  const edits =
    target.model === call.model
      ? []
      : nestedEdits(body, 'generateContentRequest', {
          replace: { model: JSON.stringify(`models/${target.model}`) },
        });
  return { path, ...editBody(body, target, { changes: { remove: new Set(['stream', 'model']) }, edits }) };
}

/** Slashes divide the path; everything else that a name may hold is escaped. */
function encodeModel(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/');
}

/** undefined when the client reads what the upstream sends. `createdAt` is Unix seconds. */
export function reshapeFor(dialect: Dialect, call: Call, createdAt: number): Reshape | undefined {
  if (!dialect.isSnake && (dialect.isSse || !call.stream)) return undefined;
  const spec = (json: JsonObject) => (dialect.isSnake ? specAnswer(json, call.model, createdAt) : json);
  return {
    streamType: dialect.isSse ? 'text/event-stream' : 'application/x-ndjson',
    whole: (json) => Buffer.from(JSON.stringify(spec(json))),
    frame(raw) {
      const text = payloadText(raw);
      if (text === undefined) return undefined;
      const line = dialect.isSnake || /[\r\n]/.test(text) ? reworded(text, spec) : text;
      return Buffer.from(dialect.isSse ? formatFrame(line) : `${line}\n`);
    },
    error: (frames) => (dialect.isSse ? frames : `${payloadText(Buffer.from(frames)) ?? '{}'}\n`),
    idleFrame: dialect.isSse ? keepAliveFrame : undefined,
  };
}

function reworded(text: string, spec: (json: JsonObject) => JsonObject): string {
  const json = tryParse(text);
  return isObject(json) ? JSON.stringify(spec(json)) : text;
}

/** For a client of `alt=sse` whose upstream answers with an array all the same. */
export const arrayAsSse: Reshape = {
  streamType: 'text/event-stream',
  whole: (json) => Buffer.from(JSON.stringify(json)),
  frame: (raw) => {
    const json = tryParse(payloadText(raw) ?? '');
    return isObject(json) ? Buffer.from(formatFrame(JSON.stringify(json))) : undefined;
  },
  error: (frames) => frames,
  idleFrame: keepAliveFrame,
};
