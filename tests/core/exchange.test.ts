/** What becomes of an exchange whose client leaves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../core/clock.ts';
import type { Endpoint } from '../../core/contract.ts';
import { deadlinePassed, LiveExchange } from '../../core/exchange.ts';

function exchange(outlives: boolean): LiveExchange {
  const endpoint: Endpoint = { method: 'POST', path: '/', operation: 'x' };
  const live = new LiveExchange(
    'id',
    endpoint,
    undefined as never,
    undefined as never,
    undefined as never,
    systemClock,
  );
  if (outlives) live.outlive({ longestMs: 1_000, maxBytes: 100 });
  return live;
}

test('all stops when the client leaves', () => {
  const live = exchange(false);
  live.hasSent = true;
  live.leave(0);
  assert.equal(live.aborted?.kind, 'client_left');
  assert.ok(live.signal.aborted);
});

test('what was sent for an exchange that outlives its client goes on, until its deadline', () => {
  const live = exchange(true);
  live.hasSent = true;
  live.leave(0);
  assert.equal(live.left?.kind, 'client_left');
  assert.ok(!live.signal.aborted);
  live.abort(deadlinePassed());
  assert.equal(live.aborted?.kind, 'upstream_timeout');
});

test('what was not sent yet is not sent any more', () => {
  const live = exchange(true);
  live.leave(0);
  assert.equal(live.aborted?.kind, 'client_left');
});

test('what goes on without its client ends with its time and its bytes', () => {
  for (const [now, bytes] of [
    [1_001, 0],
    [500, 101],
  ] as const) {
    const live = exchange(true);
    live.hasSent = true;
    live.leave(0);
    assert.ok(live.readsOn(1_000, 0));
    assert.ok(!live.readsOn(now, bytes));
    assert.equal(live.aborted?.kind, 'client_left');
  }
});
