/** The rest of an upstream's body that belongs to nobody, read so that its socket can serve the next request. */
import type { Clock } from '../../core/contract.ts';

/** How much and how long an upstream may go on after its terminal event before its socket is given up. */
const maxRestBytes = 64 * 1024;
const maxRestMs = 2_000;

/** Resolves at the end of the body, when it breaks, or when reading on costs more than a new socket does. */
export async function readOut(source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>, clock: Clock): Promise<void> {
  const startedAt = clock.monotonic();
  let bytes = 0;
  try {
    for (let step = await source.next(); step.done !== true; step = await source.next()) {
      bytes += step.value.length;
      if (bytes > maxRestBytes || clock.monotonic() - startedAt > maxRestMs) break;
    }
  } catch {
    // The answer was complete; how the upstream closes is its own affair.
  }
}
