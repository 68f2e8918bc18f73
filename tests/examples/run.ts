/** Runs the examples from the packed package on several versions of plain Node, which it fetches: `npm run test:examples -- 22 24 26`. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyExamples, installPacked } from './packed.ts';

const home = mkdtempSync(join(tmpdir(), 'examples-'));
const versions = process.argv.slice(2);
try {
  await installPacked(home);
  const files = copyExamples(home);
  for (const version of versions) {
    const folder = join(home, `node-${version}`);
    mkdirSync(folder);
    execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, `node@${version}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const node = join(folder, 'node_modules/node/bin/node');
    console.log(execFileSync(node, ['--version']).toString().trim());
    execFileSync(node, ['--test', ...files], { cwd: home, stdio: 'inherit', env: { PATH: process.env['PATH'] } });
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
