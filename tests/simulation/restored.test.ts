/** A database that is put back is noticed by what directories remember; money waits for the operator, and what is found names all that is missing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RestoreMutant, simulateRestores } from './restored.ts';

const seeds = 30;
const steps = 120;

test('after credits, calls, crashes, dumps and restores missing movements are listed, and no money is accepted before the operator does', async () => {
  let [restored, refused] = [0, 0];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const result = await simulateRestores(seed, steps);
    assert.deepEqual(result.faults, [], `seed ${seed}`);
    restored += result.restored;
    refused += result.refused;
  }
  assert.ok(restored > seeds && refused > seeds, `${restored} ${refused}`);
});

const mutants: Readonly<Record<string, RestoreMutant>> = {
  'restore-unnoticed': (rows) => ({ ...rows, lacking: async () => new Set() }),
  'restore-not-kept': (rows) => ({ ...rows, note: async () => {} }),
  'restore-not-blocking': (rows) => ({ ...rows, list: async (state) => (state === 'waiting' ? [] : rows.list(state)) }),
  'restore-reported-again': (rows) => ({ ...rows, lacking: async (references) => new Set(references) }),
};

for (const [name, mutant] of Object.entries(mutants))
  test(`found: ${name}`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1)
      if ((await simulateRestores(seed, steps, mutant)).faults.length > 0) return;
    assert.fail(`no fault in ${seeds} histories`);
  });
