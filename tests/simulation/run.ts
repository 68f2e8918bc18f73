/**
 * `npm run simulate -- --seeds 100`: simulated worlds, one after another, and what they came to. Exit 1 when an oracle found
 * a violation; the last lines then say how to see it again. Ended by a signal it says what the worlds so far came to.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { mutants, sound } from './mutants.ts';
import { type Result, simulate } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    first: { type: 'string', default: '1' },
    operations: { type: 'string', default: '20000' },
    seconds: { type: 'string' },
    mutant: { type: 'string' },
    kinds: { type: 'boolean', default: false },
  },
});
// Refusals are half of what happens here, and nothing reads where each was thrown.
Error.stackTraceLimit = 0;

const operationsEach = Number(values.operations);
const mutant = values.mutant === undefined ? sound : mutants[values.mutant];
if (mutant === undefined) {
  console.error(`there is no mutant "${values.mutant}"; there are ${Object.keys(mutants).join(', ')}`);
  process.exit(2);
}

const total = { worlds: 0, operations: 0, requests: 0, tasks: 0, crashes: 0, bridged: 0, rows: 0, bad: 0 };
const counts = new Map<string, number>();
const started = performance.now();
const secondsOf = () => (performance.now() - started) / 1_000;
const first = Number(values.first);
let isEnded = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    isEnded = true;
  });
for (let seed = first; seed < first + Number(values.seeds); seed += 1) {
  // Signals are seen between worlds.
  await turn();
  if (isEnded || (values.seconds !== undefined && secondsOf() > Number(values.seconds))) break;
  const result = await simulate(seed, operationsEach, mutant);
  add(result);
  if (result.violations.length > 0) print(result);
}
summarize();
process.exitCode = total.bad > 0 ? 1 : 0;

function add(result: Result): void {
  total.worlds += 1;
  total.operations += result.operations;
  total.requests += result.requests;
  total.tasks += result.tasks;
  total.crashes += result.crashes;
  total.bridged += result.bridged;
  total.rows += result.rows;
  for (const [kind, count] of result.counts) counts.set(kind, (counts.get(kind) ?? 0) + count);
}

function print({ seed, violations }: Result): void {
  total.bad += 1;
  for (const { rule, subject, what, atMs } of violations) {
    console.log(`seed ${seed}, ${atMs} ms: ${rule}: ${subject}: ${what}`);
  }
  const flags = [`--first ${seed} --seeds 1 --operations ${operationsEach}`];
  if (values.mutant !== undefined) flags.push(`--mutant ${values.mutant}`);
  console.log(`  again: npm run simulate -- ${flags.join(' ')}`);
}

function summarize(): void {
  const seconds = secondsOf();
  const { worlds, operations, requests, tasks, crashes, bridged, rows, bad } = total;
  const coreSeconds = process.cpuUsage().user / 1e6;
  const figure = (value: number) => Math.round(value).toLocaleString('en-US');
  console.log(
    `${figure(operations)} operations in ${figure(worlds)} worlds: ${figure(requests)} requests, ${figure(tasks)} tasks, ${figure(rows)} ledger rows, ` +
      `${figure(crashes)} crashes, ${figure(bridged)} served in outages; ${seconds.toFixed(1)} s, ${figure(operations / seconds)} operations/s ` +
      `(${figure(operations / coreSeconds)} for each second of a core)`,
  );
  if (values.kinds) {
    for (const [kind, count] of [...counts].sort((left, right) => right[1] - left[1])) {
      console.log(`  ${figure(count).padStart(12)} ${kind}`);
    }
  }
  console.log(bad === 0 ? '0 violations' : `violations in ${bad} worlds`);
}
