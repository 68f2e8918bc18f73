/**
 * Runs the test files that match the given paths and patterns, and ends on node's summary, with 1 when a test failed.
 * Files share a few processes: loading and compiling the same modules again for each takes a third of a run.
 * `--workers N`: processes at a time (5). `--minutes N`: the longest that a file may take (5). `--times N`: prints the processor time
 * of the N files that take most.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { writeInMemory } from './in-memory.ts';
import { makeQueue } from './queue.ts';
import { printTimes } from './times.ts';

/** Files that change or count what all of a process share have a process of their own: variables, prototypes, threads. */
const alone = /\.process\.test\.ts$/;
/** What takes long begins first, so that no process works alone in the end. */
const long = [
  /^tests\/(?:simulation|translate|plugins\/(?:batches|clouds))\//,
  /^tests\/end-to-end\/[^.]+\.test\./,
  /^tests\/browser\/(?:known-set|languages|money-truth|operator-(?:forms|pages|traffic)|pictures)\./,
  /(?:workers|fleet-outages|nodes|kill|command-line|alt|footprint|package|google-batches|telemetry|-sums)\./,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    workers: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '5' },
    times: { type: 'string' },
  },
});
const files = [...new Set(positionals.flatMap((pattern) => globSync(pattern)))]
  .toSorted()
  .toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)));
if (files.length === 0) throw new Error(`no file matches ${positionals.join(' ')}`);
const workers = Number(values.workers);

writeInMemory();
const processes = makeQueue({
  shared: files.filter((file) => !alone.test(file)),
  alone: files.filter((file) => alone.test(file)),
  workers,
  timeoutMs: Number(values.minutes) * 60_000,
});
const { TEST_QUEUE: directory } = process.env;
if (values.times !== undefined) process.env['TEST_TIMES'] = directory;
run({
  files: Array<string>(processes).fill(join(import.meta.dirname, 'worker.ts')),
  concurrency: workers,
  // As in the embedded database's own process, and as a gateway is started.
  execArgv: ['--no-wasm-inlining', '--max-semi-space-size=64'],
  // Its files have their own time.
  timeout: Number.POSITIVE_INFINITY,
})
  .on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) process.exitCode = 1;
  })
  .compose(spec)
  .on('end', () => {
    if (values.times !== undefined) printTimes(directory!, Number(values.times));
  })
  .pipe(process.stdout);

function isLong(file: string): boolean {
  return long.some((pattern) => pattern.test(file));
}
