/** An upstream's refusal for a client of another protocol: what happened stays, the upstream's own body and fields do not. Pure. */
import { GatewayError, UpstreamRefusal } from '../../core/errors.ts';

/** Code by which clients learn that a prompt does not fit, whatever the protocol. */
export const contextOverflow = 'context_length_exceeded';

/** How vendors say that a prompt is too long for the model. */
const overflowMessage =
  /prompt is too long|input is too long|maximum prompt length|context (?:window|length|limit|size)|input token count.{0,40}exceeds|too many (?:input )?tokens/i;

export function foreignRefusal(refusal: UpstreamRefusal): UpstreamRefusal {
  return new UpstreamRefusal(foreignError(refusal.error), { ...refusal, answer: undefined });
}

/** Fields are those of the request that the upstream saw, so the client is not told them. */
export function foreignError(error: GatewayError): GatewayError {
  const { kind, message, retryAfterMs, shouldRetry, headers, cause } = error;
  const isOverflow = (kind === 'invalid_request' || kind === 'too_large') && overflowMessage.test(message);
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
 * The words by which clients of the messages protocol recognise an overflow: `prompt is too long: 210 tokens > 200 maximum`.
 * Numbers as far as the message tells them.
 */
export function overflowWords(message: string): string {
  if (message.startsWith('prompt is too long')) return message;
  const counts = [...message.matchAll(/\d[\d,]{2,}/g)].map(([digits]) => Number(digits.replaceAll(',', '')));
  if (counts.length < 2) return `prompt is too long: ${message}`;
  return `prompt is too long: ${Math.max(...counts)} tokens > ${Math.min(...counts)} maximum`;
}
