/** The fuzzers run, repeat themselves, and find what is wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanObject } from '../../core/json/splice.ts';
import { Chance } from '../simulation/chance.ts';
import { fuzz } from './fuzz.ts';
import type { Target } from './target.ts';
import { requestBodies } from './targets/body.ts';
import { targets } from './targets/index.ts';

for (const target of targets) {
  test(`${target.name}: a few hundred inputs pass`, async () => {
    assert.ok(target.corpus.length > 0);
    const { runs, failure } = await fuzz(target, { seed: 1, runs: 150 });
    assert.equal(failure?.error, undefined);
    assert.equal(runs, 150);
  });
  test(`${target.name}: every valid input passes unchanged`, async () => {
    for (const [index, input] of target.corpus.entries()) await target.check(input, new Chance(1, index));
  });
}

const planted = (check: (bytes: Buffer) => void): Target => ({
  ...{ name: 'planted', corpus: requestBodies, dictionary: ['__proto__'] },
  check,
});

test('a planted fault is found, shortened, and found again by its number alone', async () => {
  const target = planted((bytes) => {
    if (bytes.includes('_proto')) throw new TypeError('planted');
  });
  const { failure, runs } = await fuzz(target, { seed: 7, runs: 5_000 });
  assert.ok(failure !== undefined, 'not found');
  assert.equal(failure.index, runs - 1);
  assert.equal(failure.input.toString(), '_proto');
  const again = await fuzz(target, { seed: 7, first: failure.index, runs: 1 });
  assert.deepEqual([again.failure?.index, again.failure?.error.message], [failure.index, 'planted']);
});

test('an input that takes far too long is a fault', async () => {
  const target = planted(() => {
    const startedAt = process.cpuUsage();
    for (let used = { user: 0, system: 0 }; used.user + used.system < 510_000; ) used = process.cpuUsage(startedAt);
  });
  const { failure } = await fuzz(target, { seed: 1, runs: 1 });
  assert.match(String(failure?.error.message), /bytes took \d+ ms/);
});

test('many inputs are read by the code under test, not refused at their first byte', async () => {
  let read = 0;
  const target = planted((bytes) => {
    try {
      read += scanObject(bytes).members.length > 0 ? 1 : 0;
    } catch (error) {
      if (error instanceof TypeError) throw error;
    }
  });
  await fuzz(target, { seed: 1, runs: 2_000 });
  assert.ok(read > 400, `${read} of 2,000`);
});
