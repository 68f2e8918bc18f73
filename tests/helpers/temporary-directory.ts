/** Directories that are gone with the process that made them, also where its tests were cut. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

// Behind the listener of end.ts, which ends the processes that write there.
process.once('exit', () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

export function temporaryDirectory(name = 'gateway-test-'): string {
  const directory = mkdtempSync(join(tmpdir(), name));
  made.push(directory);
  return directory;
}
