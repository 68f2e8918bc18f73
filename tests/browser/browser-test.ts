/** `node:test` for files that need a browser: where there is none, their tests are skipped and their hooks have nothing to prepare. */
import { test as addTest, after as afterAll, before as beforeAll, type TestContext } from 'node:test';
import { noBrowser } from './chromium.ts';

type Run = (context: TestContext) => void | Promise<void>;
type Prepare = () => unknown;

export function test(
  name: string,
  ...given: [run: Run] | [options: { readonly skip: boolean | string }, run: Run]
): void {
  const [{ skip }, run] = given.length === 1 ? [{ skip: false }, given[0]] : given;
  void addTest(name, { skip: noBrowser || skip }, run);
}

export function before(prepare: Prepare): void {
  if (noBrowser === false) beforeAll(async () => void (await prepare()));
}

export function after(end: Prepare): void {
  if (noBrowser === false) afterAll(async () => void (await end()));
}

/** What all tests of a file use: its members are there while they run, and it is ended behind the last one. */
export function shared<Used extends object>(open: () => Promise<Used>, end: (used: Used) => unknown): Used {
  const used = {} as Used;
  let opened: Used | undefined;
  before(async () => {
    opened = await open();
    Object.assign(used, opened);
  });
  after(() => (opened === undefined ? undefined : end(opened)));
  return used;
}
