/** Runs subjects in processes of their own and gives what they cost. */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { median } from '../measure.ts';
import type { Counts, Entered, What } from './measure.ts';
import { type SubjectName, subjects } from './subjects.ts';

/** No collection of the young generation within a window. */
const roomy = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256'];
/** Optimized code allocates less, but when V8 optimizes what is up to chance: without it, counts are the same in each run. */
const unoptimized = [...roomy, '--no-opt', '--no-maglev'];

/** Bytes and promises, which are the same on any machine under any load: the least of four windows. */
export async function countsOf(name: SubjectName): Promise<Counts> {
  const found = await run<Counts>(name, unoptimized, 640, 4, 'counts');
  const least = (of: keyof Counts) => Math.min(...found.map((counts) => counts[of]));
  return { bytes: least('bytes'), promises: least('promises') };
}

/** Microseconds of processor with optimized code, after `warmUp` answers or chunks: what else happens on the machine only adds. */
async function timeOf(name: SubjectName, warmUp: number): Promise<number> {
  return Math.min(...(await run<number>(name, roomy, warmUp, 20, 'time')));
}

/** Bytes of an answered request that survive collections of the young generation. */
export async function survivorsOf(name: SubjectName): Promise<number> {
  return median(await run<number>(name, unoptimized, 640, 3, 'survivors'));
}

/** The functions of `core` and `plugins` that each request enters. */
export async function functionsOf(name: SubjectName): Promise<readonly Entered[]> {
  return (await run<Entered[]>(name, unoptimized, 64, 1, 'functions'))[0]!;
}

/** What each window gave. */
function run<T>(
  name: SubjectName,
  flags: readonly string[],
  warmUp: number,
  windows: number,
  what: What,
): Promise<T[]> {
  const child = fork(join(import.meta.dirname, 'measure.ts'), [name, String(warmUp), String(windows), what], {
    execArgv: [...process.execArgv.filter((flag) => !flag.startsWith('--test')), ...flags],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as T[]));
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
  });
}

/** `npm run bench` prints it: a line for each subject. */
export async function reportFootprints(warmUp: number, names = Object.keys(subjects) as SubjectName[]): Promise<void> {
  console.log(
    '\nIn process, without sockets: processor time of the serving thread; bytes and promises of unoptimized code',
  );
  for (const name of names) {
    const { bytes, promises } = await countsOf(name);
    const microseconds = await timeOf(name, warmUp);
    console.log(
      `  ${name.padEnd(22)} ${microseconds.toFixed(1).padStart(6)} µs ${Math.round(bytes).toString().padStart(8)} bytes ${promises.toFixed(1).padStart(6)} promises`,
    );
  }
}
