/** Time limits that hold on a machine that is busy with other things: what this process itself was kept waiting is added. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface DelayWatch {
  /**
   * `limitMs`, and what six turns of the event loop that came late may have added since the watch began: a client that leaves is seen by
   * four sockets one after another, and by a timer of the test.
   */
  allowedMs(limitMs: number): number;
}

/** Begins to watch; the process that is measured must be this one. */
export function watchDelay(): DelayWatch {
  const resolutionMs = 2;
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  return {
    allowedMs: (limitMs) => limitMs + 6 * Math.max(0, delay.max / 1e6 - resolutionMs),
  };
}
