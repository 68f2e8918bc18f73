/**
 * Conversion of an upstream's refusal for a client of another protocol: keeps the kind of error, drops the upstream's
 * body and fields. Pure.
 */
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { isOverflow as isOverflowMessage } from '../../common/wire/refusal-class.ts';

/** The code by which clients recognise in every protocol that a prompt is too long. */
export const contextOverflow = 'context_length_exceeded';

export function foreignRefusal(refusal: UpstreamRefusal): UpstreamRefusal {
  return new UpstreamRefusal(foreignError(refusal.error), { ...refusal, answer: undefined });
}

/** Drops the field: it belongs to the request that the upstream saw, not to the client's. */
export function foreignError(error: GatewayError): GatewayError {
  const { kind, message, retryAfterMs, shouldRetry, headers, cause } = error;
  const isOverflow = (kind === 'invalid_request' || kind === 'too_large') && isOverflowMessage(message);
  const code = isOverflow ? contextOverflow : error.code;
  return new GatewayError(isOverflow ? 'invalid_request' : kind, message, {
    ...(code === undefined ? {} : { code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(shouldRetry === undefined ? {} : { shouldRetry }),
    ...(headers === undefined ? {} : { headers }),
    cause,
  });
}

/**
 * The text by which clients of the messages protocol recognise an overflow: `prompt is too long: 210 tokens > 200
 * maximum`. The numbers come from the vendor's message where it has them.
 */
export function overflowPattern(message: string): string {
  if (message.startsWith('prompt is too long')) return message;
  const counts = [...message.matchAll(/\d[\d,]{2,}/g)].map(([digits]) => Number(digits.replaceAll(',', '')));
  if (counts.length < 2) return `prompt is too long: ${message}`;
  return `prompt is too long: ${Math.max(...counts)} tokens > ${Math.min(...counts)} maximum`;
}
