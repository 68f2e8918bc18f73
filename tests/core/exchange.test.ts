/** Exchanges after their client disconnects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  defineContextKey,
  type Endpoint,
  type Outcome,
  type UpstreamRequest,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { createLog } from '../../core/gateway/log.ts';
import { systemClock } from '../../core/gateway/system.ts';
import { deadlinePassed, LiveExchange } from '../../core/http/exchange.ts';

function exchange(outlives: boolean): LiveExchange {
  const endpoint: Endpoint = { method: 'POST', path: '/', operation: 'x' };
  const live = new LiveExchange(
    'id',
    endpoint,
    undefined as never,
    undefined as never,
    undefined as never,
    systemClock,
    { log: createLog('silent'), sources: [] },
  );
  if (outlives) live.continueAfterDisconnect({ longestMs: 1_000, maxBytes: 100 });
  return live;
}

test('everything stops when the client disconnects', () => {
  const live = exchange(false);
  live.attemptSent = true;
  live.disconnect(0);
  assert.equal(live.aborted?.kind, 'client_left');
  assert.ok(live.signal.aborted);
});

test('a sent request of an exchange that outlives its client continues until its deadline', () => {
  const live = exchange(true);
  live.attemptSent = true;
  live.disconnect(0);
  assert.equal(live.clientDisconnected?.kind, 'client_left');
  assert.ok(!live.signal.aborted);
  live.abort(deadlinePassed());
  assert.equal(live.aborted?.kind, 'upstream_timeout');
});

test('a request that was not sent yet is not sent after the client has disconnected', () => {
  const live = exchange(true);
  live.disconnect(0);
  assert.equal(live.aborted?.kind, 'client_left');
});

test('work that continues without its client ends at its limits of time and bytes', () => {
  for (const [now, bytes] of [
    [1_001, 0],
    [500, 101],
  ] as const) {
    const live = exchange(true);
    live.attemptSent = true;
    live.disconnect(0);
    assert.ok(live.shouldKeepReading(1_000, 0));
    assert.ok(!live.shouldKeepReading(now, bytes));
    assert.equal(live.aborted?.kind, 'client_left');
  }
});

const mark = defineContextKey<string>('mark');
const outrun = () => new GatewayError('client_left', 'Another one was first.');
const drained = { drain: { longestMs: 100, maxBytes: 100 } } as UpstreamRequest;

test('branches begin with the context values of their exchange, keep their own, and one becomes the exchange', () => {
  const live = exchange(false);
  live.set(mark, 'before');
  const [one, other] = [live.fork(), live.fork()];
  assert.deepEqual([one.get(mark), one.id, one.receivedAt], ['before', live.id, live.receivedAt]);
  one.set(mark, 'one');
  other.set(mark, 'other');
  assert.equal(live.get(mark), 'before');
  other.hasSent = true;
  other.join();
  assert.deepEqual([live.get(mark), live.hasSent], ['other', true]);
  other.set(mark, 'later');
  one.set(mark, 'lost');
  assert.equal(live.get(mark), 'later');
});

test('beforeSend hooks receive the sending branch', async () => {
  const live = exchange(false);
  const seen: (string | undefined)[] = [];
  live.beforeSend((sending) => void seen.push(sending.find(mark)));
  const [one, other] = [live.fork(), live.fork()];
  one.set(mark, 'one');
  other.set(mark, 'other');
  await Promise.all([other.readyToSend(), one.readyToSend(), live.readyToSend()]);
  assert.deepEqual(seen, ['other', 'one', undefined]);
});

test('stopping a branch stops it alone; stopping the exchange stops both', () => {
  const live = exchange(false);
  const [one, other] = [live.fork(), live.fork()];
  one.stop(outrun());
  assert.deepEqual([one.signal.aborted, other.signal.aborted, live.signal.aborted], [true, false, false]);
  live.abort(deadlinePassed());
  assert.equal(other.aborted?.kind, 'upstream_timeout');
  assert.equal(live.fork().aborted?.kind, 'upstream_timeout', 'one that comes too late');
});

test('a losing branch that is still read continues without the client until the deadline', () => {
  for (const [reason, isStopped] of [
    [outrun(), false],
    [deadlinePassed(), true],
  ] as const) {
    const live = exchange(false);
    const [winner, loser] = [live.fork(), live.fork()];
    winner.join();
    live.abort(reason);
    assert.deepEqual([winner.signal.aborted, loser.signal.aborted], [true, isStopped]);
  }
});

/** Two that have been sent, each by terms of its own. */
function racing(first: UpstreamRequest, second: UpstreamRequest) {
  const live = exchange(false);
  const [one, other] = [live.fork(), live.fork()];
  one.set(upstreamRequest, first);
  other.set(upstreamRequest, second);
  one.attemptSent = true;
  other.attemptSent = true;
  return { live, one, other };
}

test('after a disconnect the bounds are those of the first of several branches', () => {
  for (const [first, second, goesOn] of [
    [drained, {} as UpstreamRequest, true],
    [{} as UpstreamRequest, drained, false],
  ] as const) {
    const { live, other } = racing(first, second);
    live.disconnect(0);
    assert.deepEqual([live.aborted === undefined, other.aborted === undefined], [goesOn, goesOn]);
    assert.equal(other.clientDisconnected?.kind, goesOn ? 'client_left' : undefined);
  }
});

test('the bounds of a stopped branch are ignored', () => {
  for (const [first, second, goesOn] of [
    [drained, {} as UpstreamRequest, false],
    [{} as UpstreamRequest, drained, true],
  ] as const) {
    const { live, one, other } = racing(first, second);
    one.stop(outrun());
    live.disconnect(0);
    assert.deepEqual([live.aborted === undefined, other.aborted === undefined], [goesOn, goesOn]);
  }
});

test('the failure and the deferred work of a joined branch become those of the exchange', async () => {
  const live = exchange(false);
  const [one, other] = [live.fork(), live.fork()];
  const done: string[] = [];
  one.defer(() => void done.push('one'));
  other.fail(new GatewayError('upstream_failed', 'not sent'));
  assert.equal(live.failure, undefined);
  one.join();
  one.fail(new GatewayError('upstream_failed', 'reported'));
  assert.equal((live.failure as GatewayError | undefined)?.message, 'reported');
  await live.end({} as Outcome);
  assert.deepEqual(done, ['one']);
});
