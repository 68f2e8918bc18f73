/** What each test file takes and executes without a mutant: run once for a state of the tree, and kept. */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Executed } from './executed.ts';
import { inTurns } from './in-turns.ts';
import { runSuites } from './suites-process.ts';

/** All of `npm test`, and what random histories and the simulation of money add to it. */
const patterns = [
  'tests/!(browser|mutants|runner)/**/!(*.process).test.ts',
  'tests/!(*.process|architecture|readme).test.ts',
];
/** Mutants of its own, and each seam beside a real database: what they find others find sooner. */
const left = /^tests\/simulation\/(?:mutants|[\w-]*conformance)\.|^tests\/plugins\/console\/web\//;
const filesOfProcess = 15;
const limitMs = 600_000;

export interface Plain {
  readonly ms: number;
  readonly passed: boolean;
  /** Executed blocks of each file of the product. */
  readonly executed: Readonly<Record<string, Executed>>;
}

/** `only`: a pattern of test files; undefined: all that say something of mutants. */
export async function plainRuns(
  directory: string,
  workers: number,
  only?: string,
): Promise<ReadonlyMap<string, Plain>> {
  const files = globSync(only ?? patterns)
    .filter((file) => !left.test(file))
    .toSorted();
  const kept = join(directory, 'plain');
  mkdirSync(kept, { recursive: true });
  const groups = Array.from({ length: Math.ceil(files.length / filesOfProcess) }, (_, index) =>
    files.slice(index * filesOfProcess, (index + 1) * filesOfProcess),
  );
  const plain = new Map<string, Plain>();
  let done = 0;
  await inTurns(groups, workers, async (group) => {
    for (const [file, one] of Object.entries(await plainOf(group, kept))) plain.set(file, one);
    done += 1;
    process.stderr.write(`\rwithout a mutant: ${done} of ${groups.length} groups of test files `);
  });
  process.stderr.write('\n');
  return plain;
}

async function plainOf(files: readonly string[], kept: string): Promise<Record<string, Plain>> {
  const name = createHash('sha256').update(files.join()).digest('hex').slice(0, 12);
  const path = join(kept, `${name}.json`);
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'));
  const coverage = join(kept, `${name}.executed`);
  const { ended } = await runSuites({ suites: files.map((file) => ({ file, limitMs })), coverage });
  const executed: Record<string, Plain['executed']> = existsSync(coverage)
    ? JSON.parse(readFileSync(coverage, 'utf8'))
    : {};
  const plain = Object.fromEntries(
    ended.map(({ file, ms, passed }) => [file, { ms, passed, executed: executed[file] ?? {} }]),
  );
  writeFileSync(path, JSON.stringify(plain));
  return plain;
}
