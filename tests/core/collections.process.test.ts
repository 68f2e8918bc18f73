/** A process that serves has few full collections for what it receives. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const loading = new URL('../../core/process/loading.ts', import.meta.url).href;

// A heap of 50 MB, as the gateway's, and 2 GB of chunks of which 48 MB live at once.
const receive = `
  globalThis.heap = Array.from({ length: 900_000 }, (_, index) => ({ index }));
  let chunks = [];
  for (let chunk = 0; chunk < 60_000; chunk++) {
    chunks.push(new Uint8Array(32 * 1024));
    if (chunks.length > 1_500) chunks = [];
    if (chunk % 16 === 0) await new Promise(setImmediate);
  }`;

/** Full collections of four processes that run this code one after the other, as V8 prints them: each run has another number. */
async function fullCollections(code: string): Promise<number> {
  let count = 0;
  for (let times = 0; times < 4; times++) {
    const { stdout, stderr } = await run(process.execPath, ['--trace-gc', '--input-type=module', '--eval', code], {
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    assert.equal(stderr, '', 'this version of V8 knows the flags');
    count += stdout.split('\n').filter((line) => line.includes('Mark-Compact')).length;
  }
  return count;
}

test('bytes outside the heap cause few full collections', async () => {
  const tuned = `(await import('${loading}')).collectLessOften();`;
  const [before, after] = await Promise.all([fullCollections(receive), fullCollections(tuned + receive)]);
  assert(after < before * 0.7, `${after} instead of ${before}`);
});
