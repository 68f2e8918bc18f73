/** A benchmark says the machine's load before each part and measures none while it is above 1.0. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Machine, refusalOf, runParts } from './idle.ts';

/** A machine with these loads, one a look; the last one stays. */
function machineWith(loads: readonly number[], isBusyAllowed = false) {
  const lines: string[] = [];
  const left = [...loads];
  const machine: Machine = {
    load: () => (left.length > 1 ? left.shift()! : left[0]!),
    pause: async () => undefined,
    say: (line) => lines.push(line.trim()),
    isBusyAllowed,
  };
  return { machine, lines };
}

async function run(loads: readonly number[], isBusyAllowed = false) {
  const { machine, lines } = machineWith(loads, isBusyAllowed);
  const done: string[] = [];
  const refusal = await runParts({ one: () => done.push('one'), two: async () => done.push('two') }, machine);
  return { done, lines, refusal };
}

test('An idle machine is measured, with its load before each part', async () => {
  assert.deepEqual(await run([0.3, 1]), {
    done: ['one', 'two'],
    lines: ['load of the machine before one: 0.30', 'load of the machine before two: 1.00'],
    refusal: undefined,
  });
});

test('A busy machine is refused with its load and the way to measure all the same', async () => {
  const { machine } = machineWith([1.01, 0.2]);
  assert.match((await refusalOf('all parts', 0, machine))!, /^[^.]* 1\.01: .* all parts .*BENCH_BUSY=1[^.]*\.$/);
});

test('A part waits until the load of the one before it is gone, and is refused when it stays', async () => {
  assert.deepEqual((await run([0.5, 3, 2, 0.9])).done, ['one', 'two']);
  const { done, refusal } = await run([0.5, 3]);
  assert.deepEqual(done, ['one']);
  assert.match(refusal!, /3\.00.* two /);
});

test('With BENCH_BUSY a busy machine is measured without a wait, and its load is said', async () => {
  const { done, lines, refusal } = await run([4], true);
  assert.deepEqual([done, refusal], [['one', 'two'], undefined]);
  assert.equal(lines[1], 'load of the machine before two: 4.00');
});
