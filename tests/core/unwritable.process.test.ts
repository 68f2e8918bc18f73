/** A data directory that cannot be written, is full or in use: a start and a command end with one sentence that says what to do. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { reportFatalError } from '../../core/process/fatal.ts';
import { unwritableSentence } from '../../core/tools/unwritable.ts';
import { useEmbedded } from '../../plugins/storage/embedded/keeper.ts';
import { lockDirectory } from '../../plugins/storage/embedded/lock.ts';
import { fakeHost } from '../helpers/fakes.ts';

test('each failure to write a path is a sentence; other errors are undefined', () => {
  const error = (code: string, path?: string) => Object.assign(new Error('raw'), { code, ...(path ? { path } : {}) });
  for (const [code, reason, remedy = 'Make it writable'] of [
    ['EROFS', 'its file system is read-only'],
    ['EACCES', 'permission is denied'],
    ['ENOSPC', 'the disk is full', 'Make room'],
    ['EDQUOT', 'the disk quota is used up', 'Make room'],
  ] as const)
    assert.equal(
      unwritableSentence(error(code, '/data/journal')),
      `/data/journal cannot be written: ${reason}. ${remedy}, or set "data" in the file (DATA_DIR) to another directory.`,
    );
  assert.match(
    unwritableSentence(error('ENOSPC'))!,
    /^A file in the data directory cannot be written: the disk is full\./,
  );
  const wrapped = new Error('the journal cannot be opened', { cause: error('EROFS', '/data/journal') });
  assert.match(unwritableSentence(wrapped)!, /^\/data\/journal cannot be written: its file system is read-only\./);
  assert.equal(unwritableSentence(error('EACCES')), undefined);
  assert.equal(unwritableSentence(error('ENOENT', '/data')), undefined);
  assert.equal(unwritableSentence(undefined), undefined);
});

test('an error that ends the command line is one sentence where an operator can fix it, and has its stack where it is a bug', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'fatal-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const lock = await lockDirectory(directory, 0);
  context.after(() => lock!.release());
  const held = await useEmbedded(directory, 'serve', fakeHost().log, 0).then(
    () => assert.fail('it must be refused'),
    (error: unknown) => error,
  );
  assert.match(
    reportFatalError(held),
    /^The embedded database in \/.*\/fatal-\w+ is in use by the gateway with process id \d+: stop that first, or give this one its own data directory or a DATABASE_URL\.$/,
  );
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
  assert.match(reportFatalError(full), /^A file in the data directory cannot be written: the disk is full\. [^\n]*$/);
  assert.match(reportFatalError(new TypeError('x is not a function')), /"stack"/);
});

/** How the command ends, and the sentence that it says: plainly, or of a process that was to serve in its log. */
async function run(words: readonly string[], options: object = {}) {
  const child = spawn(process.execPath, ['core/process/main.ts', ...words], {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, said: words[0] === 'serve' ? `${JSON.parse(said).msg}\n` : said };
}

function gatewayFile(root: string): string {
  const file = join(root, 'gateway.yaml');
  writeFileSync(file, `gateway: t\nlisten: 127.0.0.1:0\ndata: ${join(root, 'data')}\nplugins: [storage]\n`);
  return file;
}

if (existsSync('/dev/full'))
  test('a start and a command on a full disk end with that sentence and exit code 1', async (context) => {
    const root = mkdtempSync(join(tmpdir(), 'full-'));
    context.after(() => rmSync(root, { recursive: true, force: true }));
    const file = gatewayFile(root);
    mkdirSync(join(root, 'data'));
    for (const words of [
      ['serve', file],
      ['migrate', '--config', file],
    ]) {
      // What is written first is written to a device that is always full.
      symlinkSync('/dev/full', join(root, 'data', 'postgres.probe'));
      const { code, said } = await run(words);
      assert.equal(code, 1, said);
      assert.match(
        said,
        /^The embedded database failed: \S+\/full-\w+\/data cannot be written: the disk is full\. Make room, or set "data" in the file \(DATA_DIR\) to another directory\.\n$/,
      );
    }
  });

/** Root may write where it is not allowed to: then the gateway runs as another user. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const canRun = spawnSync(process.execPath, ['core/gateway/system.ts'], user).status === 0;

if (canRun)
  test('a start on a read-only directory ends with that sentence and exit code 1', async () => {
    const root = mkdtempSync(join(tmpdir(), 'unwritable-'));
    chmodSync(root, 0o755);
    const file = gatewayFile(root);
    chmodSync(root, 0o555);
    try {
      const { code, said: words } = await run(['serve', file], user);
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
