/** How a running stream that breaks is told to its client. Pure. */
import { GatewayError, toGatewayError } from '../../core/errors.ts';

/** In a running stream nothing may be tried again by itself. */
export function brokeOff(cause: unknown): GatewayError {
  const { kind, message, code } = toGatewayError(cause);
  return new GatewayError(kind, message, { shouldRetry: false, cause, ...(code === undefined ? {} : { code }) });
}
