/** Every row of the outcome table: what may be tried again, what the client receives, what the attempt records. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { toGatewayError, UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { providers } from '../../../plugins/common/domain/upstreams.ts';
import { bench, credentials, modelWith, ok, refusal, reset, results, type Trip, unreachable } from './helpers.ts';

const both = modelWith('a', 'b');
const onlyB = modelWith('b');

function clientError(trip: Trip): GatewayError {
  assert.ok(trip.error instanceof GatewayError, `expected a GatewayError, got ${String(trip.error ?? trip.answer)}`);
  return trip.error;
}

test('an answer is final, whatever its body does later', async () => {
  const trip = await (await bench()).go(both, [{ ...ok, takesMs: 40 }]);
  assert.equal(trip.answer, ok.answer);
  assert.deepEqual(trip.attempts, [
    {
      number: 1,
      provider: 'a',
      model: 'a-m',
      credential: 'a#1',
      protocol: 'chat',
      startedAt: 1_800_000_000_000,
      result: 'answered',
      status: 200,
      durationMs: 40,
      error: undefined,
    },
  ]);
  assert.equal(trip.targets[0]!.baseUrl, 'https://a.example/v1');
  assert.equal(trip.targets[0]!.model, 'a-m');
  assert.equal(trip.targets[0]!.key.reveal(), 'a-one');
});

test('a failure to connect goes to the next target, then to the remaining keys', async () => {
  const trip = await (await bench()).go(both, [unreachable, unreachable, { ...ok, takesMs: 5 }]);
  assert.deepEqual(credentials(trip), ['a#1', 'b#1', 'a#2']);
  assert.deepEqual(results(trip), ['not_sent', 'not_sent', 'answered']);
  assert.match(trip.attempts[0]!.error!, /ECONNREFUSED/);
  assert.equal(trip.attempts[0]!.status, undefined);
});

test('when no target is reachable the client gets 502, without an upstream address', async () => {
  const timedOut = { error: new UpstreamError('connect', 'connect timed out', { timedOut: true }) };
  const trip = await (await bench()).go(both, [unreachable, unreachable, timedOut]);
  assert.equal(clientError(trip).status, 502);
  assert.equal(clientError(trip).shouldRetry, undefined);
  assert.doesNotMatch(clientError(trip).message, /10\.0\.0\.1|example/);
  assert.deepEqual(results(trip), ['not_sent', 'not_sent', 'not_sent']);
});

for (const phase of ['sent', 'body'] as const) {
  test(`a break in the phase "${phase}" of a call that may have effects: it is not tried again, and nothing is charged`, async () => {
    const error = new UpstreamError(phase, 'socket hang up');
    const trip = await (await bench()).go(both, [{ sent: true, error }]);
    assert.equal(trip.attempts[0]!.failedFirst, true);
    const rendered = toGatewayError(trip.error);
    assert.deepEqual([rendered.status, rendered.shouldRetry], [502, true]);
    assert.deepEqual(results(trip), ['unknown']);
  });
}

test('silence after the request was sent counts as a call that may have run', async () => {
  const error = new UpstreamError('sent', 'headers timeout', { timedOut: true });
  const trip = await (await bench()).go(both, [{ sent: true, error }]);
  assert.deepEqual([toGatewayError(trip.error).status, toGatewayError(trip.error).shouldRetry], [504, true]);
  assert.deepEqual(results(trip), ['unknown']);
});

for (const status of [401, 402, 403]) {
  test(`a ${status} is the key's fault: the key is put into cooldown, the operator is warned, and another key serves`, async () => {
    const { host, go } = await bench();
    const trip = await go(both, [refusal(status, { keyAtFault: true }), ok]);
    assert.deepEqual(credentials(trip), ['a#1', 'a#2']);
    assert.deepEqual(results(trip), ['refused', 'answered']);
    assert.deepEqual(trip.attempts[0]!.status, status);
    const other = host.get(providers).acquireKey('a', 'another-model', new Set(['a#2']));
    assert.equal('key' in other, status === 403, 'a 403 concerns the one model');
    assert.ok(
      host.lines.some((line) => line.level === (status === 403 ? 'info' : 'warn') && /a#1/.test(JSON.stringify(line))),
    );
    assert.doesNotMatch(JSON.stringify(host.lines), /a-one/);
  });
}

test("a refused key without another is a 502, never the upstream's own 401", async () => {
  const { host, go } = await bench();
  const trip = await go(onlyB, [refusal(401, { keyAtFault: true })]);
  assert.deepEqual([clientError(trip).status, clientError(trip).shouldRetry], [502, false]);
  assert.doesNotMatch(clientError(trip).message, /key|401/);
  const waiting = host.get(providers).acquireKey('b', 'b-m');
  assert.deepEqual(waiting, { retryAfterMs: 600_000 });
});

test("a used-up quota is the key's fault, with any status", async () => {
  const { host, go } = await bench();
  const trip = await go(both, [refusal(429, { keyAtFault: true }), ok]);
  assert.deepEqual(credentials(trip), ['a#1', 'a#2']);
  assert.deepEqual(host.get(providers).acquireKey('a', 'another-model', new Set(['a#2'])), { retryAfterMs: 600_000 });
});

test('after a 429 the key is in cooldown for that model as long as the vendor asked, and another is tried', async () => {
  const { host, go } = await bench();
  const trip = await go(both, [refusal(429, { retryAfterMs: 12_000 }), ok]);
  assert.deepEqual(credentials(trip), ['a#1', 'a#2']);
  assert.deepEqual(results(trip), ['refused', 'answered']);
  const service = host.get(providers);
  const onlyFirst = new Set(['a#2']);
  assert.deepEqual(service.acquireKey('a', 'a-m', onlyFirst), { retryAfterMs: 12_000 });
  assert.ok('key' in service.acquireKey('a', 'another-model', onlyFirst));
});

test('when all are rate limited the client gets 429 with the shortest wait', async () => {
  const limited = [12_000, 7_000, 20_000].map((retryAfterMs) => refusal(429, { retryAfterMs }));
  const trip = await (await bench()).go(both, limited);
  assert.deepEqual(
    [clientError(trip).status, clientError(trip).code, clientError(trip).retryAfterMs],
    [429, 'upstream', 7_000],
  );
  assert.deepEqual(results(trip), ['refused', 'refused', 'refused']);
});

test('the wait of a 429 is kept within bounds, and has a default', async () => {
  const waits = [];
  for (const retryAfterMs of [undefined, 5, 86_400_000]) {
    const trip = await (await bench()).go(onlyB, [refusal(429, retryAfterMs === undefined ? {} : { retryAfterMs })]);
    waits.push(clientError(trip).retryAfterMs);
  }
  assert.deepEqual(waits, [30_000, 1_000, 300_000]);
});

for (const status of [503, 529]) {
  test(`a ${status} goes to another target; the last one is returned as overload`, async () => {
    const first = await (await bench()).go(both, [refusal(status), ok]);
    assert.deepEqual(credentials(first), ['a#1', 'b#1']);
    const { host, go } = await bench();
    const last = await go(onlyB, [refusal(status, { retryAfterMs: 9_000 })]);
    assert.deepEqual(
      [clientError(last).status, clientError(last).code, clientError(last).retryAfterMs],
      [503, 'upstream_busy', 9_000],
    );
    assert.deepEqual(host.get(providers).acquireKey('b', 'b-m'), { retryAfterMs: 9_000 });
  });
}

test('a single 503 without a wait does not close a model with one key', async () => {
  const { go } = await bench();
  const first = await go(onlyB, [refusal(503)]);
  assert.deepEqual([clientError(first).status, clientError(first).retryAfterMs], [503, undefined]);
  assert.equal((await go(onlyB, [ok])).answer, ok.answer);
});

for (const status of [408, 500, 502, 504]) {
  test(`a ${status} of a call that may have effects: 502, not tried again, and SDKs may repeat it`, async () => {
    const trip = await (await bench()).go(both, [refusal(status, { mayRun: true })]);
    assert.deepEqual([clientError(trip).status, clientError(trip).shouldRetry], [502, true]);
    assert.deepEqual(results(trip), ['unknown']);
    assert.equal(trip.attempts[0]!.status, status);
  });
}

test("after a proxy's time-out the call may have run", async () => {
  for (const status of [520, 524]) {
    const trip = await (await bench()).go(both, [refusal(status)]);
    assert.deepEqual([clientError(trip).status, clientError(trip).shouldRetry], [502, true]);
    assert.deepEqual(results(trip), ['unknown']);
  }
});

test('a redirect, or an error that says that nothing runs, goes to another target', async () => {
  for (const status of [302, 500, 501, 502]) {
    const trip = await (await bench()).go(both, [refusal(status), ok]);
    assert.deepEqual(credentials(trip), ['a#1', 'b#1']);
    assert.deepEqual(results(trip), ['refused', 'answered']);
    const last = await (await bench()).go(onlyB, [refusal(status, { answer: undefined })]);
    assert.ok(!(last.error instanceof UpstreamRefusal), 'nothing of the vendor is sent on');
    assert.equal(clientError(last).message, `rendered for ${status}`);
  }
});

for (const status of [400, 404, 409, 413, 422]) {
  test(`a ${status} is the client's own: its answer is returned, and nothing else is tried`, async () => {
    const { host, go } = await bench();
    const trip = await go(both, [refusal(status)]);
    assert.ok(trip.error instanceof UpstreamRefusal);
    assert.equal(trip.error.answer!.body, `refused with ${status}`);
    assert.deepEqual(results(trip), ['refused']);
    assert.ok('key' in host.get(providers).acquireKey('a', 'a-m', new Set(['a#2'])), 'the key does not rest');
  });
}

test('a refusal that reports usage was billed: a call that may have effects ends with it, and no repetition is advised', async () => {
  for (const status of [401, 429, 503]) {
    const billed = {
      ...refusal(status, { hasUsage: true, keyAtFault: status === 401 }),
      usage: { input: 7, output: 0 },
    };
    const trip = await (await bench()).go(both, [billed]);
    assert.deepEqual([clientError(trip).status, clientError(trip).shouldRetry], [502, false]);
    assert.deepEqual(results(trip), ['unknown']);
  }
  const own = await (await bench()).go(both, [refusal(400, { hasUsage: true })]);
  assert.ok(own.error instanceof UpstreamRefusal);
  assert.deepEqual(results(own), ['unknown']);
});

test('all keys in cooldown is overload with the wait, and no attempt is made', async () => {
  const { go } = await bench();
  await go(onlyB, [refusal(429, { retryAfterMs: 12_000 })]);
  const trip = await go(onlyB, []);
  assert.deepEqual(
    [clientError(trip).status, clientError(trip).code, clientError(trip).retryAfterMs],
    [503, 'upstream_busy', 12_000],
  );
  assert.deepEqual(trip.attempts, []);
});

test('several failures: the client gets the one that a wait can end', async () => {
  const limitedFirst = await (await bench()).go(modelWith('b', 'a'), [
    refusal(429, { retryAfterMs: 8_000 }),
    unreachable,
    unreachable,
  ]);
  assert.deepEqual([clientError(limitedFirst).status, clientError(limitedFirst).retryAfterMs], [429, 8_000]);
  const keyLast = await (await bench()).go(both, [unreachable, refusal(401, { keyAtFault: true }), unreachable]);
  assert.equal(clientError(keyLast).status, 502);
});

test('after a client has disconnected nothing more is tried', async () => {
  const left = new GatewayError('client_left', 'The client closed the connection.');
  const trip = await (await bench()).go(both, [unreachable], { leaveAt: 1, reason: left });
  assert.equal(trip.error, left);
  assert.deepEqual(results(trip), ['not_sent']);
  const late = await (await bench()).go(both, [reset], { leaveAt: 1, reason: left });
  assert.deepEqual(results(late), ['unknown']);
  assert.equal(late.attempts[0]!.failedFirst, undefined);
  const unnamed = await (await bench()).go(both, [unreachable], { leaveAt: 1 });
  assert.equal(clientError(unnamed).status, 502);
  assert.equal(unnamed.attempts.length, 1);
});

test('a failure of the gateway itself is final, and recorded by whether the request had been sent', async () => {
  const error = new GatewayError('invalid_request', 'no');
  const before = await (await bench()).go(both, [{ error }]);
  assert.equal(before.error, error);
  assert.deepEqual(results(before), ['not_sent']);
  const after = await (await bench()).go(both, [{ sent: true, error: new TypeError('a defect') }]);
  assert.ok(after.error instanceof TypeError);
  assert.deepEqual(results(after), ['unknown']);
});

test('each attempt is marked as sent by itself', async () => {
  const error = new GatewayError('internal', 'no');
  const trip = await (await bench()).go(both, [refusal(503), { error }]);
  assert.deepEqual(results(trip), ['refused', 'not_sent']);
});

test('the number of attempts is the configured one, and never above eight', async () => {
  const many = {
    a: { keys: Array.from({ length: 20 }, (_, index) => `key-${index}`), speaks: { chat: 'https://a.example' } },
  };
  const eight = await (await bench({ attempts: 8, breaker: { failures: 32 } }, many)).go(
    modelWith('a'),
    new Array(20).fill(unreachable),
  );
  assert.equal(eight.attempts.length, 8);
  assert.equal(new Set(credentials(eight)).size, 8, 'no key twice');
  const one = await (await bench({ attempts: 1 }, many)).go(modelWith('a'), [unreachable]);
  assert.equal(one.attempts.length, 1);
  await assert.rejects(bench({ attempts: 9 }, many), /8/);
});

test('a request does not try a key twice', async () => {
  const trip = await (await bench()).go(onlyB, [unreachable]);
  assert.equal(trip.attempts.length, 1);
  assert.equal(clientError(trip).status, 502);
});
