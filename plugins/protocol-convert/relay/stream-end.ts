/** The end of a relayed stream: the rest of the body after its terminal event, and the error of a stream that breaks. */

import { GatewayError, toGatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';

/** Limits in bytes and time for the rest of a body; beyond them the socket is closed. */
const maxRestBytes = 64 * 1024;
const maxRestMs = 2_000;

/** Resolves at the end of the body, when it breaks, or when reading on costs more than a new socket does. */
export async function drainBody(source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>, clock: Clock): Promise<void> {
  const startedAt = clock.monotonic();
  let bytes = 0;
  try {
    for (let step = await source.next(); step.done !== true; step = await source.next()) {
      bytes += step.value.length;
      if (bytes > maxRestBytes || clock.monotonic() - startedAt > maxRestMs) break;
    }
  } catch {
    // The answer was complete; an error of the upstream's close does not matter.
  }
}

/** The error that the client gets. A running stream must not be retried automatically. */
export function streamBreakError(cause: unknown): GatewayError {
  const { kind, message, code } = toGatewayError(cause);
  return new GatewayError(kind, message, { shouldRetry: false, cause, ...(code === undefined ? {} : { code }) });
}
