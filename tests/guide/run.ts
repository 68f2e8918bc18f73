/**
 * `npm run test:guide [-- --only GOAL,…] [--install]`: follows the guide in a fresh clone, and does only what its pages say: files and
 * commands are taken from them. What a person supplies is replaced: keys, the vendor, and ports.
 * `--install`: packages by `npm ci`, as the first page says, and not from this checkout.
 */
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { type Goal, goals } from './goals.ts';
import { Reader } from './reader.ts';

const { only, install = false } = parseArgs({
  options: { only: { type: 'string' }, install: { type: 'boolean' } },
}).values;
const wanted = only?.split(',') ?? [];
const chosen =
  only === undefined
    ? goals
    : goals.filter(({ name }) => wanted.some((one) => one === name || goalOf(one).after === name));

function goalOf(name: string): Goal {
  const goal = goals.find((one) => one.name === name);
  if (goal === undefined) throw new Error(`there is no goal "${name}": ${goals.map((one) => one.name).join(', ')}`);
  return goal;
}

const home = mkdtempSync(join(tmpdir(), 'guide-'));
const vendor = await startVendor({ key: 'sk-of-the-vendor' });
const reader = new Reader(await cloned(), vendor.origin);
try {
  for (const goal of chosen) {
    const startedAt = performance.now();
    reader.said = '';
    for (const section of goal.sections) await reader.follow(section);
    await goal.check?.(reader);
    console.log(`✔ ${goal.name} (${Math.round((performance.now() - startedAt) / 100) / 10} s)`);
  }
} catch (error) {
  console.error(`✖ ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await reader.end();
  await vendor.close();
  rmSync(home, { recursive: true, force: true });
}

/** A clone with what is changed here and not committed yet. */
async function cloned(): Promise<string> {
  const here = execFileSync('git', ['rev-parse', '--show-toplevel'], { encoding: 'utf8' }).trim();
  const clone = join(home, 'model-gateway');
  const git = promisify(execFile);
  await git('git', ['clone', '--quiet', '--depth', '1', `file://${here}`, clone]);
  const { stdout } = await git('git', ['ls-files', '--modified', '--others', '--exclude-standard'], { cwd: here });
  for (const file of stdout.split('\n').filter((name) => name !== '' && existsSync(join(here, name)))) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(here, file), join(clone, file));
  }
  if (install) return clone;
  // What `npm ci` would bring and build, as links: copying the names of all packages' files would take as long as a goal.
  const scripts = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  if (scripts.scripts['prepare'] === undefined) throw new Error('npm ci builds nothing any more');
  symlinkSync(join(here, 'node_modules'), join(clone, 'node_modules'));
  for (const built of ['console/web', 'docs', 'storage/embedded'].map((one) => `plugins/${one}/dist`))
    await git('cp', ['-al', join(here, built), join(clone, built)]);
  return clone;
}
