/** Targets that fail are passed over, tried by one request, and taken up again; rests of keys stay what they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamError, type UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { TargetView } from '../../../plugins/common/domain/admin/upstreams.ts';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import type { TimelineEvent } from '../../../plugins/common/domain/timeline.ts';
import { wordsIn } from '../../helpers/fakes.ts';
import { type Bench, bench, credentials, modelWith, ok, refusal, reset, type Trip, unreachable } from './helpers.ts';

const single = {
  a: { keys: 'a-one', speaks: { chat: 'https://a.example/v1' } },
  b: { keys: 'b-one', speaks: { chat: 'https://b.example/v1' } },
};
const both = modelWith('a', 'b');
const onlyA = modelWith('a');

const circuitOf = ({ host }: Bench, provider = 'a'): TargetView =>
  host
    .get(upstreamAdmin)
    .list()
    .find((view) => view.provider === provider)!.targets![0]!;
const report = ({ error }: Trip) => error as GatewayError;

async function breakDown(testbed: Bench, entry = both): Promise<void> {
  for (let round = 0; round < 5; round++) await testbed.go(entry, [unreachable, ok]);
}

test('a target that fails repeatedly is skipped until its time is over', async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  const { circuit, opensForMs, failed } = circuitOf(testbed);
  assert.deepEqual([circuit, failed], ['open', 5]);
  assert.ok(opensForMs >= 1_000 && opensForMs <= 2_000, `${opensForMs}`);
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['b#1']);
  testbed.host.advance(2_000);
  assert.equal(circuitOf(testbed).circuit, 'half_open');
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['a#1']);
  assert.equal(circuitOf(testbed).circuit, 'closed');
  assert.ok(testbed.host.lines.some(({ level, message }) => level === 'warn' && /passed over/.test(message)));
  assert.ok(testbed.host.lines.some(({ message }) => /answers again/.test(message)));
});

for (const [what, step, counts] of [
  ['a refused connection', unreachable, true],
  ['a reset after the request was sent', reset, true],
  ['silence', { sent: true, error: new UpstreamError('sent', 'headers timeout', { timedOut: true }) }, true],
  ['a 500', refusal(500, { mayRun: true }), true],
  ['a 503', refusal(503), true],
  ['a 529', refusal(529), true],
  ['a page instead of an answer', refusal(200), true],
  ['a 429', refusal(429), false],
  ['a 401', refusal(401, { keyAtFault: true }), false],
  ['a 403', refusal(403, { keyAtFault: true }), false],
  ['a 400', refusal(400), false],
  ['a request that the target cannot take', { error: cannotTake() }, false],
  ['a fault of the gateway', { error: new Error('a bug') }, false],
] as const) {
  test(`${what} ${counts ? 'counts' : 'does not count'} against the target`, async () => {
    const testbed = await bench({ cooldown: { rate_limited: '1s', unauthorized: '1s' } }, single);
    for (let round = 0; round < 8; round++) {
      await testbed.go(onlyA, [step]);
      testbed.host.advance(1_000);
    }
    assert.deepEqual([circuitOf(testbed).failed > 0, circuitOf(testbed).inFlight], [counts, 0]);
  });
}

function cannotTake(): GatewayError {
  return new GatewayError('unsupported', 'no images', { code: 'unsupported_by_model' });
}

test('an answer that breaks off counts against the target; one whose client disconnects or whose money is used up does not', async () => {
  for (const [outcome, failed] of [
    [{ kind: 'failed', error: new GatewayError('upstream_failed', 'broke off') }, 1],
    [{ kind: 'failed', error: new GatewayError('overloaded', 'broke off') }, 1],
    [{ kind: 'failed', error: new GatewayError('insufficient_balance', 'used up') }, 0],
    [{ kind: 'client_left' }, 0],
    [{ kind: 'complete' }, 0],
  ] as const) {
    const testbed = await bench({}, single);
    await testbed.go(onlyA, [ok], { outcome });
    const { recent, failed: seen, inFlight } = circuitOf(testbed);
    assert.deepEqual([recent, seen, inFlight], [1, failed, 0], JSON.stringify(outcome));
  }
});

test('a disconnected client says nothing about the target; a passed deadline of the exchange does', async () => {
  for (const [reason, failed] of [
    [new GatewayError('client_left', 'left'), 0],
    [new GatewayError('upstream_timeout', 'too long'), 1],
  ] as const) {
    const testbed = await bench({}, single);
    await testbed.go(onlyA, [reset], { leaveAt: 1, reason });
    assert.deepEqual([circuitOf(testbed).failed, circuitOf(testbed).inFlight], [failed, 0]);
  }
});

test('one request at a time tests a target, and the others go elsewhere meanwhile', async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  testbed.host.advance(2_000);
  let answer!: () => void;
  const waits = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const testing = testbed.go(both, [{ ...ok, after: waits }]);
  for (let round = 0; round < 3; round++) assert.deepEqual(credentials(await testbed.go(both, [ok])), ['b#1']);
  answer();
  assert.deepEqual(credentials(await testing), ['a#1']);
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['a#1']);
});

test('a failed test goes to the next target and skips the target for longer', async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  testbed.host.advance(2_000);
  assert.deepEqual(credentials(await testbed.go(both, [unreachable, ok])), ['a#1', 'b#1']);
  const { circuit, opensForMs } = circuitOf(testbed);
  assert.ok(circuit === 'open' && opensForMs >= 2_000 && opensForMs <= 4_000, `${opensForMs}`);
});

test('a test whose client disconnects, or whose key is in cooldown, is left to the next request', async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  testbed.host.advance(2_000);
  await testbed.go(both, [reset], { leaveAt: 1, reason: new GatewayError('client_left', 'left') });
  assert.equal(circuitOf(testbed).circuit, 'half_open');
  await testbed.go(both, [refusal(429, { retryAfterMs: 5_000 }), ok]);
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['b#1'], 'its key rests');
  testbed.host.advance(5_000);
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['a#1']);
  assert.equal(circuitOf(testbed).circuit, 'closed');
});

test('when all targets are skipped, the one whose time ends first is tried all the same', async () => {
  const testbed = await bench({}, single);
  for (let round = 0; round < 5; round++) await testbed.go(modelWith('b'), [unreachable]);
  testbed.host.advance(500);
  for (let round = 0; round < 5; round++) await testbed.go(onlyA, [unreachable]);
  const [a, b] = [circuitOf(testbed).opensForMs, circuitOf(testbed, 'b').opensForMs];
  const first = a <= b ? 'a#1' : 'b#1';
  assert.deepEqual(credentials(await testbed.go(both, [unreachable])), [first], 'and no one else');
  assert.deepEqual(credentials(await testbed.go(both, [ok])), [first]);
  assert.equal(circuitOf(testbed, first[0]).circuit, 'closed');
});

test('with all_open: refuse the client gets the time until the first circuit may be tested, and no vendor is called', async () => {
  const testbed = await bench({ breaker: { all_open: 'refuse' } }, single);
  await breakDown(testbed, onlyA);
  const { opensForMs } = circuitOf(testbed);
  const trip = await testbed.go(onlyA, []);
  assert.deepEqual([report(trip).status, report(trip).retryAfterMs], [503, opensForMs]);
  testbed.host.advance(2_000);
  assert.deepEqual(credentials(await testbed.go(onlyA, [ok])), ['a#1']);
});

for (const [what, step, retries] of [
  ['cannot be reached', unreachable, undefined],
  ['resets', reset, true],
  ['answers 500', refusal(500, { mayRun: true }), true],
  ['answers 503', refusal(503), undefined],
] as const) {
  test(`when every target ${what} and all circuits are open, the error has the wait`, async () => {
    const testbed = await bench({}, single);
    assert.equal(report(await testbed.go(onlyA, [step])).retryAfterMs, undefined, 'the circuit is closed yet');
    for (let round = 0; round < 3; round++) await testbed.go(onlyA, [step]);
    const opening = report(await testbed.go(onlyA, [step]));
    const { opensForMs } = circuitOf(testbed);
    assert.ok(opensForMs > 0);
    assert.deepEqual([opening.retryAfterMs, opening.shouldRetry], [opensForMs, retries]);
    // The last resort is asked, and fails too.
    const again = report(await testbed.go(onlyA, [step]));
    assert.deepEqual([again.retryAfterMs, again.shouldRetry], [circuitOf(testbed).opensForMs, retries]);
  });
}

test('while one target may answer, a failure of the others has no wait', async () => {
  const testbed = await bench({}, single);
  for (let round = 0; round < 5; round++) await testbed.go(onlyA, [unreachable]);
  assert.equal(report(await testbed.go(both, [reset])).retryAfterMs, undefined);
});

test('a request refused for its own content gets no wait, with any circuits', async () => {
  const testbed = await bench({}, single);
  for (let round = 0; round < 5; round++) await testbed.go(onlyA, [unreachable]);
  const error = (await testbed.go(onlyA, [refusal(400)])).error as UpstreamRefusal;
  assert.equal(error.error.retryAfterMs, undefined);
});

test("a vendor's cooldown is kept even when all others are skipped", async () => {
  const testbed = await bench({}, single);
  for (let round = 0; round < 5; round++) await testbed.go(modelWith('b'), [unreachable]);
  await testbed.go(onlyA, [refusal(429, { retryAfterMs: 9_000 })]);
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['b#1']);
});

test("a request that continues a target's stored answer goes there with any state of its circuit", async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  const pinned = { provider: 'a', credential: 'a#1', protocol: 'chat' };
  assert.deepEqual(credentials(await testbed.go(both, [ok], { pinned })), ['a#1']);
  assert.equal(circuitOf(testbed).circuit, 'closed');
});

test("an operator who clears a provider's cooldowns closes its circuits", async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  testbed.host.get(upstreamAdmin).clearCooldown('a');
  assert.equal(circuitOf(testbed).circuit, 'closed');
  assert.deepEqual(credentials(await testbed.go(both, [ok])), ['a#1']);
});

test('the admin service lists the health of targets and keys', async () => {
  const testbed = await bench();
  await testbed.go(onlyA, [{ ...ok, takesMs: 80 }], { stream: true });
  await testbed.go(onlyA, [{ ...ok, takesMs: 400 }]);
  await testbed.go(onlyA, [refusal(503), { ...ok, takesMs: 160 }], { stream: true });
  assert.deepEqual(circuitOf(testbed), {
    model: 'a-m',
    circuit: 'closed',
    opensForMs: 0,
    inFlight: 0,
    recent: 4,
    failed: 1,
    firstByteMs: 90,
    wholeMs: 400,
    keys: [
      { credential: 'a#1', answered: 0.875, firstByteMs: 80, wholeMs: undefined },
      { credential: 'a#2', answered: 1, firstByteMs: 160, wholeMs: 400 },
    ],
  });
});

test('the timeline has the skipped targets and the reasons', async () => {
  const testbed = await bench({}, single);
  await breakDown(testbed);
  const notes: TimelineEvent[] = [];
  await testbed.go(both, [ok], { story: notes });
  const lines = wordsIn(notes);
  assert.match(lines[0]!, /^targets in this order: a\/a-m \(chat\), b\/b-m \(chat\); as listed$/);
  assert.match(lines[1]!, /^a\/a-m was passed over: it has failed, and it is left alone for [12]\.\d s more$/);
  assert.ok(notes[1]!.kind.operator);
});
