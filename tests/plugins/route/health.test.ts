/** What is remembered of targets and keys: moving figures, and limits on how many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Figures, HealthRegistry } from '../../../plugins/route/health.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const bookOf = () => new HealthRegistry(fakeHost().clock);
const target = (provider: string, model: string) => ({ provider, model, weight: 0 });

test('the first measurement counts whole, each further one an eighth', () => {
  const figures = new Figures();
  assert.ok(Number.isNaN(figures.expectedMs(true)));
  figures.noteAnswer(800, true);
  figures.noteAnswer(0, true);
  assert.equal(figures.firstByteMs, 700);
  assert.equal(figures.expectedMs(false), 700, 'as long as nothing else is known');
  figures.noteAnswer(3_000, false);
  assert.deepEqual([figures.expectedMs(false), figures.expectedMs(true)], [3_000, 700]);
});

test('an attempt given up after a long wait makes the target slower, and after a short one does not', () => {
  const figures = new Figures();
  figures.noteWait(9_000, true);
  assert.ok(Number.isNaN(figures.firstByteMs));
  figures.noteAnswer(800, true);
  figures.noteWait(100, true);
  assert.equal(figures.firstByteMs, 800);
  figures.noteWait(8_800, true);
  assert.equal(figures.firstByteMs, 1_800);
});

test('the share of answered requests follows the outcomes', () => {
  const figures = new Figures();
  for (let round = 0; round < 40; round++) figures.noteFailure();
  assert.ok(figures.answered < 0.01);
  for (let round = 0; round < 40; round++) figures.noteAnswer(1, true);
  assert.ok(figures.answered > 0.99);
});

test('two models with the same model of a provider share its health, also after a reload of the catalogue', () => {
  const book = bookOf();
  const one = book.of(target('a', 'm'));
  assert.equal(book.of(target('a', 'm')), one);
  assert.notEqual(book.of(target('b', 'm')), one);
  assert.notEqual(book.of(target('a', 'n')), one);
});

test('the number of remembered targets and keys is bounded, and the oldest are dropped first', () => {
  const book = bookOf();
  for (let number = 0; number < 5_100; number++) book.of(target(`p${number % 10}`, `m${number}`));
  const models = Array.from({ length: 10 }, (_, index) => book.targets(`p${index}`)).flat();
  assert.equal(models.length, 5_000);
  assert.ok(!models.some(({ model }) => model === 'm99') && models.some(({ model }) => model === 'm100'));
  const last = book.of(target('p0', 'last'));
  for (let number = 0; number < 10_100; number++) book.ofKey(last, `p0#${number}`);
  const { keys } = book.targets('p0').find(({ model }) => model === 'last')!;
  assert.equal(keys.length, 10_000);
  assert.ok(!keys.some(({ credential }) => credential === 'p0#99'));
});
