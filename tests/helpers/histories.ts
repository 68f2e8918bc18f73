/**
 * How long random histories are: short in `npm test`, a twentieth in `.ci/run`, and whole in `npm run test:histories`, which runs the
 * files that ask here. Those that take seconds are not in `npm test`: files NAME.history.test.ts, and each `testHistory`.
 */
import { type TestContext, test } from 'node:test';

/** Parts of the full length that can be asked for. */
const parts = new Map([
  ['whole', 1],
  ['twentieth', 1 / 20],
]);
const part = parts.get(process.env['TEST_HISTORIES'] ?? '') ?? 0;

/** Every history at its full length. */
export const isWhole = part === 1;

/** Runs of a property: `whole` of them, or fewer where everything is tested. */
export function runsOf(everyday: number, whole: number): number {
  return Math.max(everyday, Math.ceil(whole * part));
}

/** A test of histories that take seconds: defined where `TEST_HISTORIES` asks for their length, and not in `npm test`. */
export function testHistory(
  name: string,
  run: (context: TestContext) => void | Promise<void>,
  options: { timeout?: number } = {},
): void {
  if (part > 0) void test(name, options, run);
}
