/** What a relayed stream's frames are to the relay, and what breaks one as its client is told. Pure. */
import { GatewayError, toGatewayError } from '../../core/errors.ts';
import { parseFrame } from '../../core/sse.ts';
import { tryParse } from './json.ts';

/** What the client is told: in a running stream nothing may be tried again by itself. */
export function brokeOff(cause: unknown): GatewayError {
  const { kind, message, code } = toGatewayError(cause);
  return new GatewayError(kind, message, { shouldRetry: false, cause, ...(code === undefined ? {} : { code }) });
}

/** Comments and blank lines, also several in one frame. */
export function isComment(raw: Buffer): boolean {
  const first = raw[0];
  return (first === 0x3a || first === 0x0a || first === 0x0d) && parseFrame(raw) === undefined;
}

export function isWholeFrame(rest: Buffer, data: string | undefined): boolean {
  if (data === undefined) return /^\s*(?::|$)/.test(rest.toString('latin1'));
  return data === '[DONE]' || tryParse(data) !== undefined;
}
