/** The test files that are nearest to changed files: by imports, by folder, and the suites that guard a folder. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { filesIn, importsOf } from './imports.ts';

/** What guards a folder beside the tests in the folder of its name, such as `tests/plugins/auth/` of `plugins/auth/`. */
export const guards: readonly { readonly folders: readonly string[]; readonly suites: readonly string[] }[] = [
  { folders: ['core/', 'plugins/'], suites: ['tests/architecture.test.ts'] },
  { folders: ['core/contract/', 'plugins/common/author/'], suites: ['tests/examples/*/', 'tests/readme.test.ts'] },
  { folders: ['core/gateway/'], suites: ['tests/core/{config,config-files,reload,wiring}.test.ts'] },
  {
    folders: [
      'plugins/common/canonical/',
      'plugins/common/encoding/',
      'plugins/common/wire/',
      'plugins/protocol-convert/',
    ],
    suites: ['tests/matrix/', 'tests/pitfalls/', 'tests/relay/', 'tests/translate/'],
  },
  {
    folders: ['plugins/billing/', 'plugins/common/domain/money.ts', 'plugins/multiplier/', 'plugins/plans/'],
    suites: ['tests/end-to-end/{money,money-together,prices}.test.ts', 'tests/simulation/'],
  },
  { folders: ['plugins/route/'], suites: ['tests/end-to-end/{failover,hedge,instead,outcome-table}.test.ts'] },
  { folders: ['plugins/common/media/', 'plugins/task-store/'], suites: ['tests/end-to-end/task-*.test.ts'] },
  {
    folders: ['plugins/websockets/'],
    suites: ['tests/end-to-end/{realtime,responses-websocket,upstream-websocket,websocket-limits}.test.ts'],
  },
  { folders: ['plugins/console/'], suites: ['tests/browser/'] },
  { folders: ['plugins/docs/'], suites: ['tests/docs/'] },
  { folders: ['config/', 'package.json'], suites: ['tests/readme.test.ts', 'tests/runner/'] },
];

/** These need minutes, processes of their own or a browser: they are named, and run where one asks for them. */
const slow = /\.(?:process|history)\.test\.ts$|^tests\/(?:browser|simulation)\//;

/** Tests of one changed file: below `few` that import it the folder's others run too; beyond `many` the others say little more. */
const most = { quick: { few: 3, many: 12 }, slow: { few: 1, many: 3 } };

export interface Nearest {
  readonly quick: readonly string[];
  readonly slow: readonly string[];
}

let graphOfTree: ImportGraph | undefined;
const graphOfAll = () =>
  (graphOfTree ??= new ImportGraph(filesIn('core', 'plugins', 'tests').filter((file) => /\.tsx?$/.test(file))));

export function nearestTests(changed: readonly string[]): Nearest {
  const graph = graphOfAll();
  const found = new Set(changed.flatMap((file) => [...graph.nearestTo(file), ...guardsOf(file)]));
  const files = [...found].filter((file) => existsSync(file)).toSorted();
  return { quick: files.filter((file) => !slow.test(file)), slow: files.filter((file) => slow.test(file)) };
}

function guardsOf(file: string): string[] {
  if (file.endsWith('.md')) return [];
  return guards
    .filter(({ folders }) => folders.some((folder) => file.startsWith(folder)))
    .flatMap(({ suites }) => suites.flatMap(testsOf));
}

/** The test files of a suite: of a folder those that lie in it. */
export const testsOf = (suite: string): string[] => globSync(suite.endsWith('/') ? `${suite}*.test.ts` : suite);

class ImportGraph {
  readonly #importers = new Map<string, string[]>();
  readonly #tests: readonly string[];

  constructor(files: readonly string[]) {
    this.#tests = files.filter(isTest);
    for (const from of files.filter((file) => existsSync(file))) {
      const targets = new Set(importsOf(from).flatMap(({ to, relative }) => (relative ? [to] : [])));
      for (const to of targets) this.#importers.set(to, [...(this.#importers.get(to) ?? []), from]);
    }
  }

  nearestTo(file: string): string[] {
    if (isTest(file)) return [file];
    if (file.endsWith('.md')) return ['tests/readme.test.ts'];
    const named = /\.tsx?$/.test(file) ? [] : this.#thatName(file);
    const inFolder = this.#inFolderOf(file);
    const byLikeness = (tests: readonly string[]) =>
      tests.toSorted((one, other) => likeness(other, file) - likeness(one, file));
    const take = (isWanted: (test: string) => boolean, { few, many }: { few: number; many: number }) => {
      const direct = new Set([...named.filter(isWanted), ...this.#firstToImport(file, isWanted)]);
      const others = direct.size < few ? inFolder.filter((test) => isWanted(test) && !direct.has(test)) : [];
      return [...byLikeness([...direct]), ...byLikeness(others)].slice(0, many);
    };
    return [...take((test) => !slow.test(test), most.quick), ...take((test) => slow.test(test), most.slow)];
  }

  /** Tests that reach the file by the fewest imports. */
  #firstToImport(file: string, isWanted: (test: string) => boolean): string[] {
    const seen = new Set([file]);
    for (let reached = [file]; reached.length > 0; ) {
      reached = [...new Set(reached.flatMap((one) => this.#importers.get(one) ?? []))].filter((one) => !seen.has(one));
      for (const one of reached) seen.add(one);
      const tests = reached.filter((one) => isTest(one) && isWanted(one));
      if (tests.length > 0) return tests;
    }
    return [];
  }

  /** Finds tests that name a file without imports, such as SQL and YAML, unless others have its name too. */
  #thatName(file: string): string[] {
    if (globSync(`{core,plugins,config,docker}/**/${basename(file)}`).length > 1) return [];
    return this.#tests.filter((test) => existsSync(test) && readFileSync(test, 'utf8').includes(basename(file)));
  }

  /** The tests in the innermost folder that is called like one of the file's own, such as `tests/plugins/auth/`. */
  #inFolderOf(file: string): string[] {
    for (let folder = dirname(file); folder.includes('/') || folder === 'core'; folder = dirname(folder)) {
      const tests = this.#tests.filter((test) => test.startsWith(`tests/${folder}/`));
      if (tests.length > 0) return tests;
    }
    return [];
  }
}

/** How much a test is called like a file: the same name counts most, then each folder or word that both have. */
function likeness(test: string, file: string): number {
  const words = new Set(file.split(/[/.-]/));
  const shared = test.split(/[/.-]/).filter((word) => words.has(word) && word !== 'ts');
  const name = basename(file).replace(/\.\w+$/, '');
  return shared.length + (basename(test).startsWith(`${name}.`) ? 100 : 0);
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts');
}
