/**
 * Prepares a generate-content request for an upstream of that protocol, and converts its answer to the client's dialect.
 * Pure.
 */

import { isObject, tryParse } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { Target } from '../../../common/domain/upstreams.ts';
import { changedBody, editBody, type MemberChanges, nestedEdits } from '../../../common/kit/body-edits.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import type { Prepared, RequestBody, Reshape } from '../../../common/wire/protocols.ts';
import { isSpecRequest, officialRequest } from './decode/flat-request.ts';
import { payloadText } from './decode/payload.ts';
import { ClientFrames, type Dialect, streamTypeOf } from './encode/client-frames.ts';
import { toSnake } from './names.ts';
import type { Method } from './preflight.ts';

/** Streams are always requested as SSE. An official body, in either case, is unchanged but for the gateway's own members. */
export function relayRequest(
  body: RequestBody,
  method: Method,
  call: Call,
  target: Target,
  members?: MemberChanges,
): Prepared {
  const upstreamMethod = call.stream ? 'streamGenerateContent' : method;
  const path = `/models/${encodeModel(target.model)}:${upstreamMethod}${call.stream ? '?alt=sse' : ''}`;
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  if (method !== 'countTokens' && isSpecRequest(body.json)) {
    const official = officialRequest(body.json) as Record<string, unknown>;
    const dropped = unwanted.filter((name) => Object.hasOwn(official, name));
    for (const name of dropped) delete official[name];
    return { path, body: Buffer.from(JSON.stringify(changedBody(official, members ?? {}))), dropped };
  }
  const edits =
    target.model === call.model
      ? []
      : ['generateContentRequest', 'generate_content_request'].flatMap((name) =>
          nestedEdits(body, name, { replace: { model: JSON.stringify(`models/${target.model}`) } }),
        );
  const respelled = unwanted.map(toSnake).filter((name) => !unwanted.includes(name) && Object.hasOwn(body.json, name));
  const changes = { remove: new Set(['stream', 'model', ...respelled]) };
  const edited = editBody(body, target, { changes, edits, members });
  return { path, body: edited.body, dropped: [...edited.dropped, ...respelled] };
}

/** Slashes separate path segments; every other character of a name is escaped. */
export function encodeModel(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/');
}

/** undefined if the client reads the upstream's form. `createdAt` is Unix seconds. */
export function reshapeFor(dialect: Dialect, call: Call, createdAt: number): Reshape | undefined {
  if (!dialect.isSpec && (dialect.isSse || !call.stream)) return undefined;
  const frames = new ClientFrames(dialect, call.model, createdAt);
  return {
    streamType: streamTypeOf(dialect),
    whole: (json) => Buffer.from(JSON.stringify(frames.answer(json))),
    frame(raw) {
      const frame = frames.relayed(raw);
      return frame === undefined ? undefined : Buffer.from(frame);
    },
    error: (text) => frames.errorFrames(text),
    ...(dialect.isSse ? {} : { idleFrame: 'none' }),
  };
}

/** Makes server-sent events for a client of `alt=sse` when the upstream answers with an array all the same. */
export const arrayAsSse: Reshape = {
  streamType: 'text/event-stream',
  whole: (json) => Buffer.from(JSON.stringify(json)),
  frame: (raw) => {
    const json = tryParse(payloadText(raw) ?? '');
    return isObject(json) ? Buffer.from(formatFrame(JSON.stringify(json))) : undefined;
  },
};
