/**
 * `npm run test:guide [-- --only GOAL] [--install]`: follows the guide in a fresh clone, and does only what its pages say: files and
 * commands are taken from them. What a person supplies is replaced: keys, the vendor, and ports.
 * `--install`: packages by `npm ci`, as the first page says, and not from this checkout.
 */
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { goals } from './goals.ts';
import { Reader } from './reader.ts';

const { only, install = false } = parseArgs({
  options: { only: { type: 'string' }, install: { type: 'boolean' } },
}).values;
const chosen =
  only === undefined
    ? goals
    : goals.filter(({ name }) => name === only || goals.find((one) => one.name === only)?.after === name);
if (chosen.length === 0) throw new Error(`there is no goal "${only}": ${goals.map(({ name }) => name).join(', ')}`);

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
  // What `npm ci` would bring and build, as links.
  const scripts = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  if (scripts.scripts['prepare'] === undefined) throw new Error('npm ci builds nothing any more');
  for (const built of [
    'node_modules',
    ...['console/web', 'docs', 'storage/embedded'].map((one) => `plugins/${one}/dist`),
  ])
    await git('cp', ['-al', join(here, built), join(clone, built)]);
  return clone;
}
