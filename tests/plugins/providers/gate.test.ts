/** The bound on requests under way at a provider, and the queue before it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Alarm, Gate, type GateRules } from '../../../plugins/providers/gate.ts';
import { fc } from '../../helpers/properties.ts';

interface Stage {
  readonly gate: Gate;
  advance(milliseconds: number): void;
  /** Alarms that are set. */
  alarms(): number;
}

function stage(rules: Partial<GateRules> = {}): Stage {
  let time = 1_000;
  let alarms: { at: number; work: () => void }[] = [];
  const alarm: Alarm = (afterMs, work) => {
    const entry = { at: time + afterMs, work };
    alarms.push(entry);
    return () => {
      alarms = alarms.filter((other) => other !== entry);
    };
  };
  const clock = { now: () => time, monotonic: () => time };
  return {
    gate: new Gate({ limit: 2, queue: 3, waitMs: 10_000, ...rules }, clock, alarm),
    advance(milliseconds) {
      time += milliseconds;
      const due = alarms.filter(({ at }) => at <= time);
      alarms = alarms.filter(({ at }) => at > time);
      for (const { work } of due) work();
    },
    alarms: () => alarms.length,
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const never = new AbortController().signal;

/** Asks for a place; its outcome when there is one. */
function requestOf(gate: Gate, signal: AbortSignal = never): { outcome: boolean | undefined } {
  const requested: { outcome: boolean | undefined } = { outcome: undefined };
  void gate.acquire(signal).then((entered) => {
    requested.outcome = entered;
  });
  return requested;
}

test('requests up to the bound pass; the others wait and pass in the order of arrival', async () => {
  const { gate } = stage();
  assert.deepEqual([gate.tryAcquire(), gate.tryAcquire(), gate.tryAcquire()], [true, true, false]);
  const [first, second] = [requestOf(gate), requestOf(gate)];
  await turn();
  assert.deepEqual([gate.inFlight, gate.waiting, first.outcome], [2, 2, undefined]);
  gate.release();
  await turn();
  assert.deepEqual([first.outcome, second.outcome, gate.inFlight], [true, undefined, 2]);
  gate.release();
  await turn();
  assert.deepEqual([second.outcome, gate.inFlight, gate.waiting], [true, 2, 0]);
});

test('later requests do not overtake waiting ones', async () => {
  const { gate } = stage({ limit: 1 });
  gate.tryAcquire();
  const waiting = requestOf(gate);
  gate.change({ limit: 1, queue: 3, waitMs: 10_000 });
  assert.equal(gate.tryAcquire(), false);
  gate.release();
  assert.equal(gate.tryAcquire(), false, 'the place went to who waited');
  await turn();
  assert.equal(waiting.outcome, true);
});

test('a full queue refuses at once, and so does one of length zero', async () => {
  for (const queue of [0, 3]) {
    const { gate } = stage({ queue });
    gate.tryAcquire();
    gate.tryAcquire();
    const waiting = Array.from({ length: queue }, () => requestOf(gate));
    const late = requestOf(gate);
    await turn();
    assert.deepEqual([late.outcome, gate.waiting], [false, queue]);
    assert.ok(waiting.every(({ outcome }) => outcome === undefined));
  }
});

test('a request that waits too long is refused at its own deadline, with one alarm at a time', async () => {
  const { gate, advance, alarms } = stage();
  gate.tryAcquire();
  gate.tryAcquire();
  const first = requestOf(gate);
  advance(4_000);
  const second = requestOf(gate);
  assert.equal(alarms(), 1);
  advance(5_999);
  await turn();
  assert.equal(first.outcome, undefined);
  advance(1);
  await turn();
  assert.deepEqual([first.outcome, second.outcome, alarms()], [false, undefined, 1]);
  advance(4_000);
  await turn();
  assert.deepEqual([second.outcome, gate.waiting, gate.inFlight, alarms()], [false, 0, 2, 0]);
});

test('an aborted request leaves the queue at once, and its place in it goes to the next', async () => {
  const { gate } = stage({ limit: 1, queue: 2 });
  gate.tryAcquire();
  const client = new AbortController();
  const left = requestOf(gate, client.signal);
  const stays = requestOf(gate);
  client.abort();
  assert.equal(gate.waiting, 1);
  await turn();
  assert.equal(left.outcome, false);
  gate.release();
  await turn();
  assert.deepEqual([stays.outcome, gate.inFlight], [true, 1]);
  const gone = requestOf(gate, client.signal);
  await turn();
  assert.equal(gone.outcome, false);
});

test('a changed bound applies at once: a higher one admits, and a lower one waits until enough have ended', async () => {
  const { gate } = stage({ limit: 1 });
  gate.tryAcquire();
  const waiting = [requestOf(gate), requestOf(gate)];
  gate.change({ limit: 3, queue: 3, waitMs: 10_000 });
  await turn();
  assert.deepEqual([waiting.map(({ outcome }) => outcome), gate.inFlight], [[true, true], 3]);
  gate.change({ limit: 1, queue: 3, waitMs: 10_000 });
  const later = requestOf(gate);
  gate.release();
  gate.release();
  await turn();
  assert.deepEqual([later.outcome, gate.inFlight], [undefined, 1]);
  gate.release();
  await turn();
  assert.deepEqual([later.outcome, gate.inFlight], [true, 1]);
});

test('a removed bound admits all and leaves no alarm', async () => {
  const { gate, alarms } = stage({ limit: 1 });
  gate.tryAcquire();
  const waiting = [requestOf(gate), requestOf(gate)];
  gate.removeLimit();
  await turn();
  assert.deepEqual([waiting.map(({ outcome }) => outcome), alarms(), gate.tryAcquire()], [[true, true], 0, true]);
});

test('the wait for a place is estimated within bounds from how often one is freed', async () => {
  const { gate, advance } = stage({ limit: 1, queue: 10 });
  assert.equal(gate.retryAfterMs, 1_000);
  gate.tryAcquire();
  for (let round = 0; round < 20; round++) {
    requestOf(gate);
    advance(3_000);
    gate.release();
  }
  assert.equal(gate.retryAfterMs, 3_000);
  requestOf(gate);
  assert.equal(gate.retryAfterMs, 6_000);
  for (let round = 0; round < 9; round++) requestOf(gate);
  assert.equal(gate.retryAfterMs, 33_000);
});

type Move =
  | { kind: 'ask' | 'try' | 'leave' }
  | { kind: 'abort'; whom: number }
  | { kind: 'wait'; milliseconds: number }
  | { kind: 'change'; limit: number; queue: number };

const moves = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.constant<Move>({ kind: 'ask' }) },
    { weight: 2, arbitrary: fc.constant<Move>({ kind: 'try' }) },
    { weight: 5, arbitrary: fc.constant<Move>({ kind: 'leave' }) },
    { weight: 2, arbitrary: fc.nat(20).map((whom): Move => ({ kind: 'abort', whom })) },
    { weight: 2, arbitrary: fc.nat(12_000).map((milliseconds): Move => ({ kind: 'wait', milliseconds })) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(4)).map(([limit, queue]): Move => {
        return { kind: 'change', limit, queue };
      }),
    },
  ),
  { maxLength: 60 },
);

test('in any schedule: never more in flight than the limit, no place lost, in order, and every request is answered', async () => {
  await fc.assert(
    fc.asyncProperty(moves, async (trace) => {
      const { gate, advance, alarms } = stage({ limit: 2, queue: 3 });
      const requests: { number: number; outcome: boolean | undefined; client: AbortController }[] = [];
      const entered: number[] = [];
      let inFlight = 0;
      let highest = 2;
      for (const move of trace) {
        const before = inFlight;
        if (move.kind === 'ask') {
          const client = new AbortController();
          const entry = { number: requests.length, outcome: undefined as boolean | undefined, client };
          requests.push(entry);
          void gate.acquire(client.signal).then((passed) => {
            entry.outcome = passed;
            if (!passed) return;
            inFlight += 1;
            entered.push(entry.number);
          });
        } else if (move.kind === 'try') {
          if (gate.tryAcquire()) inFlight += 1;
        } else if (move.kind === 'leave' && inFlight > 0) {
          inFlight -= 1;
          gate.release();
        } else if (move.kind === 'abort') requests[move.whom]?.client.abort();
        else if (move.kind === 'wait') advance(move.milliseconds);
        else if (move.kind === 'change') gate.change({ limit: move.limit, queue: move.queue, waitMs: 10_000 });
        await turn();
        highest = gate.rules.limit;
        assert.equal(gate.inFlight, inFlight, 'its count is the true one');
        // A lowered limit ends no request, and admits none.
        assert.ok(inFlight <= Math.max(highest, before), `${inFlight} in flight`);
        const waiting = requests.filter(({ outcome }) => outcome === undefined).length;
        assert.equal(gate.waiting, waiting);
        assert.ok(waiting === 0 || inFlight >= highest, 'no one waits while a place is free');
      }
      assert.deepEqual(
        entered,
        entered.toSorted((one, other) => one - other),
      );
      advance(20_000);
      await turn();
      assert.ok(requests.every(({ outcome }) => outcome !== undefined));
      for (; inFlight > 0; inFlight--) gate.release();
      assert.deepEqual([gate.inFlight, gate.waiting, alarms()], [0, 0, 0]);
    }),
    { numRuns: 300 },
  );
});
