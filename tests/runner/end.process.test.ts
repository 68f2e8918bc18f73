/** A run of tests ends, and reports all of it, whatever a test leaves behind. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const directory = temporaryDirectory('end-');

/** Runs a test file of this text as `npm test` would, with short patience. */
async function run(text: string): Promise<{ code: number; output: string; errors: string }> {
  const file = join(directory, `left-${Math.random().toString(36).slice(2)}.test.mjs`);
  writeFileSync(file, `import { after, test } from 'node:test';\n${text}`);
  const start = new URL('./quick-start.ts', import.meta.url).href;
  const flags = [`--import=${start}`, '--test', '--test-timeout=5000', '--test-reporter=tap', file];
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  return await new Promise((resolve) => {
    const options = { env: { ...environment, TEST_END_GRACE_MS: '10000' }, timeout: 100_000, maxBuffer: 2 ** 26 };
    execFile(process.execPath, flags, options, (error, output, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output, errors });
    });
  });
}

test('a test that is cut, with a server, timers, a process and a directory of its own: the run ends, lists open handles, and fails', async () => {
  const { code, output, errors } = await run(`
    import { spawn } from 'node:child_process';
    import { createServer } from 'node:net';
    import { temporaryDirectory } from '${new URL('../helpers/temporary-directory.ts', import.meta.url).href}';
    test('cut', async () => {
      spawn('sleep', ['600'], { stdio: 'inherit' });
      createServer().listen(0);
      process.stderr.write('[' + temporaryDirectory() + ']');
      setInterval(() => {}, 1000);
      globalThis.setTimeout = () => ({ unref() {} });
      await new Promise(() => {});
    });
    test('behind it', () => {});
    after(() => process.stderr.write('closed in the hook'));`);
  assert.equal(code, 1);
  assert.match(output, /timed out after 5000ms/);
  assert.match(output, /# pass 1\n/);
  assert.match(output, /# cancelled 1\n/);
  assert.match(output + errors, /closed in the hook/);
  assert.match(output + errors, /something is still open: .*TCPServerWrap/);
  const [, left] = /\[(\/\S*)\]/.exec(output + errors) ?? assert.fail('no directory was named');
  assert.equal(existsSync(left!), false);
});

test('a run that is ended from outside ends the processes that its files have started', async () => {
  const reported = join(directory, 'pid');
  await run(`
    import { spawn } from 'node:child_process';
    import { writeFileSync } from 'node:fs';
    test('busy', async () => {
      const { pid } = spawn('sleep', ['600'], { stdio: 'ignore', detached: true });
      writeFileSync(${JSON.stringify(reported)}, String(pid));
      process.kill(process.ppid, 'SIGTERM');
      await new Promise(() => {});
    });`);
  const pid = readFileSync(reported, 'utf8');
  // The runner does not wait for the file.
  while (isRunning(Number(pid))) await new Promise((resolve) => setTimeout(resolve, 20));
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('tests that pass and leave a timer: no line of the report is lost, and the run succeeds', async () => {
  const { code, output } = await run(`
    for (let index = 0; index < 400; index++) test('passes ' + index + 'x'.repeat(400), () => {});
    test('leaves a timer', () => void setInterval(() => {}, 1000));`);
  assert.match(output, /# pass 401\n/);
  assert.equal(output.match(/ok \d+ - passes/g)?.length, 400);
  assert.equal(code, 0);
});

test('a slow hook is awaited', async () => {
  const { code, output, errors } = await run(`
    test('passes', () => {});
    after(() => new Promise((resolve) => setTimeout(() => { process.stderr.write('hook done'); resolve(); }, 700)));`);
  assert.equal(code, 0);
  assert.match(output + errors, /hook done/);
});

test('a vendor that still delays the head of an answer that was given up: it keeps nothing open when it is stopped', async () => {
  const { code, output, errors } = await run(`
    import { startVendor } from '${new URL('../helpers/vendor.ts', import.meta.url).href}';
    test('gives up', async () => {
      const vendor = await startVendor();
      vendor.play({ headDelayMs: 600_000 });
      await fetch(vendor.origin, { signal: AbortSignal.timeout(50) }).catch(() => {});
      await vendor.stop();
    });`);
  assert.equal(code, 0);
  assert.match(output, /# pass 1\n/);
  assert.doesNotMatch(output + errors, /something is still open/);
});
