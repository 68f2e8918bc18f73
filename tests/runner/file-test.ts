/**
 * Stands in for `node:test` in test files that share a process: tests and hooks are added to the test of the current file. Node's own
 * functions find that test by an async hook on every promise, which took a tenth of the suite's processor time.
 */
import type { TestContext } from 'node:test';

export { mock } from 'node:test';

type Here = Pick<TestContext, 'after' | 'afterEach' | 'before' | 'beforeEach' | 'test'>;

// Importers see each assignment, and call Node directly, so that Node reports their line.
export let test: Here['test'];
export let before: Here['before'];
export let after: Here['after'];
export let beforeEach: Here['beforeEach'];
export let afterEach: Here['afterEach'];
let here: TestContext;

/** Adds tests and hooks to this test from now on. */
export function enter(context: TestContext): void {
  here = context;
  test = context.test.bind(context);
  before = context.before.bind(context);
  after = context.after.bind(context);
  beforeEach = context.beforeEach.bind(context);
  afterEach = context.afterEach.bind(context);
}

/** A group of tests; takes the options of a test. */
export function describe(name: string, ...given: readonly [...options: object[], body: () => void]): void {
  const outer = here;
  const body = given.at(-1) as () => void;
  void outer.test(name, given.length > 1 ? given[0]! : {}, (context) => {
    enter(context);
    try {
      body();
    } finally {
      enter(outer);
    }
  });
}
