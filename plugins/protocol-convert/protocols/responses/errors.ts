/** Words errors in the responses protocol, before an answer and inside a stream. Pure. */
import type { Answer } from '../../../../core/contract.ts';
import { envelope } from '../../../../core/error-envelope.ts';
import type { ErrorKind, GatewayError } from '../../../../core/errors.ts';
import { formatFrame, parseFrame } from '../../../../core/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import type { BrokenStream, ShapeMembers } from '../../protocol.ts';
import { responseId } from './response-object.ts';

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

/** Codes that terminal clients know: they do not try again on these. */
const knownCodes = new Set(['context_length_exceeded', 'insufficient_quota', 'rate_limit_exceeded', 'invalid_prompt']);

/**
 * `error`, then `response.failed`, as the official API ends a broken stream: SDKs throw at the first, terminal clients
 * read only the second.
 */
export function streamError(error: GatewayError, stream: BrokenStream): string {
  const last = lastPayload(stream.lastFrame)['sequence_number'];
  const respond = (members: object) =>
    JSON.stringify({
      id: stream.upstreamId ?? responseId(stream.exchangeId),
      object: 'response',
      created_at: stream.createdAt,
      ...members,
      incomplete_details: null,
      model: stream.call.model,
      output: [],
      usage: null,
      metadata: {},
    });
  return failureFrames(error, typeof last === 'number' ? last + 1 : 0, respond, stream.shape);
}

/**
 * The two last frames of a broken stream. `respond` words the response object around its `status` and `error`; that object
 * keeps the protocol's own codes, by which terminal clients know whether to try again. Both events carry the shape.
 */
export function failureFrames(
  error: GatewayError,
  number: number,
  respond: (members: { readonly status: 'failed'; readonly error: object }) => string,
  shape: ShapeMembers = {},
): string {
  const { param } = envelope(error).error;
  const code = error.code !== undefined && knownCodes.has(error.code) ? error.code : codes[error.kind];
  const told = { code: code ?? 'server_error', message: messageOf(error) };
  const response = respond({ status: 'failed', error: told });
  const place = { type: 'error', sequence_number: number };
  const event = { ...place, ...told, param, ...shape };
  const ending = JSON.stringify({ ...shape, type: 'response.failed', sequence_number: number + 1 }).slice(0, -1);
  return (
    formatFrame(JSON.stringify({ ...event, ...place }), 'error') +
    formatFrame(`${ending},"response":${response}}`, 'response.failed')
  );
}

/** Terminal clients read the waiting time out of the words. */
function messageOf({ kind, message, retryAfterMs }: GatewayError): string {
  if (kind !== 'rate_limited' || retryAfterMs === undefined || message.includes('try again in')) return message;
  return `${message} Please try again in ${Math.max(1, Math.ceil(retryAfterMs / 100)) / 10}s.`;
}

function lastPayload(lastFrame: Buffer | undefined): JsonObject {
  const data = lastFrame === undefined ? undefined : parseFrame(lastFrame)?.data;
  const payload = data === undefined ? undefined : tryParse(data);
  return isObject(payload) ? payload : {};
}
