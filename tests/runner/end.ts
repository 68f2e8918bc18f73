/** Ends the process of tests when they have ended, whatever a test that failed or was cut has left behind. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** Time for hooks that close things, and for the report to be written: `--test-force-exit` would lose the end of it. */
const graceMs = Number(process.env['TEST_END_GRACE_MS'] ?? 30_000);

/** The real one: a test that timed out may have replaced the global. */
const { setTimeout: later } = globalThis;

const works: (() => Promise<void>)[] = [];

/** Closes what all files of a process share, behind the last of them: a hook of `node:test` would belong to the first file. */
export function atEnd(work: () => Promise<void>): void {
  works.push(work);
}

/** Called behind the last test. */
export async function endProcess(): Promise<void> {
  const timer = later(() => {
    const kinds = [...new Set(process.getActiveResourcesInfo())].join(', ');
    process.stderr.write(`${process.argv[1]}: the tests have ended, but something is still open: ${kinds}\n`);
    process.exit(process.exitCode);
  }, graceMs);
  timer.unref();
  for (const work of works) await work();
}

/** For a process of tests: what it has started ends with it, also where the runner or a person cuts it. */
export function endWithAllStarted(): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  // The test runner reads this process's output until every process that shares it has ended.
  process.on('exit', () => {
    for (const pid of descendants(process.pid)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended in the meantime.
      }
    }
  });
}

/** Processes that this one has started, and theirs; none where the system does not tell. */
export function descendants(pid: number): number[] {
  let children: string;
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch {
    return [];
  }
  return children
    .split(' ')
    .filter((word) => word.trim() !== '')
    .map(Number)
    .flatMap((child) => [child, ...descendants(child)]);
}
