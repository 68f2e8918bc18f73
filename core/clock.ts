/** The process's real time. Everything else asks the Clock it was given. */
import type { Clock } from './contract.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
