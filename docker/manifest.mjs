/**
 * `npm run package -- [DIRECTORY]`: packs what `npm run build` has made, and prints the file's name. Its package.json is that of the repository
 * without what only development needs, such as scripts. `npm pack` would take the file as it stands, so the package is made of a copy:
 * others may read the repository meanwhile, and it is whole whenever this process ends.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const file = 'package.json';
const ofDevelopment = ['scripts', 'devDependencies', 'allowScripts'];

const [verb, destination = '.'] = process.argv.slice(2);
if (verb === 'pack') packCopy();
else {
  console.error(
    '`npm pack` would pack what only development needs: `npm run package -- [DIRECTORY]` makes the package.',
  );
  process.exitCode = 1;
}

function packCopy() {
  const copy = mkdtempSync(join(tmpdir(), 'package-'));
  const whole = JSON.parse(readFileSync(file, 'utf8'));
  const installed = Object.entries(whole).filter(([name]) => !ofDevelopment.includes(name));
  writeFileSync(join(copy, file), `${JSON.stringify(Object.fromEntries(installed), undefined, 2)}\n`);
  for (const name of [...whole.files, 'README.md', 'LICENSE'].filter((one) => existsSync(one)))
    cpSync(name, join(copy, name), { recursive: true });
  const words = ['pack', copy, '--silent', '--ignore-scripts', '--pack-destination', resolve(destination)];
  execFileSync('npm', words, { stdio: ['ignore', 'inherit', 'ignore'] });
  rmSync(copy, { recursive: true });
}
