/** The package.json that `npm pack` takes, and the one that stands in the repository before and after it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

test('`npm pack` packs a package.json without scripts, and leaves the one of the repository as it was', () => {
  const folder = temporaryDirectory('manifest-');
  const { scripts, ...whole } = JSON.parse(readFileSync('package.json', 'utf8'));
  const script = (name: string) =>
    scripts[name]
      .split(' && ')
      .at(-1)!
      .replace('docker/', `${resolve('docker')}/`);
  const before = JSON.stringify({ ...whole, scripts: { prepack: script('prepack'), postpack: script('postpack') } });
  writeFileSync(join(folder, 'package.json'), before);
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/bin.js'), '');
  execFileSync('npm', ['pack', '--silent'], { cwd: folder, stdio: 'ignore' });
  assert.equal(readFileSync(join(folder, 'package.json'), 'utf8'), before);
  const packed = execFileSync('tar', ['-xzOf', `${whole.name}-${whole.version}.tgz`, 'package/package.json'], {
    cwd: folder,
  });
  const { devDependencies: _tools, allowScripts: _allowed, ...installed } = whole;
  assert.deepEqual(JSON.parse(packed.toString()), installed);
});
