/** Words errors in the chat protocol, before an answer and inside a stream. Pure. */
import type { Answer } from '../../../../core/contract.ts';
import { envelope } from '../../../../core/error-envelope.ts';
import type { GatewayError } from '../../../../core/errors.ts';
import { formatFrame } from '../../../../core/sse.ts';
import type { BrokenStream } from '../../protocol.ts';

export function renderError(error: GatewayError): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(envelope(error)),
  };
}

/** An error object in place of a chunk, and no `[DONE]`: official SDKs throw on it, and show what stands in `error`. */
export function streamError(error: GatewayError, { shape }: Pick<BrokenStream, 'shape'>): string {
  const told = envelope(error);
  const body = shape === undefined ? told : { error: { ...told.error, ...shape } };
  return formatFrame(JSON.stringify({ ...body, ...shape, ...body }));
}
