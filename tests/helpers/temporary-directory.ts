/** Directories that are gone with the test file that made them, also where its tests were cut. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

// Behind the listener of end.ts, which ends the processes that write there.
process.once('exit', removeTemporaryDirectories);

export function temporaryDirectory(name = 'gateway-test-'): string {
  const directory = mkdtempSync(join(tmpdir(), name));
  made.push(directory);
  return directory;
}

/** All that were made until now. Databases are tens of megabytes, and a process runs a hundred files. */
export function removeTemporaryDirectories(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
}
