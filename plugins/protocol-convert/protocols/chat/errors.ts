/** Renders errors in the chat protocol, before an answer and inside a stream. Pure. */

import type { GatewayError } from '../../../../core/contract/errors.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import { envelope } from '../../../common/kit/error-envelope.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import type { BrokenStream } from '../../../common/wire/protocols.ts';

export function renderError(error: GatewayError): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(envelope(error)),
  };
}

/** An error object instead of a chunk, without `[DONE]`: official SDKs throw on it and show the content of `error`. */
export function streamError(error: GatewayError, { shape }: Pick<BrokenStream, 'shape'>): string {
  const plain = envelope(error);
  const body = shape === undefined ? plain : { error: { ...plain.error, ...shape } };
  return formatFrame(JSON.stringify({ ...body, ...shape, ...body }));
}
