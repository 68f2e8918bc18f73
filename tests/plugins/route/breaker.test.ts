/** The circuit breaker: when it opens, how long, who may test it, and when it closes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Breaker, type BreakerRules, type Pass } from '../../../plugins/route/breaker.ts';
import { fc } from '../../helpers/properties.ts';

const rules: BreakerRules = { failures: 5, share: 0.5, openMs: 2_000, maxOpenMs: 60_000 };
/** Always the longest time. */
const random = { fraction: () => 1, bytes: (count: number) => Buffer.alloc(count) };

function fail(breaker: Breaker, now: number, times = 1): void {
  for (let time = 0; time < times; time++) breaker.failed(breaker.admit(now)!, now, rules, random);
}
function answer(breaker: Breaker, pass: Pass, now: number): void {
  assert.equal(breaker.answered(pass, now), 'plain');
  breaker.succeeded();
}
function succeed(breaker: Breaker, now: number, times = 1): void {
  for (let time = 0; time < times; time++) answer(breaker, breaker.admit(now)!, now);
}

test('a circuit opens when enough of the latest requests failed, not before', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 4);
  assert.equal(breaker.state(0), 'closed');
  fail(breaker, 0);
  assert.deepEqual([breaker.state(0), breaker.opensForMs(0), breaker.admit(0)], ['open', 2_000, undefined]);
});

test('failures among many successes do not open a circuit; once they are half of the latest, they do', () => {
  const breaker = new Breaker();
  succeed(breaker, 0, 1_000);
  fail(breaker, 0, 15);
  assert.deepEqual([breaker.state(0), breaker.count, breaker.failedOf], ['closed', 32, 15]);
  fail(breaker, 0);
  assert.equal(breaker.state(0), 'open');
});

test('successes push out earlier failures', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 4);
  succeed(breaker, 0, 32);
  assert.deepEqual([breaker.count, breaker.failedOf], [32, 0]);
});

test('after its time one request tests an open circuit; the others are refused until that one has ended', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  assert.equal(breaker.admit(1_999), undefined);
  assert.deepEqual([breaker.state(2_000), breaker.allows(2_000)], ['half_open', true]);
  assert.equal(breaker.admit(2_000), 'test');
  assert.deepEqual([breaker.admit(2_000), breaker.allows(9_000)], [undefined, false]);
  answer(breaker, 'test', 3_000);
  assert.deepEqual([breaker.state(3_000), breaker.admit(3_000), breaker.count], ['closed', 'plain', 1]);
});

test('a failed test opens the circuit for twice the time, up to the longest', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  const times: number[] = [];
  for (let now = 2_000, round = 0; round < 8; round++) {
    fail(breaker, now);
    times.push(breaker.opensForMs(now));
    now += breaker.opensForMs(now);
  }
  assert.deepEqual(times, [4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
});

test('the open time is spread between half and all of it', () => {
  const times = [0, 0.25, 0.999].map((fraction) => {
    const breaker = new Breaker();
    for (let time = 0; time < 5; time++) breaker.failed('plain', 0, rules, { ...random, fraction: () => fraction });
    return breaker.opensForMs(0);
  });
  assert.deepEqual(times, [1_000, 1_250, 1_999]);
});

test('a circuit that fails again soon after it closed continues with longer times; after a good while it begins again', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  succeed(breaker, 2_000);
  fail(breaker, 3_000, 5);
  assert.equal(breaker.opensForMs(3_000), 4_000);
  succeed(breaker, 7_000);
  fail(breaker, 70_000, 5);
  assert.equal(breaker.opensForMs(70_000), 2_000);
});

test('a test without a result leaves the test to the next request', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  assert.equal(breaker.admit(2_000), 'test');
  breaker.dropped('test');
  assert.equal(breaker.state(2_000), 'half_open');
  assert.equal(breaker.admit(2_000), 'test');
});

test('a request from before the opening neither closes the circuit nor keeps it open for longer', () => {
  const breaker = new Breaker();
  const earlier = [breaker.admit(0)!, breaker.admit(0)!];
  fail(breaker, 0, 5);
  answer(breaker, earlier[0]!, 100);
  breaker.failed(earlier[1]!, 100, rules, random);
  assert.deepEqual([breaker.state(100), breaker.opensForMs(100)], ['open', 1_900]);
});

test('a forced request closes the circuit when it is answered', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  assert.equal(breaker.force(100), 'forced');
  breaker.failed('forced', 200, rules, random);
  assert.equal(breaker.opensForMs(200), 1_800);
  assert.equal(breaker.force(300), 'forced');
  answer(breaker, 'forced', 400);
  assert.equal(breaker.state(400), 'closed');
});

test('an operator closes a circuit; a running test stays the only one', () => {
  const breaker = new Breaker();
  fail(breaker, 0, 5);
  assert.equal(breaker.admit(2_000), 'test');
  breaker.reset(2_000);
  assert.equal(breaker.state(2_000), 'closed');
  fail(breaker, 2_000, 5);
  assert.equal(breaker.admit(4_000), undefined);
  breaker.dropped('test');
  assert.equal(breaker.admit(4_000), 'test');
});

const moves = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom('begin', 'force') }),
    fc.record({ kind: fc.constantFrom('succeed', 'fail', 'drop'), which: fc.nat(10) }),
    fc.record({ kind: fc.constant('wait'), milliseconds: fc.nat(5_000) }),
  ),
  { maxLength: 120 },
);

test('in any events: one test at a time, no other request through an open circuit, and never longer than the longest time', () => {
  fc.assert(
    fc.property(moves, fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })), (trace, draws) => {
      const breaker = new Breaker();
      const chance = { ...random, fraction: () => draws.next().value as number };
      const flying: Pass[] = [];
      let now = 0;
      for (const move of trace) {
        if (move.kind === 'begin') {
          const before = breaker.state(now);
          const pass = breaker.admit(now);
          if (before === 'open') assert.equal(pass, undefined);
          if (before === 'closed') assert.equal(pass, 'plain');
          if (pass !== undefined) flying.push(pass);
        } else if (move.kind === 'force') flying.push(breaker.force(now));
        else if ('milliseconds' in move) now += move.milliseconds;
        else if ('which' in move && flying.length > 0) {
          const [pass] = flying.splice(move.which % flying.length, 1);
          if (move.kind === 'succeed') answer(breaker, pass!, now);
          else if (move.kind === 'fail') breaker.failed(pass!, now, rules, chance);
          else breaker.dropped(pass!);
        }
        const tests = flying.filter((pass) => pass === 'test').length;
        assert.ok(tests <= 1, `${tests} tests at once`);
        assert.ok(breaker.opensForMs(now) <= rules.maxOpenMs);
        assert.ok(breaker.failedOf <= breaker.count && breaker.count <= 32);
        if (breaker.state(now) === 'half_open') assert.equal(breaker.allows(now), tests === 0);
      }
      // Nothing is lost: when all has ended, a success in due time closes it.
      for (const pass of flying) breaker.dropped(pass);
      now += rules.maxOpenMs;
      const last = breaker.admit(now);
      assert.ok(last !== undefined);
      answer(breaker, last, now);
      assert.equal(breaker.state(now), 'closed');
    }),
    { numRuns: 500 },
  );
});
