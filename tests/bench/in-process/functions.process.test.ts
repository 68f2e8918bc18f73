/** What a plain request executes may not grow unseen: files and functions of the product that it enters, and calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { functionsOf } from './footprints.ts';
import type { Entered } from './measure.ts';

/** What was reached. Lower it when a change lowers the counts; a change that has to raise them says why. */
// Three look-ups ask whether the call is bound to regions, or of an account of which nothing is kept.
const most = { files: 109, functions: 420, calls: 831 };

test('files, functions and calls of a whole chat request through all plugins of the main gateway', async () => {
  const entered = await functionsOf('full');
  if (process.env['FUNCTIONS'] !== undefined) console.log(tableOf(entered));
  const files = new Set(entered.map(({ file }) => file)).size;
  const calls = callsOf(entered);
  const found = `${files} files, ${entered.length} functions, ${calls.toFixed(1)} calls a request (FUNCTIONS=1 lists them)`;
  assert(files > 0 && files <= most.files && entered.length <= most.functions && calls <= most.calls, found);
});

test('guardrails and cache in the list without rules: a call enters the same functions as without them, as often', async () => {
  const [without, ruleless] = [await functionsOf('full'), await functionsOf('ruleless')];
  const named = (entered: readonly Entered[]) => entered.map(({ file, name, calls }) => `${file} ${name} ${calls}`);
  assert.deepEqual(named(ruleless).toSorted(), named(without).toSorted());
});

function callsOf(entered: readonly Entered[]): number {
  return entered.reduce((sum, { calls }) => sum + calls, 0);
}

/** A file a line, with its functions and their calls. */
function tableOf(entered: readonly Entered[]): string {
  return [...Map.groupBy(entered, ({ file }) => file)]
    .toSorted(([, left], [, right]) => callsOf(right) - callsOf(left))
    .map(([file, of]) => {
      const each = of.map(({ name, calls }) => (calls === 1 ? name || '()' : `${name || '()'} ×${calls}`)).join(', ');
      return `${callsOf(of).toFixed(1).padStart(7)} ${String(of.length).padStart(3)} ${file}: ${each}`;
    })
    .join('\n');
}
