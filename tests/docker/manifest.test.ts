/** The package.json of the npm package, and the one of the repository, which packing reads only. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

test('a package has a package.json without scripts, and packing writes nothing where the repository is', () => {
  const folder = temporaryDirectory('manifest-');
  const file = join(folder, 'package.json');
  const { scripts, ...whole } = JSON.parse(readFileSync('package.json', 'utf8'));
  const inFolder = (script: string) =>
    script
      .split(' && ')
      .at(-1)!
      .replace('docker/', `${resolve('docker')}/`);
  const text = JSON.stringify({ ...whole, scripts: { prepack: inFolder(scripts.prepack) } });
  writeFileSync(file, text);
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/bin.js'), '');
  const { mtimeNs: writtenAt } = statSync(file, { bigint: true });

  const refused = spawnSync('npm', ['pack'], { cwd: folder, encoding: 'utf8' });
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr, /`npm run package -- \[DIRECTORY\]` makes the package/);

  mkdirSync(join(folder, 'made'));
  const [program, ...words] = inFolder(scripts.package).split(' ');
  const name = execFileSync(program!, [...words, 'made'], { cwd: folder, encoding: 'utf8' }).trim();
  assert.equal(name, `${whole.name}-${whole.version}.tgz`);
  const packed = execFileSync('tar', ['-xzOf', join('made', name), 'package/package.json'], { cwd: folder });
  const { devDependencies: _tools, allowScripts: _allowed, ...installed } = whole;
  assert.deepEqual(JSON.parse(packed.toString()), installed);
  assert.equal(readFileSync(file, 'utf8'), text);
  assert.equal(statSync(file, { bigint: true }).mtimeNs, writtenAt);
});
