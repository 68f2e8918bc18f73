/**
 * What a test file of a shared process gets for `node:test`: each call belongs to the test of its file. Node's own exports find that
 * test by hooks on every promise, which in tests that do nothing but wait for promises take half of the time.
 */
import type { TestContext } from 'node:test';

export { mock } from 'node:test';

type Here = Pick<TestContext, 'after' | 'afterEach' | 'before' | 'beforeEach' | 'test'>;

// Imports are bound to these variables, so that Node still sees the line of the file that calls.
export let test: Here['test'];
export let before: Here['before'];
export let after: Here['after'];
export let beforeEach: Here['beforeEach'];
export let afterEach: Here['afterEach'];
let here: TestContext;

/** From now on tests and hooks are of this one. */
export function enter(context: TestContext): void {
  here = context;
  test = context.test.bind(context);
  before = context.before.bind(context);
  after = context.after.bind(context);
  beforeEach = context.beforeEach.bind(context);
  afterEach = context.afterEach.bind(context);
}

/** `options` are those of a test. */
export function describe(name: string, ...given: readonly [...options: object[], body: () => void]): void {
  const outer = here;
  const body = given.at(-1) as () => void;
  void outer.test(name, given.length > 1 ? given[0]! : {}, (context) => {
    enter(context);
    body();
    enter(outer);
  });
}
