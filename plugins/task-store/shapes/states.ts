/** How the words of a task's end read in every shape. Pure. */
import type { Task, TaskState } from '../contract.ts';

/** Why it came to nothing, for shapes that tell it as a text; undefined: it did not. */
export function reasonOf({ state, error }: Task): string | undefined {
  if (state !== 'failed' && state !== 'cancelled' && state !== 'expired') return undefined;
  return error?.message ?? sentences[state];
}

const sentences: Readonly<Record<'failed' | 'cancelled' | 'expired', string>> = {
  failed: 'The task failed.',
  cancelled: 'The task was cancelled.',
  expired: 'The task was not done in time.',
};

/** Codes that shapes with an error object give where the task has none. */
export function codeOf({ state, error }: Task): string {
  return error?.code ?? (state === 'failed' ? 'generation_failed' : state);
}

/** Times in bodies are whole seconds. */
export function secondsOf(milliseconds: number): number {
  return Math.floor(milliseconds / 1_000);
}

export type Words = Readonly<Record<TaskState, string>>;
