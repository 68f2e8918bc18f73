/** Installs Open WebUI in a pinned version, outside the repository, from whatever registry pip and uv are set up with. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NotInstalled } from '../install.ts';

export const version = '0.12.4';
/** They are for models of its own, and more than all the rest. */
const leftOut = ['torch', 'accelerate'];
const run = promisify(execFile);

/** The path of its program; downloads about 1.8 GB when this version is not in the cache. Throws NotInstalled. */
export async function installOpenWebUi(): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(cache, `model-gateway/clients/open-webui-${version}`);
  const program = join(folder, 'bin/open-webui');
  // Environments hold their own path, so it is made where it stays; the mark says that it is whole.
  const mark = join(folder, 'whole');
  if (existsSync(mark)) return program;
  try {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await run('python3', ['-m', 'venv', folder], { timeout: 60_000 });
    await download(folder);
    await writeFile(mark, '');
    return program;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw new NotInstalled(`Open WebUI cannot be installed: ${(error as Error).message.slice(0, 500)}`);
  }
}

async function download(folder: string): Promise<void> {
  const pip = (...words: string[]) =>
    run(join(folder, 'bin/pip'), [...words, '--quiet', '--retries=1', '--disable-pip-version-check'], {
      timeout: 300_000,
    });
  const wheels = join(folder, 'wheels');
  await pip('install', 'uv');
  await pip('download', '--no-deps', '--dest', wheels, `open-webui==${version}`);
  const [wheel] = await readdir(wheels);
  const overrides = join(folder, 'left-out.txt');
  await writeFile(overrides, leftOut.map((name) => `${name}; sys_platform == 'never'\n`).join(''));
  const python = join(folder, 'bin/python');
  const words = ['pip', 'install', '--quiet', '--no-cache', '--python', python, '--override', overrides];
  await run(join(folder, 'bin/uv'), [...words, join(wheels, wheel!)], { timeout: 600_000 });
  await rm(wheels, { recursive: true });
}
