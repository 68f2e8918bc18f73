/** Which requests may have a second attempt, how many of them, and which of two attempts a request goes on with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract/message.ts';
import { type Call, type Conversation, call, conversation, pinned } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { type RouteConfig, routeSchema } from '../../../plugins/route/config.ts';
import { HedgeBudget, hedgeAfter } from '../../../plugins/route/hedging/hedge.ts';
import type { HedgedAttempt } from '../../../plugins/route/hedging/hedged-attempt.ts';
import { chooseAttempt, combineFailures } from '../../../plugins/route/hedging/race.ts';
import type { Failure } from '../../../plugins/route/verdict.ts';
import { fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { modelWith } from './helpers.ts';

function clockAt(start = 0) {
  let now = start;
  const advance = (milliseconds: number) => {
    now += milliseconds;
  };
  return { now: () => now, monotonic: () => now, advance };
}

test('the budget allows one in twenty and drops requests older than five minutes', () => {
  const clock = clockAt(123_456_789);
  const budget = new HedgeBudget(clock);
  for (let count = 0; count < 19; count += 1) budget.note();
  assert.equal(budget.take(0.05), false);
  budget.note();
  assert.deepEqual([budget.take(0.05), budget.take(0.05)], [true, false]);
  clock.advance(301_000);
  assert.equal(budget.take(0.05), false);
  for (let count = 0; count < 20; count += 1) budget.note();
  assert.equal(budget.take(0.05), true);
});

test("at any times, hedges are never above the share of the window's requests", () => {
  const step = fc.record({ afterMs: fc.integer({ min: 0, max: 400_000 }), hedges: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.double({ min: 0.01, max: 1, noNaN: true }), (steps, share) => {
      const clock = clockAt();
      const budget = new HedgeBudget(clock);
      const taken: number[] = [];
      const noted: number[] = [];
      for (const { afterMs, hedges } of steps) {
        clock.advance(afterMs);
        budget.note();
        noted.push(clock.monotonic());
        if (!hedges || !budget.take(share)) continue;
        taken.push(clock.monotonic());
        // The window ends at now and begins with a slot of half a minute.
        const since = (Math.floor(clock.monotonic() / 30_000) - 9) * 30_000;
        const within = (times: readonly number[]) => times.filter((time) => time >= since).length;
        assert.ok(within(taken) <= share * within(noted));
      }
    }),
  );
});

const settings = (section: object): RouteConfig => routeSchema.parse(section);
const traces = (leaves: boolean): Conversation => ({
  name: undefined,
  opening: () => undefined,
  hasSideEffects: () => leaves,
});
const requestOf = (more: Partial<Call> = {}) =>
  ({ protocol: 'chat', model: 'm', stream: false, billable: true, ...more }) as Call;

function exchangeOf(reported: Conversation | undefined, wanted: Call = requestOf(), bodyBytes = 3) {
  return fakeExchange({
    request: { body: new Uint8Array(3), bodyBytes },
    facts: [
      [call, wanted],
      [conversation, reported],
    ],
  });
}

test('without a time in the route or the model there is no hedge', () => {
  const model = modelWith('a', 'b');
  const exchange = exchangeOf(traces(false));
  assert.equal(hedgeAfter(exchange, model, settings({})), undefined);
  assert.equal(hedgeAfter(exchange, model, settings({ hedge: { after: '2s' } })), 2_000);
  assert.equal(hedgeAfter(exchange, { ...model, hedgeAfterMs: 500 }, settings({ hedge: { after: '2s' } })), 500);
  assert.equal(hedgeAfter(exchange, { ...model, hedgeAfterMs: 500 }, settings({})), 500);
  assert.equal(hedgeAfter(exchange, { ...model, hedgeAfterMs: 0 }, settings({ hedge: { after: '2s' } })), undefined);
});

test('a call that has lasting effects, cannot be judged, is pinned, runs no inference or is no chat is never hedged', () => {
  const on = settings({ hedge: { after: '2s' } });
  const model = modelWith('a', 'b');
  const after = (exchange: ReturnType<typeof fakeExchange>, entry: Model = model) => hedgeAfter(exchange, entry, on);
  assert.equal(after(exchangeOf(traces(true))), undefined);
  assert.equal(after(exchangeOf(undefined)), undefined);
  assert.equal(after(exchangeOf({ name: 'x', opening: () => undefined })), undefined);
  assert.equal(after(exchangeOf(traces(false), requestOf({ billable: false }))), undefined);
  assert.equal(after(exchangeOf(traces(false), requestOf({ kind: 'image' }))), undefined);
  assert.equal(after(exchangeOf(traces(false)), { ...model, kind: 'image' }), undefined);
  assert.equal(after(exchangeOf(traces(false), requestOf(), 4)), undefined, 'a body that is not held');
  const held = exchangeOf(traces(false));
  held.set(pinned, { provider: 'a', credential: 'a#1', protocol: 'chat' });
  assert.equal(after(held), undefined);
});

test('times and shares beyond their bounds are refused', () => {
  for (const hedge of [{ after: '5ms' }, { after: '11m' }, { after: 2 }, { share: 0 }, { share: 1.1 }, { beside: 1 }])
    assert.equal(routeSchema.safeParse({ hedge }).success, false, JSON.stringify(hedge));
  assert.deepEqual(settings({}).hedge, { after: 0, share: 0.05 });
  assert.deepEqual(settings({ hedge: { after: 'off' } }).hedge.after, 0);
});

type Outcome = Answer | Failure;
const fails = (next: Failure['next'], isFault: boolean, isAmbiguous = false): Failure => ({
  next,
  isFault,
  isAmbiguous,
  error: `${next} ${isFault}`,
});

/** A hedged attempt that ends when the routing session stops it. */
function attempt() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const face = {
    state: 'running' as HedgedAttempt['state'],
    outcome: undefined as Outcome | undefined,
    ended: promise,
  };
  const end = (outcome: Outcome) => {
    face.state = 'next' in outcome ? 'failed' : 'answered';
    face.outcome = outcome;
    resolve();
  };
  return { attempt: face as unknown as HedgedAttempt, end };
}

async function course(ends: readonly (readonly ['first' | 'second', Outcome])[]): Promise<string> {
  const both = { first: attempt(), second: attempt() };
  const chosen = chooseAttempt(both.first.attempt, both.second.attempt);
  for (const [who, outcome] of ends) {
    both[who].end(outcome);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return (await chosen) === both.first.attempt ? 'first' : 'second';
}

test('the first attempt to answer is chosen; a failed one leaves the request to the other', async () => {
  const retried = fails('target', true);
  const unknown = fails('nowhere', true);
  assert.equal(await course([['second', okAnswer]]), 'second');
  assert.equal(await course([['first', okAnswer]]), 'first');
  for (const failure of [retried, unknown, fails('key', false)]) {
    assert.equal(
      await course([
        ['first', failure],
        ['second', okAnswer],
      ]),
      'second',
    );
    assert.equal(
      await course([
        ['second', failure],
        ['first', okAnswer],
      ]),
      'first',
    );
  }
});

test("a client's own fault ends both where the first attempt has it, and is awaited where the second has it", async () => {
  const clients = fails('nowhere', false);
  assert.equal(await course([['first', clients]]), 'first');
  assert.equal(
    await course([
      ['second', clients],
      ['first', okAnswer],
    ]),
    'first',
  );
});

test('two failures: the later one counts, and no further target is tried where either excludes it', async () => {
  const [retried, unknown] = [fails('target', true), fails('nowhere', true)];
  assert.equal(
    await course([
      ['first', retried],
      ['second', unknown],
    ]),
    'second',
  );
  assert.equal(
    await course([
      ['second', retried],
      ['first', unknown],
    ]),
    'first',
  );
  assert.equal(combineFailures(retried, unknown), unknown);
  assert.equal(combineFailures(unknown, retried), unknown);
  assert.equal(combineFailures(retried, fails('key', false)), retried);
});
