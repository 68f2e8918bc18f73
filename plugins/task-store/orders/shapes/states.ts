/** State names and error texts that all shapes share. Pure. */
import type { Task, TaskState } from '../../contract.ts';

/** The error message, for shapes that have it as a text; undefined: the task did not fail. */
export function reasonOf({ state, error }: Task): string | undefined {
  if (state !== 'failed' && state !== 'cancelled' && state !== 'expired') return undefined;
  return error?.message ?? sentences[state];
}

const sentences: Readonly<Record<'failed' | 'cancelled' | 'expired', string>> = {
  failed: 'The task failed.',
  cancelled: 'The task was cancelled.',
  expired: 'The task was not done in time.',
};

/** Default error codes for shapes with an error object. */
export function codeOf({ state, error }: Task): string {
  return error?.code ?? (state === 'failed' ? 'generation_failed' : state);
}

/** Bodies have times in whole seconds. */
export function secondsOf(milliseconds: number): number {
  return Math.floor(milliseconds / 1_000);
}

export type StateNames = Readonly<Record<TaskState, string>>;
