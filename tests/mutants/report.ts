/** What is said of a run: a line for each mutant, a table by area, and what an earlier run killed that lives now. */
import { areas } from './areas.ts';
import type { Drawn } from './draw.ts';

export interface Outcome extends Drawn {
  readonly result: 'killed' | 'alive' | 'equivalent';
  /** The first test that failed. */
  readonly by?: { readonly file: string; readonly test: string };
  /** Test files that were run, or would have been; none: no test executes or imports it. */
  readonly suites: number;
  readonly ms: number;
  /** Why no test can see an equivalent one. */
  readonly reason?: string;
}

export interface Result {
  readonly commit: string;
  readonly seed: string;
  readonly mutants: readonly Outcome[];
}

export function lineOf({ result, area, file, line, operator, original, changed, by, suites }: Outcome): string {
  const end =
    by !== undefined
      ? `by ${by.file}: ${by.test}`
      : suites === 0
        ? 'no test executes or imports it'
        : `${suites} test files`;
  return `${result.padEnd(10)} ${area.padEnd(10)} ${file}:${line} [${operator}]\n    ${original}\n  → ${changed}\n    ${end}`;
}

export function tableOf(mutants: readonly Outcome[]): string {
  const head = ['area', 'made', 'killed', 'alive', 'equivalent', 'minutes'];
  const rows = [...areas.map(({ name }) => name), 'all'].map((name) => {
    const own = mutants.filter(({ area }) => name === 'all' || area === name);
    const count = (result: string) => own.filter((one) => one.result === result).length;
    const minutes = own.reduce((sum, { ms }) => sum + ms, 0) / 60_000;
    return [name, own.length, count('killed'), count('alive'), count('equivalent'), minutes.toFixed(1)];
  });
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

export interface Comparison {
  /** Killed before, alive now. */
  readonly lost: readonly Outcome[];
  /** Alive before, killed now. */
  readonly won: readonly Outcome[];
  /** Code that is no longer there, or is other code now. */
  readonly gone: readonly Outcome[];
}

export function compared(before: readonly Outcome[], now: readonly Outcome[]): Comparison {
  const byId = new Map(now.flatMap((one) => [[one.looseId, one] as const, [one.id, one] as const]));
  const pairs = before.map((earlier) => ({ earlier, later: byId.get(earlier.id) ?? byId.get(earlier.looseId) }));
  const later = (from: Outcome['result'], to: Outcome['result']) =>
    pairs.filter((pair) => pair.earlier.result === from && pair.later?.result === to).map((pair) => pair.later!);
  return {
    lost: later('killed', 'alive'),
    won: later('alive', 'killed'),
    gone: pairs.filter((pair) => pair.later === undefined).map((pair) => pair.earlier),
  };
}

export function textOfComparison({ lost, won, gone }: Comparison): string {
  const killedOfGone = gone.filter(({ result }) => result === 'killed').length;
  return [
    `killed before, alive now: ${lost.length}`,
    ...lost.map(lineOf),
    `alive before, killed now: ${won.length}`,
    `no longer there: ${gone.length} (${killedOfGone} had been killed)`,
  ].join('\n');
}
