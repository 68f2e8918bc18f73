/** The npm package, packed and unpacked below node_modules as an installation has it, with the examples beside it. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { copyOutside } from './ollama/outside.ts';

const run = promisify(execFile);

export const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  name: string;
  dependencies: Record<string, string>;
  bin: Record<string, string>;
  readonly [member: string]: unknown;
};

/** Packs the working tree, and installs it in `home` with its dependencies. */
export async function installPacked(home: string): Promise<void> {
  if (!existsSync('plugins/console/web/dist')) await run('npm', ['run', 'build:console']);
  await run(process.execPath, ['--disable-warning=ExperimentalWarning', 'docker/pack.mjs']);
  const { stdout } = await run(process.execPath, ['docker/manifest.mjs', 'pack', home]);
  const folder = join(home, 'node_modules', manifest.name);
  mkdirSync(join(home, 'node_modules/.bin'), { recursive: true });
  mkdirSync(folder);
  await run('tar', ['-xzf', join(home, stdout.trim()), '-C', folder, '--strip-components=1']);
  // As an installation without the development packages would have it.
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(home, 'node_modules', name)), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', name), join(home, 'node_modules', name));
  }
  symlinkSync(join(folder, manifest.bin['model-gateway']!), join(home, 'node_modules/.bin/model-gateway'));
}

/** Copies the examples beside it; returns their test files. */
export function copyExamples(home: string): string[] {
  const to = join(home, 'examples');
  rmSync(to, { recursive: true, force: true });
  for (const { parentPath, name } of globSync('tests/examples/*', { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  ))
    cpSync(join(parentPath, name), join(to, name), { recursive: true });
  rmSync(join(to, 'ollama/outside.ts'));
  copyOutside(join(to, 'ollama/plugin'));
  return globSync('examples/*/*.test.ts', { cwd: home });
}
