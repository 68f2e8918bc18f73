/**
 * `npm run soak -- --minutes 60 [--database URL] [--seed 1] [--rate 40] [--max-delay-ms 250]`: a gateway under mixed load at half of what it can
 * do, for so long. Prints errors, memory, descriptors and the event loop's delay once a minute, and in the end the ledger against
 * the vendor's bill. Exit 1 when a call ended as it must not, something grew, or the ledger does not agree.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { BillReport } from '../../plugins/sandbox/bill.ts';
import { Calls } from './calls.ts';
import { fileOf } from './file.ts';
import { compareLedger } from './ledger.ts';
import { Load } from './load.ts';
import { inMegabytes, leaks, type Sample, trendOf } from './samples.ts';
import { startShaky } from './shaky.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    database: { type: 'string', default: 'embedded' },
    seed: { type: 'string', default: '1' },
    /** Calls a second; without it half of what a few seconds at full speed show. */
    rate: { type: 'string' },
    'max-delay-ms': { type: 'string', default: '250' },
  },
});
const minutes = Number(values.minutes);
const sampleEveryMs = Math.min(10_000, (minutes * 60_000) / 30);
const directory = mkdtempSync(join(tmpdir(), 'soak-'));
const children: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const vendor = spawn(process.execPath, ['plugins/sandbox/main.ts'], { stdio: ['ignore', 'pipe', 'inherit'] });
children.push(vendor);
const vendorOrigin = String((await once(vendor.stdout!, 'data'))[0]).trim();
const file = join(directory, 'gateway.yaml');
const shaky = await startShaky(vendorOrigin, Number(values.seed));
writeFileSync(file, fileOf(vendorOrigin, shaky.origin, values.database, directory));
const gateway = fork(join(import.meta.dirname, 'gateway.ts'), [file], {
  execArgv: [...process.execArgv, '--expose-gc', '--max-semi-space-size=64'],
  stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
});
children.push(gateway);
gateway.once('exit', (code, signal) => {
  if (!stopping) fail(`the gateway ended with ${code ?? signal}`);
});
let stopping = false;
const [{ port, keys }] = (await once(gateway, 'message')) as [{ port: number; keys: string[] }];

const load = new Load(new Calls(`http://127.0.0.1:${port}`, keys, Number(values.seed)));
const startedAt = performance.now();
const rate =
  values.rate === undefined ? (await load.fullSpeed(Math.min(15_000, minutes * 6_000))) / 2 : Number(values.rate);
console.log(
  `seed ${values.seed}, ${rate.toFixed(1)} calls/s for ${minutes} minutes, on ${values.database === 'embedded' ? 'the embedded store' : 'PostgreSQL'}`,
);
load.start(rate);
const samples: Sample[] = [];
for (
  let next = performance.now() + sampleEveryMs, end = startedAt + minutes * 60_000;
  next < end;
  next += sampleEveryMs
) {
  await pause(Math.max(0, next - performance.now()));
  samples.push(await sample());
  if (samples.length % Math.max(1, Math.round(60_000 / sampleEveryMs)) === 0) printState();
}
await load.stop();
printState();
stopping = true;
gateway.send('stop');
await once(gateway, 'exit');
const bill = (await (await fetch(`${vendorOrigin}/bill`)).json()) as BillReport;
const isExact = (model: string) => !/-(?:left|faulty)$/.test(model);
const records = await compareLedger(file, bill, load.answered, isExact);
const grown = leaks(samples, Number(values['max-delay-ms']));
printTrends();
for (const line of records.account) console.log(`  ${line}`);
const violations = [...load.wrong, ...grown, ...records.violations];
for (const violation of violations) console.log(`  VIOLATION: ${violation}`);
console.log(
  `${load.calls} calls in ${((performance.now() - startedAt) / 60_000).toFixed(1)} minutes: ${violations.length === 0 ? '0 violations' : `${violations.length} violations`}`,
);
process.exit(violations.length === 0 ? 0 : 1);

async function sample(): Promise<Sample> {
  gateway.send('sample');
  return ((await once(gateway, 'message')) as [Sample])[0];
}

function printState(): void {
  const last = samples.at(-1);
  if (last === undefined) return;
  const { rss, heapUsed, descriptors, p99Ms, longestMs } = last;
  const at = ((performance.now() - startedAt) / 60_000).toFixed(1).padStart(5);
  console.log(
    `${at} min  ${load.calls} calls, ${load.wrongCount} wrong, ${load.inFlight} running, p50 ${load.percentileMs(0.5)} ms, p99 ${load.percentileMs(0.99)} ms; ` +
      `RSS ${inMegabytes(rss)}, heap ${inMegabytes(heapUsed)}, ${descriptors} descriptors, event loop p99 ${p99Ms.toFixed(1)} ms, at most ${longestMs.toFixed(0)} ms`,
  );
}

function printTrends(): void {
  const lines = [
    ['RSS', ({ rss }: Sample) => rss, inMegabytes],
    ['heap', ({ heapUsed }: Sample) => heapUsed, inMegabytes],
    ['descriptors', ({ descriptors }: Sample) => descriptors, String],
    ['event loop p99', ({ p99Ms }: Sample) => p99Ms, (value: number) => `${value.toFixed(1)} ms`],
  ] as const;
  for (const [name, read, format] of lines) {
    const { middle, end } = trendOf(samples.map(read));
    console.log(`  ${name}: ${format(middle)} in the second third, ${format(end)} in the last`);
  }
  for (const [kind, count] of load.counts) console.log(`  ${count} ${kind}`);
  const { none = 0, ...faults } = Object.fromEntries(shaky.counts);
  console.log(`  the shaky vendor passed ${none} requests on; else ${JSON.stringify(faults)}`);
}

function fail(sentence: string): never {
  console.log(`  VIOLATION: ${sentence}`);
  process.exit(1);
}
