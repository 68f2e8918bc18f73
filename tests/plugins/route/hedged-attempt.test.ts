/** How two attempts stand to each other, and whose use of the client's money is watched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Branch } from '../../../core/contract/contract.ts';
import { type Attempt, type SpendGuard, spendGuard } from '../../../plugins/common/domain/calls.ts';
import { HedgedAttempt } from '../../../plugins/route/hedging/hedged-attempt.ts';
import { fakeExchange } from '../../helpers/fakes.ts';

function attempts() {
  const seen: number[] = [];
  const stopped: string[] = [];
  const real: SpendGuard = {
    observe(tokens) {
      seen.push(tokens);
      return tokens < 100;
    },
    charged: () => undefined,
  };
  const begin = (name: string) => {
    const stop = () => void stopped.push(name);
    const exchange = fakeExchange({ facts: [[spendGuard, real]] });
    const branch: Branch = { ...exchange, hasSent: true, headStatus: 0, stop, join: () => {} };
    const attempt = new HedgedAttempt(undefined as never, {} as Attempt, branch, undefined as never, 0);
    return { attempt, meter: branch.get(spendGuard) };
  };
  const [one, other] = [begin('one'), begin('other')];
  one.attempt.rival = other.attempt;
  other.attempt.rival = one.attempt;
  return { one, other, seen, stopped };
}

test('only the first attempt to answer claims the request; the other has lost, whatever its outcome', () => {
  const { one, other } = attempts();
  assert.deepEqual([other.attempt.claim(), one.attempt.claim(), one.attempt.fail()], [true, false, false]);
  assert.deepEqual([one.attempt.state, other.attempt.state], ['lost', 'answered']);
});

test('an attempt that failed by itself has not lost, and is over: the other decides about a disconnected client', () => {
  const { one, other, stopped } = attempts();
  assert.deepEqual([one.attempt.fail(), other.attempt.claim()], [true, true]);
  assert.deepEqual([one.attempt.state, other.attempt.state], ['failed', 'answered']);
  assert.deepEqual(stopped, ['one']);
});

test("until the choice no tokens count; from then on the chosen attempt's do, also its earlier ones", () => {
  const { one, other, seen } = attempts();
  assert.deepEqual([one.meter.observe(30), other.meter.observe(200), one.meter.observe(20)], [true, true, true]);
  assert.deepEqual(seen, []);
  one.attempt.choose();
  assert.deepEqual([one.meter.observe(40), one.meter.observe(150), other.meter.observe(300)], [true, false, true]);
  assert.deepEqual(seen, [30, 40, 150]);
});
