/** The files of a run and who has taken them, in a directory: any process takes the next one, and none is taken twice. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';

export interface Queue {
  /** Files that processes share. */
  readonly shared: readonly string[];
  /** Files that have a process each. */
  readonly alone: readonly string[];
  /** Processes at a time. */
  readonly workers: number;
  /** The longest that a file may take. */
  readonly timeoutMs: number;
}

/** Memory of the machine, or of the container around this process. */
const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
/**
 * A process that is larger takes no more files: the next one goes on, which compiles everything again. Five together stay below half of
 * the memory where there is 12 GB.
 */
const maxResidentBytes = Math.max(1.2e9, memoryBytes / 12);
const startsOfWorker = 2;

/** Writes it for the processes that are started from now on, whose number is returned. */
export function makeQueue(queue: Queue): number {
  const directory = mkdtempSync(join(tmpdir(), 'queue-'));
  writeFileSync(join(directory, 'queue.json'), JSON.stringify(queue));
  process.env['TEST_QUEUE'] = directory;
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return sharedStarts(queue) + queue.alone.length;
}

function sharedStarts({ shared, workers }: Queue): number {
  return Math.min(shared.length, workers * startsOfWorker);
}

/** The files of this process, one after the other, and the time of each. */
export function* takeFiles(): Generator<{ file: string; timeoutMs: number }> {
  const directory = process.env['TEST_QUEUE']!;
  const queue: Queue = JSON.parse(readFileSync(join(directory, 'queue.json'), 'utf8'));
  const { shared, alone, workers, timeoutMs } = queue;
  const starts = sharedStarts(queue);
  const number = take(directory, 'process', starts + alone.length)!;
  // Two at a time, as long as there are files to share: each starts processes of its own.
  const first = Math.min(Math.max(workers - 2, 1), starts);
  if (number >= first && number < first + alone.length) return yield { file: alone[number - first]!, timeoutMs };
  // The last ones leave nothing to others.
  const maxBytes = number < starts + alone.length - workers ? maxResidentBytes : Number.POSITIVE_INFINITY;
  while (process.memoryUsage.rss() < maxBytes) {
    const index = take(directory, 'file', shared.length);
    if (index === undefined) return;
    yield { file: shared[index]!, timeoutMs };
  }
}

/** The lowest number that no process has taken, below `end`. */
function take(directory: string, what: string, end: number): number | undefined {
  for (let index = 0; index < end; index += 1) {
    try {
      closeSync(openSync(join(directory, `${what}-${index}`), 'wx'));
      return index;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  return undefined;
}
