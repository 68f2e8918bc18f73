/** A data directory that cannot be written: the start ends with one sentence that names it and what to do. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { unwritableSentence } from '../../core/contract/unwritable.ts';

test('each way in which a path cannot be written is a sentence; other errors are none', () => {
  const error = (code: string, path?: string) => Object.assign(new Error('raw'), { code, ...(path ? { path } : {}) });
  for (const [code, reason] of [
    ['EROFS', 'its file system is read-only'],
    ['EACCES', 'permission is denied'],
    ['ENOSPC', 'the disk is full'],
  ] as const)
    assert.equal(
      unwritableSentence(error(code, '/data/journal')),
      `/data/journal cannot be written: ${reason}. Make it writable, or set "data" in the file (DATA_DIR) to another directory.`,
    );
  assert.equal(unwritableSentence(error('EACCES')), undefined);
  assert.equal(unwritableSentence(error('ENOENT', '/data')), undefined);
  assert.equal(unwritableSentence(undefined), undefined);
});

/** Root may write where it is not allowed to: then the gateway runs as another user. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const canRun = spawnSync(process.execPath, ['core/gateway/system.ts'], user).status === 0;

if (canRun)
  test('a start on a read-only directory ends with that sentence and exit code 1', async () => {
    const root = mkdtempSync(join(tmpdir(), 'unwritable-'));
    chmodSync(root, 0o755);
    const data = join(root, 'data');
    const file = join(root, 'gateway.yaml');
    writeFileSync(file, `gateway: t\nlisten: 127.0.0.1:0\ndata: ${data}\nplugins: [storage]\n`);
    chmodSync(root, 0o555);
    try {
      const child = spawn(process.execPath, ['core/process/main.ts', 'serve', file], {
        ...user,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let words = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        words += text;
      });
      const code = await new Promise((resolve) => child.on('close', resolve));
      assert.equal(code, 1, words);
      assert.match(
        words,
        /unwritable-\w+\/data cannot be written: permission is denied\. Make it writable, or set "data"/,
      );
      assert.doesNotMatch(words, /\n\s+at |"stack"/);
    } finally {
      chmodSync(root, 0o755);
      rmSync(root, { recursive: true, force: true });
    }
  });
