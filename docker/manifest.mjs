/**
 * The package.json of the npm package: that of the repository without what only development needs, such as scripts. `npm pack` takes the file as
 * it stands, so `prepack` strips it and `postpack` puts it back; if npm is killed between them, `git checkout package.json` does.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [file, kept] = ['package.json', 'package.whole.json'];
const ofDevelopment = ['scripts', 'devDependencies', 'allowScripts'];

const [verb, destination] = process.argv.slice(2);
if (verb === 'strip') {
  const whole = readFileSync(file, 'utf8');
  writeFileSync(kept, whole);
  writeFileSync(file, stripped(whole));
} else if (verb === 'restore') renameSync(kept, file);
else packCopy();

/** Packs what `npm run build` has made, from a copy: others may read the repository meanwhile. */
function packCopy() {
  const copy = mkdtempSync(join(tmpdir(), 'package-'));
  const whole = readFileSync(file, 'utf8');
  writeFileSync(join(copy, file), stripped(whole));
  for (const name of [...JSON.parse(whole).files, 'README.md', 'LICENSE'].filter((one) => existsSync(one)))
    cpSync(name, join(copy, name), { recursive: true });
  const words = ['pack', copy, '--json', '--ignore-scripts', '--pack-destination', resolve(destination)];
  execFileSync('npm', words, { stdio: ['ignore', 'inherit', 'ignore'] });
  rmSync(copy, { recursive: true });
}

function stripped(whole) {
  const entries = Object.entries(JSON.parse(whole)).filter(([name]) => !ofDevelopment.includes(name));
  return `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`;
}
