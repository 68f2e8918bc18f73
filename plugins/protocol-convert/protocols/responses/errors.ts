/** Renders errors in the responses protocol, before an answer and inside a stream. Pure. */

import type { ErrorKind, GatewayError } from '../../../../core/contract/errors.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import { isObject, type JsonObject, tryParse } from '../../../../core/json/json.ts';
import type { ShapeMembers } from '../../../common/domain/error-shape.ts';
import { envelope } from '../../../common/kit/error-envelope.ts';
import { formatFrame, parseFrame } from '../../../common/kit/sse.ts';
import type { BrokenStream } from '../../../common/wire/protocols.ts';
import { requestEcho } from './encode/request-echo.ts';
import { failedMembers, responseId } from './encode/response-object.ts';

export function renderError(error: GatewayError): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(envelope(error)),
  };
}

/** Codes that a response object's `error` may carry; clients act on the first two. */
const codes: Partial<Readonly<Record<ErrorKind, string>>> = {
  rate_limited: 'rate_limit_exceeded',
  insufficient_balance: 'insufficient_quota',
};

/** Codes on which terminal clients do not retry. */
const knownCodes = new Set(['context_length_exceeded', 'insufficient_quota', 'rate_limit_exceeded', 'invalid_prompt']);

/**
 * `error`, then `response.failed`, as the official API ends a broken stream: SDKs throw at the first, terminal clients read
 * only the second.
 */
export function streamError(error: GatewayError, stream: BrokenStream): string {
  const last = lastPayload(stream.lastFrame)['sequence_number'];
  const respond = (members: object) =>
    JSON.stringify({
      id: stream.upstreamId ?? responseId(stream.exchangeId),
      object: 'response',
      created_at: stream.createdAt,
      ...members,
      ...failedMembers,
      model: stream.call.model,
      output: [],
      // The request is no longer in memory: its members have their defaults.
      ...requestEcho({}),
      service_tier: 'default',
    });
  return failureFrames(error, typeof last === 'number' ? last + 1 : 0, respond, stream.shape);
}

/**
 * The two last frames of a broken stream. `respond` encodes the response object around its `status` and `error`; that object
 * keeps the protocol's own codes, from which terminal clients decide whether to retry. Both events carry the error shape.
 */
export function failureFrames(
  error: GatewayError,
  number: number,
  respond: (members: { readonly status: 'failed'; readonly error: object }) => string,
  shape: ShapeMembers = {},
): string {
  const { type, param } = envelope(error).error;
  const isShown = error.code !== undefined && (error.ownCode || knownCodes.has(error.code));
  const code = isShown ? error.code : codes[error.kind];
  const details = { code: code ?? 'server_error', message: messageOf(error) };
  const response = respond({ status: 'failed', error: details });
  const place = { type: 'error', sequence_number: number };
  // The official API's flat members, and the object that the Open Responses specification uses instead.
  const event = { ...place, ...details, param, error: { type, ...details, param }, ...shape };
  const ending = JSON.stringify({ ...shape, type: 'response.failed', sequence_number: number + 1 }).slice(0, -1);
  return (
    formatFrame(JSON.stringify({ ...event, ...place }), 'error') +
    formatFrame(`${ending},"response":${response}}`, 'response.failed')
  );
}

/** Terminal clients parse the retry delay from the message. */
function messageOf({ kind, message, retryAfterMs }: GatewayError): string {
  if (kind !== 'rate_limited' || retryAfterMs === undefined || message.includes('try again in')) return message;
  return `${message} Please try again in ${Math.max(1, Math.ceil(retryAfterMs / 100)) / 10}s.`;
}

function lastPayload(lastFrame: Buffer | undefined): JsonObject {
  const data = lastFrame === undefined ? undefined : parseFrame(lastFrame)?.data;
  const payload = data === undefined ? undefined : tryParse(data);
  return isObject(payload) ? payload : {};
}
