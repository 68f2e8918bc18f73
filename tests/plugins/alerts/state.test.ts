/** When alerts begin, are repeated and end: examples, and what holds for every history of values. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AlertState, advance, type Verdict, verdictOf } from '../../../plugins/alerts/state.ts';
import { fc } from '../../helpers/properties.ts';

const pace = { forMs: 60_000, quietMs: 120_000, repeatMs: 600_000 };

function play(verdicts: readonly Verdict[], stepMs: number, rules = pace, acknowledgedAt = Number.POSITIVE_INFINITY) {
  let state: AlertState | undefined;
  return verdicts.flatMap((verdict, index) => {
    const now = index * stepMs;
    if (state?.phase === 'running' && now >= acknowledgedAt) state = { ...state, acknowledged: true };
    const step = advance(state, verdict, now, rules);
    state = step.state;
    return step.event === undefined ? [] : [{ event: step.event, now }];
  });
}

test('a value is bad beyond the threshold, good from the clearing value on, and neither between them', () => {
  const share = { threshold: 0.9, clear: 0.95 };
  const verdicts = [0.5, 0.9, 0.94, 0.95, 1, undefined].map((value) => verdictOf('below', share, value));
  assert.deepEqual(verdicts, ['bad', 'between', 'between', 'good', 'good', 'good']);
  const wait = { threshold: 30, clear: 20 };
  assert.deepEqual(
    [31, 30, 21, 20, 0].map((value) => verdictOf('above', wait, value)),
    ['bad', 'between', 'between', 'good', 'good'],
  );
});

test('an alert begins after `for`, is repeated, and ends after `quiet`', () => {
  const verdicts: Verdict[] = [...Array<Verdict>(15).fill('bad'), ...Array<Verdict>(4).fill('good')];
  assert.deepEqual(play(verdicts, 60_000), [
    { event: 'begin', now: 60_000 },
    { event: 'repeat', now: 660_000 },
    { event: 'end', now: 1_020_000 },
  ]);
});

test('a short failure begins nothing, and a short recovery ends nothing', () => {
  assert.deepEqual(play(['bad', 'good', 'bad', 'between', 'bad', 'good'], 59_000), []);
  const events = play(['bad', 'bad', 'good', 'bad', 'good', 'between', 'good', 'bad'], 60_000);
  assert.deepEqual(events, [{ event: 'begin', now: 60_000 }]);
});

test('an acknowledged alert is not repeated, and its end is sent', () => {
  const verdicts: Verdict[] = [...Array<Verdict>(30).fill('bad'), 'good', 'good', 'good'];
  assert.deepEqual(
    play(verdicts, 60_000, pace, 120_000).map(({ event }) => event),
    ['begin', 'end'],
  );
});

test('in every history begin and end alternate, none too early, and repeats keep their interval', () => {
  const verdict = fc.constantFrom<Verdict>('bad', 'between', 'good');
  const paces = fc.record({ forMs: fc.nat(5), quietMs: fc.nat(5), repeatMs: fc.integer({ min: 1, max: 9 }) });
  fc.assert(
    fc.property(fc.array(verdict, { maxLength: 60 }), paces, (verdicts, rules) => {
      let [isRunning, sentAt] = [false, 0];
      for (const { event, now } of play(verdicts, 1, rules)) {
        assert.equal(event === 'begin', !isRunning);
        const stretch = event === 'end' ? rules.quietMs : rules.forMs;
        const wanted = event === 'end' ? 'good' : 'bad';
        if (event !== 'repeat')
          assert.deepEqual(new Set(verdicts.slice(now - stretch, now + 1)), new Set([wanted]), event);
        else assert.ok(now - sentAt >= rules.repeatMs && verdicts[now] !== 'good');
        isRunning = event !== 'end';
        sentAt = now;
      }
    }),
    { numRuns: 2_000 },
  );
});

test('in every history a value that stays bad long enough has an alert, and one that stays good long enough has none', () => {
  const verdict = fc.constantFrom<Verdict>('bad', 'between', 'good');
  fc.assert(
    fc.property(fc.array(verdict, { maxLength: 30 }), fc.nat(4), (before, ms) => {
      const rules = { forMs: ms, quietMs: ms, repeatMs: 1_000 };
      const running = (more: Verdict) => {
        const events = play([...before, ...Array<Verdict>(ms + 1).fill(more)], 1, rules).filter(
          ({ event }) => event !== 'repeat',
        );
        return events.at(-1)?.event === 'begin';
      };
      assert.equal(running('bad'), true);
      assert.equal(running('good'), false);
    }),
  );
});
