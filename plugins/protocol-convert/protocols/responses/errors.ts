/** Words errors in the responses protocol, before an answer and inside a stream. Pure. */
import type { Answer } from '../../../../core/contract.ts';
import type { ErrorKind, GatewayError } from '../../../../core/errors.ts';
import { formatFrame, parseFrame } from '../../../../core/sse.ts';
import { envelope } from '../../error-envelope.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import type { BrokenStream } from '../../protocol.ts';

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

/**
 * `error`, then `response.failed`, as the official API ends a broken stream: SDKs throw at the first, terminal clients
 * read only the second.
 */
export function streamError(error: GatewayError, stream: BrokenStream): string {
  const { message, param } = envelope(error).error;
  const code = codes[error.kind] ?? 'server_error';
  const last = lastPayload(stream.lastFrame)['sequence_number'];
  const number = typeof last === 'number' ? last + 1 : 0;
  const response = {
    id: stream.upstreamId ?? `resp_${stream.exchangeId}`,
    object: 'response',
    created_at: stream.createdAt,
    status: 'failed',
    error: { code, message },
    incomplete_details: null,
    model: stream.call.model,
    output: [],
    usage: null,
    metadata: {},
  };
  return (
    formatFrame(JSON.stringify({ type: 'error', sequence_number: number, code, message, param }), 'error') +
    formatFrame(JSON.stringify({ type: 'response.failed', sequence_number: number + 1, response }), 'response.failed')
  );
}

function lastPayload(lastFrame: Buffer | undefined): JsonObject {
  const data = lastFrame === undefined ? undefined : parseFrame(lastFrame)?.data;
  const payload = data === undefined ? undefined : tryParse(data);
  return isObject(payload) ? payload : {};
}
