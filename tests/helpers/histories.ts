/**
 * How long random histories are: short in `npm test`, a tenth in `.ci/run`, and whole in `npm run test:histories`, which runs the
 * files that ask here. Those that take seconds are not in `npm test`: files NAME.history.test.ts, and tests that are defined here.
 */
import { type TestContext, test } from 'node:test';

/** Parts of the full length that can be asked for. */
const parts = new Map([
  ['whole', 1],
  ['tenth', 1 / 10],
]);
const part = parts.get(process.env['TEST_HISTORIES'] ?? '') ?? 0;

/** Every history at its full length. */
export const isWhole = part === 1;

/** Runs of a property: `whole` of them, or fewer where everything is tested. */
export function runsOf(everyday: number, whole: number): number {
  return Math.max(everyday, Math.ceil(whole * part));
}

export function testHistory(name: string, run: Run): void;
export function testHistory(name: string, options: { timeout: number }, run: Run): void;
export function testHistory(name: string, ...given: [Run] | [{ timeout: number }, Run]): void {
  if (part === 0) return;
  if (given.length === 1) void test(name, given[0]);
  else void test(name, given[0], given[1]);
}

type Run = (context: TestContext) => void | Promise<void>;
