/** The embedded database of a gateway that somebody has started with less priority than it takes by itself, without the right to more. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

/** Root may always; without this capability it is like anybody else. */
const withoutRight = ['setpriv', '--bounding-set=-sys_nice', '--inh-caps=-sys_nice'];
const isLinux = process.platform === 'linux';

test('an embedded database opens with lower priority than it sets and without the right to raise it', {
  skip: !isLinux && 'needs setpriv, which Linux has',
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nice-'));
  const file = join(directory, 'gateway.yaml');
  await writeFile(file, 'gateway: nice\nplugins: [storage]\n');
  const [command, ...words] = [
    ...(process.getuid?.() === 0 ? withoutRight : []),
    ...['nice', '-n', '10', process.execPath, 'core/process/main.ts', 'migrate', '--config', file],
  ];
  const environment = { ...process.env, DATA_DIR: directory, DATABASE_URL: '' };
  try {
    const { stdout } = await promisify(execFile)(command!, words, { env: environment, timeout: 240_000 });
    assert.match(stdout, /storage/);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
