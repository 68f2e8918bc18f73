/** The processes of one machine that serve a gateway together, and their directories. */
import { join } from 'node:path';

export interface ProcessGroup {
  /** Index of this process, from 1; unique among live processes. */
  readonly workerIndex: number;
  /** How many processes serve; for a while there are more, when some are being replaced. */
  readonly size: number;
  /** The first process that serves: it logs what should be logged once. */
  readonly isFirst: boolean;
}

/** A process that serves alone. */
export const alone: ProcessGroup = { workerIndex: 1, size: 1, isFirst: true };

/** The process's own directory. Index 1 has the directory of a process that serves alone, and so continues its journal. */
export function ownDirectory(directory: string, workerIndex: number): string {
  return workerIndex === 1 ? directory : join(directory, `worker-${workerIndex}`);
}

/** The worker indexes with a directory, by the directories' names. */
export function workerIndexesOf(names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const match = /^worker-([1-9]\d{0,3})$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}
