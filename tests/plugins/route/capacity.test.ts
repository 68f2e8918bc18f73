/** A provider that takes only so many requests at once: who waits, who goes on, and that no place is ever lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import type { TimelineEvent } from '../../../plugins/common/domain/timeline.ts';
import { wordsIn } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import {
  type Bench,
  bench,
  credentials,
  modelWith,
  ok,
  refusal,
  reset,
  type Step,
  type Trip,
  unreachable,
} from './helpers.ts';

const speaks = { chat: 'https://a.example' };
const narrow = (queue: object = {}) => ({
  a: { keys: ['one', 'two'], speaks, concurrency: 1, queue },
  b: { keys: 'one', speaks },
});
const onlyA = modelWith('a');
const both = modelWith('a', 'b');
const turn = () => new Promise((resolve) => setImmediate(resolve));
const room = ({ host }: Bench) => host.get(upstreamAdmin).list()[0]!.room!;

test('a slot is kept until the answer was sent', async () => {
  const testbed = await bench({}, narrow());
  const first = await testbed.go(onlyA, [ok], { open: true });
  let second: Trip | undefined;
  void testbed.go(onlyA, [ok]).then((trip) => {
    second = trip;
  });
  await turn();
  assert.deepEqual([room(testbed), second], [{ limit: 1, queue: 100, inFlight: 1, waiting: 1 }, undefined]);
  await first.exchange.end();
  await turn();
  assert.deepEqual([second!.answer, room(testbed).inFlight], [ok.answer, 0]);
});

test('when the queue is full the request goes to the next target; without one it gets retry-after', async () => {
  const testbed = await bench({}, narrow({ length: 0 }));
  const first = await testbed.go(onlyA, [ok], { open: true });
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['b#1']);
  const { error, targets } = await testbed.go(onlyA, [ok]);
  assert.ok(error instanceof GatewayError);
  assert.deepEqual([error.status, error.code, error.retryAfterMs, targets.length], [503, 'upstream_busy', 1_000, 0]);
  await first.exchange.end();
  assert.deepEqual(credentials(await testbed.go(onlyA, [ok])), ['a#2']);
});

test('a request that waits too long goes to the next target', async () => {
  const testbed = await bench({}, narrow({ wait: '20ms' }));
  const first = await testbed.go(onlyA, [ok], { open: true });
  const notes: TimelineEvent[] = [];
  const waiting = testbed.go(both, [ok], { story: notes });
  testbed.host.advance(20);
  assert.deepEqual(credentials(await waiting), ['b#1']);
  const lines = wordsIn(notes);
  assert.ok(lines.includes('the request found no place within 20 ms'), lines.join('\n'));
  await first.exchange.end();
  assert.equal(room(testbed).inFlight, 0);
});

test('a client that disconnects while it waits leaves the queue at once, and nothing was sent', async () => {
  const testbed = await bench({}, narrow());
  const first = await testbed.go(onlyA, [ok], { open: true });
  const controller = new AbortController();
  const left = new GatewayError('client_left', 'The client closed the connection.');
  const waiting = testbed.go(both, [ok], { controller });
  await turn();
  controller.abort(left);
  assert.equal(room(testbed).waiting, 0);
  const trip = await waiting;
  assert.deepEqual([trip.error, trip.targets.length], [left, 0]);
  await first.exchange.end();
  assert.equal(room(testbed).inFlight, 0);
});

test('a client that disconnects in the moment in which its slot is freed returns it', async () => {
  const testbed = await bench({}, narrow());
  const first = await testbed.go(onlyA, [ok], { open: true });
  const controller = new AbortController();
  const waiting = testbed.go(onlyA, [ok], { controller });
  await turn();
  const ended = first.exchange.end();
  controller.abort();
  assert.equal((await waiting).targets.length, 0);
  await ended;
  assert.deepEqual([room(testbed).inFlight, room(testbed).waiting], [0, 0]);
});

test('a pinned request waits for its slot too', async () => {
  const testbed = await bench({}, narrow());
  const first = await testbed.go(onlyA, [ok], { open: true });
  const pinned = { provider: 'a', credential: 'a#2', protocol: 'chat' };
  const waiting = testbed.go(both, [ok], { pinned });
  await turn();
  assert.equal(room(testbed).waiting, 1);
  await first.exchange.end();
  assert.deepEqual(credentials(await waiting), ['a#2']);
});

const endings: Record<string, Step[]> = {
  answered: [ok],
  unreachable: [unreachable, unreachable, unreachable],
  reset: [reset],
  refused: [refusal(400)],
  'key refused': [refusal(401, { keyAtFault: true }), refusal(401, { keyAtFault: true }), ok],
  'rate limited': [refusal(429, { retryAfterMs: 1_000 }), ok, ok],
  busy: [refusal(503), ok, ok],
  bug: [{ error: new Error('a bug') }],
  'bug after sending': [{ sent: true, error: new Error('a bug') }],
};

test('in any schedule, no slot and no count in flight is lost, and the bound holds', async () => {
  const kind = fc.constantFrom(...Object.keys(endings));
  const request = fc.record({ kind, wide: fc.boolean(), leaves: fc.boolean(), broke: fc.boolean(), waits: fc.nat(3) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 3 }),
      async (all, limit) => {
        const vendors = { ...narrow(), a: { keys: ['one', 'two'], speaks, concurrency: limit, queue: { length: 5 } } };
        const testbed = await bench({}, vendors);
        const gates: (() => void)[] = [];
        const trips = all.map(({ kind: how, wide, leaves, broke, waits }) => {
          const controller = new AbortController();
          const steps = endings[how]!.map((step, index) => {
            if (index >= waits) return step;
            return { ...step, after: new Promise<void>((resolve) => gates.push(resolve)) };
          });
          const outcome = broke ? { kind: 'failed' as const, error: new GatewayError('upstream_failed', 'broke') } : {};
          const trip = testbed.go(wide ? both : onlyA, steps, { controller, outcome });
          if (leaves) setImmediate(() => controller.abort(new GatewayError('client_left', 'left')));
          return trip;
        });
        let open = trips.length;
        for (const trip of trips) void trip.then(() => open--);
        for (let round = 0; open > 0 && round < 500; round++) {
          await turn();
          assert.ok(room(testbed).inFlight <= limit, `${room(testbed).inFlight} in flight`);
          gates.shift()?.();
        }
        assert.equal(open, 0, 'every request has ended');
        assert.deepEqual([room(testbed).inFlight, room(testbed).waiting], [0, 0]);
        for (const view of testbed.host.get(upstreamAdmin).list())
          for (const { inFlight } of view.targets!) assert.equal(inFlight, 0);
      },
    ),
    { numRuns: 150 },
  );
});
