/**
 * `npm run mutants`: how many of 200 small mistakes in the product the nearest tests find; README.md says how.
 * `--count 200`, `--seed 1`, `--workers 2`, `--out DIR` (what is done is kept there, and not done again), `--compare FILE` (an earlier
 * result.json, whose mutants are run again wherever they are now), `--area NAME`, `--tests PATTERN` (these test files alone, and the
 * mutants that they execute), `--draw`: prints what would be run.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeInMemory } from '../runner/in-memory.ts';
import { type Drawn, draw, textOf } from './draw.ts';
import { inTurns } from './in-turns.ts';
import { type Plain, plainRuns } from './plain.ts';
import { compared, lineOf, type Outcome, type Result, tableOf, textOfComparison } from './report.ts';
import { Suites } from './suites.ts';
import { runSuites } from './suites-process.ts';

const root = join(import.meta.dirname, '../..');
process.chdir(root);
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
    out: { type: 'string' },
    area: { type: 'string' },
    tests: { type: 'string' },
    compare: { type: 'string' },
    draw: { type: 'boolean', default: false },
  },
});

/** A test that takes ten times as long waits for what does not come. What it loads and a busy machine take the rest. */
const timesLonger = 10;
const loadMs = 30_000;

const earlier = values.compare === undefined ? undefined : read<Result>(values.compare);
// Text of the tree, so that what is kept belongs to it alone.
const out =
  values.out ?? join('node_modules/.cache/mutants', digestOfTree(), values.tests?.replaceAll(/\W+/g, '-') ?? '');
mkdirSync(out, { recursive: true });
const drawn = drawnOnce().filter(({ area }) => values.area === undefined || area === values.area);
if (values.draw) {
  for (const { area, file, line, operator, original, changed } of drawn) {
    console.log(`${area} ${file}:${line} [${operator}]\n    ${original}\n  → ${changed}`);
  }
} else {
  await runAll();
}

async function runAll(): Promise<void> {
  writeInMemory();
  const workers = Number(values.workers);
  const plain = await plainRuns(out, workers, values.tests);
  const suites = new Suites(plain);
  const path = join(out, 'outcomes.jsonl');
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  const known = new Map(lines.map((line) => JSON.parse(line) as Outcome).map((one) => [one.id, one]));
  const equivalent = new Map(
    read<{ id: string; reason: string }[]>(join(import.meta.dirname, 'equivalent.json')).map((one) => [one.id, one]),
  );
  // Some test files say nothing about a mutant that none of them executes.
  const asked = values.tests === undefined ? drawn : drawn.filter((mutant) => suites.of(mutant).length > 0);
  const todo = asked.filter(({ id }) => !known.has(id));
  await inTurns(todo, workers, async (mutant) => {
    const outcome = await outcomeOf(mutant, suites.of(mutant), plain);
    known.set(mutant.id, outcome);
    appendFileSync(path, `${JSON.stringify(outcome)}\n`);
    if (outcome.result === 'alive') console.log(lineOf(outcome));
  });
  const mutants = asked.map(({ id }) => {
    const outcome = known.get(id)!;
    const reason = equivalent.get(id)?.reason;
    return outcome.result === 'alive' && reason !== undefined
      ? { ...outcome, result: 'equivalent' as const, reason }
      : outcome;
  });
  finish({ commit: commit(), seed: values.seed, mutants });
}

function finish(result: Result): void {
  writeFileSync(join(out, 'result.json'), `${JSON.stringify(result, undefined, 1)}\n`);
  for (const outcome of result.mutants) console.log(lineOf(outcome));
  console.log(`\n${tableOf(result.mutants)}\n\n${join(out, 'result.json')}`);
  if (earlier === undefined) return;
  const comparison = compared(earlier.mutants, result.mutants);
  console.log(`\n${textOfComparison(comparison)}`);
  if (comparison.lost.length > 0) process.exitCode = 1;
}

async function outcomeOf(mutant: Drawn, files: readonly string[], plain: ReadonlyMap<string, Plain>): Promise<Outcome> {
  if (files.length === 0) return { ...mutant, result: 'alive', suites: 0, ms: 0 };
  const begin = performance.now();
  const { failure } = await runSuites({
    suites: files.map((file) => ({ file, limitMs: timesLonger * plain.get(file)!.ms + loadMs })),
    mutant: { file: mutant.file, text: textOf(root, mutant) },
  });
  return {
    ...mutant,
    result: failure === undefined ? 'alive' : 'killed',
    ...(failure !== undefined && { by: failure }),
    suites: files.length,
    ms: Math.round(performance.now() - begin),
  };
}

/** Kept beside what comes of it: the same state of the tree and the same request draw the same ones. */
function drawnOnce(): Drawn[] {
  const request = { root, seed: values.seed, count: Number(values.count), earlier: earlier?.mutants ?? [] };
  const key = createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 12);
  const path = join(out, `drawn-${key}.json`);
  if (existsSync(path)) return read<Drawn[]>(path);
  const mutants = draw(request);
  writeFileSync(path, JSON.stringify(mutants));
  return mutants;
}

function digestOfTree(): string {
  const files = globSync(['core/**/*.ts', 'plugins/**/*.{ts,sql}', 'tests/**/*.ts']);
  const digest = createHash('sha256');
  for (const file of files.filter((path) => !path.startsWith('tests/mutants/')).toSorted()) {
    digest.update(file).update(readFileSync(file));
  }
  return digest.digest('hex').slice(0, 12);
}

function commit(): string {
  return execFileSync('git', ['describe', '--always', '--dirty', '--abbrev=40'], { encoding: 'utf8' }).trim();
}

function read<Value>(path: string): Value {
  return JSON.parse(readFileSync(path, 'utf8')) as Value;
}
