/** Waits in tests for a condition, however slow the machine is, where a fixed time would be too short on some. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

/** Looks until something other than undefined or false is found, and returns it. Fails after a minute. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  withinMs = 60_000,
): Promise<Exclude<T, undefined | false>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > deadline) assert.fail(`${what}: not within ${withinMs} ms`);
    await pause(5);
  }
}
