/** The service of counters that several processes share. Types alone. */
import { defineService } from '../../../core/contract/contract.ts';

/** A Lua script on counters that processes share; the keys of one run stand together (one hash tag). */
export interface CounterScript {
  /** Letters; no command's. */
  readonly name: string;
  readonly lua: string;
}
export interface Counters {
  /** Resolves with the script's result. Rejects, soon, where they are away or slow; then it may have run all the same. */
  run(script: CounterScript, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>;
  /** false while they give no answers: each process counts by itself. */
  healthy(): boolean;
  /** For how long the counters have given no answers; 0: they do. */
  awayMs(): number;
}
/** Provided only where processes share counters. */
export const counters = defineService<Counters>('counters');
