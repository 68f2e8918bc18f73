/** The simulation finds bugs: each of these, put in at a seam, shows within a few seeds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWhole } from '../helpers/histories.ts';
import { mutants } from './mutants.ts';
import { simulate } from './world.ts';

const seeds = 1_000;
const operations = 4_000;

/** Every fourth unless all are asked for: some take hundreds of worlds to be found, so `npm test` leaves this file out. */
const tried = Object.entries(mutants).filter((_, index) => isWhole || index % 4 === 0);

for (const [name, mutant] of tried) {
  test(`found: ${mutant.summary}`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      if ((await simulate(seed, operations, mutant)).violations.length > 0) return;
    }
    assert.fail(`${name}: no violation within ${seeds} seeds of ${operations} operations`);
  });
}
