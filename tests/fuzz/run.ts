/**
 * `npm run fuzz -- --runs 100000 [--target sse] [--seed 1] [--first 0] [--seconds 60]`: feeds the readers of outside bytes
 * with mutated input. Each target makes so many runs, or as many as fit into `--seconds`. Exit 1 when a case fails; the last
 * lines then show the shortest input and the command that runs the case again.
 */
import { parseArgs } from 'node:util';
import { type Failure, fuzz } from './fuzz.ts';
import { targets } from './targets/index.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    target: { type: 'string', multiple: true },
    seed: { type: 'string' },
    first: { type: 'string', default: '0' },
    seconds: { type: 'string' },
    /** Fails when a target made fewer runs than this in its time. */
    'at-least': { type: 'string', default: '1' },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const wanted = values.target ?? targets.map(({ name }) => name);
for (const name of wanted) {
  if (targets.some((target) => target.name === name)) continue;
  console.error(`there is no target "${name}"; there are ${targets.map((target) => target.name).join(', ')}`);
  process.exit(2);
}
let failed = 0;
for (const target of targets.filter(({ name }) => wanted.includes(name))) {
  const result = await fuzz(target, {
    seed,
    first: Number(values.first),
    runs: Number(values.runs),
    seconds: values.seconds === undefined ? undefined : Number(values.seconds),
  });
  const { runs, seconds, slowestMs, failure } = result;
  const rate = Math.round(runs / Math.max(seconds, 0.001));
  console.log(
    `${target.name.padEnd(16)} ${runs} runs, seed ${seed}, ${seconds.toFixed(1)} s, ${rate}/s, slowest ${slowestMs.toFixed(0)} ms: ${failure === undefined ? 'ok' : 'FAILED'}`,
  );
  if (failure !== undefined) printFailure(target.name, failure);
  else if (runs < Number(values['at-least'])) console.log(`  only ${runs} runs, ${values['at-least']} were wanted`);
  if (failure !== undefined || runs < Number(values['at-least'])) failed++;
}
process.exit(failed === 0 ? 0 : 1);

function printFailure(name: string, { index, error, input }: Failure): void {
  console.log(`  case ${index}: ${error.stack ?? error.message}`);
  console.log(`  input, ${input.length} bytes: ${JSON.stringify(input.toString('latin1').slice(0, 2_000))}`);
  console.log(`  again: npm run fuzz -- --target ${name} --seed ${seed} --first ${index} --runs 1`);
}
