/** An environment of Python with pinned packages, outside the repository, from whatever index pip is set up with. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The interpreter of an environment with what this file requires; made when it is not in the cache. */
export async function pythonWith(requirements: string): Promise<string> {
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'model-gateway');
  const folder = join(cache, `python-${version}`);
  const interpreter = join(folder, 'bin/python');
  // Environments hold their own path, so it is made where it stays; the mark says that it is whole.
  const mark = join(folder, 'whole');
  if (existsSync(mark)) return interpreter;
  const run = promisify(execFile);
  await rm(folder, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', folder], { timeout: 60_000 });
  const words = ['-m', 'pip', 'install', '--quiet', '--retries=1', '--disable-pip-version-check', '-r', requirements];
  await run(interpreter, words, { timeout: 240_000 });
  await writeFile(mark, '');
  return interpreter;
}
