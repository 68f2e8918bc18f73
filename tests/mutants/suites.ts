/** Which test files run for a mutant: those that execute what it changes, the nearest first. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { importsOf } from '../runner/imports.ts';
import type { Mutant } from './candidates.ts';
import { isExecuted } from './executed.ts';
import type { Plain } from './plain.ts';

/** What files that are not near may take together without a mutant. */
const longestMs = 60_000;
/** So many imports away is near. */
const nearImports = 2;

export class Suites {
  readonly #plain: ReadonlyMap<string, Plain>;
  readonly #imports = new Map<string, readonly string[]>();
  readonly #distances = new Map<string, ReadonlyMap<string, number>>();

  constructor(plain: ReadonlyMap<string, Plain>) {
    this.#plain = plain;
  }

  /** Where no test executes it, processes that tests start may: the nearest importers. Empty: there are none. */
  of(mutant: Mutant): string[] {
    const passed = [...this.#plain].filter(([, plain]) => plain.passed);
    const executing = passed.filter(([file, { executed }]) => this.#reaches(file, executed, mutant));
    const chosen =
      executing.length > 0 ? executing : passed.filter(([file]) => this.#distance(file, mutant.file) <= nearImports);
    const ordered = chosen
      .map(([file, { ms }]) => ({ file, ms, isNear: this.#isNear(file, mutant.file) }))
      .toSorted((left, right) => Number(right.isNear) - Number(left.isNear) || left.ms - right.ms);
    let sum = 0;
    return ordered
      .filter(({ ms, isNear }) => {
        if (!isNear) sum += ms;
        return sum <= longestMs;
      })
      .map(({ file }) => file);
  }

  /** What is outside of functions is executed for the first test file of a process alone, and used by all that use the file. */
  #reaches(file: string, executed: Plain['executed'], mutant: Mutant): boolean {
    const own = executed[mutant.file];
    if (mutant.owner !== '') return isExecuted(own, mutant.start);
    return (own !== undefined && own.length > 0) || this.#distance(file, mutant.file) <= nearImports;
  }

  #isNear(test: string, file: string): boolean {
    const folder = file.startsWith('plugins/')
      ? `tests/${dirname(file).split('/').slice(0, 2).join('/')}/`
      : 'tests/core/';
    return test.startsWith(folder) || this.#distance(test, file) <= nearImports;
  }

  #distance(from: string, to: string): number {
    let distances = this.#distances.get(from);
    if (distances === undefined) {
      distances = this.#distancesFrom(from);
      this.#distances.set(from, distances);
    }
    return distances.get(to) ?? Number.POSITIVE_INFINITY;
  }

  #distancesFrom(start: string): ReadonlyMap<string, number> {
    const distances = new Map([[start, 0]]);
    for (const [file, distance] of distances) {
      if (distance >= nearImports) continue;
      for (const imported of this.#importsOf(file)) if (!distances.has(imported)) distances.set(imported, distance + 1);
    }
    return distances;
  }

  #importsOf(file: string): readonly string[] {
    let imports = this.#imports.get(file);
    if (imports === undefined) {
      imports = importsOf(file).flatMap(({ to, relative }) => (relative && existsSync(to) ? [to] : []));
      this.#imports.set(file, imports);
    }
    return imports;
  }
}
