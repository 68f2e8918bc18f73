/** The simulation finds bugs: each of these, put in at a seam, shows within a few seeds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mutants } from './mutants.ts';
import { simulate } from './world.ts';

const seeds = 240;
const operations = 4_000;

for (const [name, mutant] of Object.entries(mutants)) {
  test(`found: ${mutant.summary}`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      if ((await simulate(seed, operations, mutant)).violations.length > 0) return;
    }
    assert.fail(`${name}: no violation within ${seeds} seeds of ${operations} operations`);
  });
}
