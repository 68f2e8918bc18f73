/** When a table of due rows is asked again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DueWatch } from '../../plugins/common/kit/jobs/due-watch.ts';
import { fakeHost } from '../helpers/fakes.ts';

function newWatch() {
  const host = fakeHost();
  const state = { nextMs: undefined as number | undefined, requested: 0, worked: 0, duringQuery: () => {} };
  const watch = new DueWatch({
    clock: host.clock,
    longestMs: 5_000,
    nextMs: async () => {
      state.requested += 1;
      const answer = state.nextMs;
      state.duringQuery();
      return answer;
    },
  });
  const look = () =>
    watch.look(async () => {
      state.worked += 1;
    });
  /** Looks every 250 ms. */
  const pass = async (milliseconds: number) => {
    for (let at = 0; at < milliseconds; at += 250) {
      await look();
      host.advance(250);
    }
  };
  return { watch, state, look, pass };
}

test('an empty table is read every five seconds, and a due row is processed at each look', async () => {
  const { state, pass } = newWatch();
  await pass(20_000);
  assert.deepEqual([state.requested, state.worked], [4, 0]);
  state.nextMs = 0;
  await pass(1_000);
  assert.deepEqual([state.requested, state.worked], [8, 4]);
});

test('the next look is when the next row is due', async () => {
  const { state, pass } = newWatch();
  state.nextMs = 1_000;
  await pass(1_000);
  assert.deepEqual([state.requested, state.worked], [1, 0]);
  state.nextMs = -1;
  await pass(250);
  assert.deepEqual([state.requested, state.worked], [2, 1]);
});

test('a row that this process makes due is found at the next look, also during a query', async () => {
  const { watch, state, look } = newWatch();
  await look();
  assert.equal(look(), undefined);
  state.nextMs = 0;
  watch.changed();
  await look();
  assert.equal(state.worked, 1);
  state.nextMs = undefined;
  state.duringQuery = () => {
    state.nextMs = 0;
    watch.changed();
  };
  await look();
  state.duringQuery = () => {};
  await look();
  assert.equal(state.worked, 2);
});
