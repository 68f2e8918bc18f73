/** Words a generate-content request for an upstream of that protocol, and its answer in the client's dialect. Pure. */

import { editBody, nestedEdits } from '../../../../core/body-edits.ts';
import { formatFrame, keepAliveFrame } from '../../../../core/sse.ts';
import type { Call, Target } from '../../../../core/vocabulary.ts';
import { isObject, tryParse } from '../../json.ts';
import type { Prepared, RequestBody, Reshape } from '../../protocol.ts';
import { ClientFrames, type Dialect, streamTypeOf } from './client-frames.ts';
import { isFlat, isSnake, officialRequest } from './flat-request.ts';
import { payloadText } from './payload.ts';
import type { Method } from './peek.ts';

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
export function encodeModel(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/');
}

/** undefined when the client reads what the upstream sends. `createdAt` is Unix seconds. */
export function reshapeFor(dialect: Dialect, call: Call, createdAt: number): Reshape | undefined {
  if (!dialect.isSnake && (dialect.isSse || !call.stream)) return undefined;
  const frames = new ClientFrames(dialect, call.model, createdAt);
  return {
    streamType: streamTypeOf(dialect),
    whole: (json) => Buffer.from(JSON.stringify(frames.answer(json))),
    frame(raw) {
      const frame = frames.relayed(raw);
      return frame === undefined ? undefined : Buffer.from(frame);
    },
    error: (text) => frames.errorFrames(text),
    idleFrame: dialect.isSse ? keepAliveFrame : undefined,
  };
}

/** For a client of `alt=sse` whose upstream answers with an array all the same. */
export const arrayAsSse: Reshape = {
  streamType: 'text/event-stream',
  whole: (json) => Buffer.from(JSON.stringify(json)),
  frame: (raw) => {
    const json = tryParse(payloadText(raw) ?? '');
    return isObject(json) ? Buffer.from(formatFrame(JSON.stringify(json))) : undefined;
  },
  idleFrame: keepAliveFrame,
};
