/** Requests that continue what one upstream keeps: that upstream, that key, or a refusal that clients understand. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { providers } from '../../../plugins/common/domain/upstreams.ts';
import { bench, credentials, modelWith, ok, refusal } from './helpers.ts';

const vendors = {
  a: { keys: ['a-one', 'a-two', 'a-three'], speaks: { responses: 'https://a.example/v1' } },
  b: { keys: 'b-one', speaks: { chat: 'https://b.example/v1', responses: 'https://b.example/v1' } },
};
const pin = { provider: 'a', credential: 'a#2', protocol: 'responses' };
const options = { protocol: 'responses', pinned: pin };

test('a pinned request goes to its provider by its key, every time', async () => {
  const { go } = await bench({}, vendors);
  for (let round = 0; round < 5; round++) {
    const trip = await go(modelWith('b', 'a'), [ok], options);
    assert.deepEqual(credentials(trip), ['a#2']);
    assert.equal(trip.targets[0]!.key.reveal(), 'a-two');
    assert.equal(trip.targets[0]!.protocol, 'responses');
  }
});

test('a pinned request that its upstream refuses is tried nowhere else', async () => {
  const { go } = await bench({ attempts: 4 }, vendors);
  const trip = await go(modelWith('a', 'b'), [refusal(429, { retryAfterMs: 7_000 }), ok, ok], options);
  assert.deepEqual(credentials(trip), ['a#2']);
  assert.ok(trip.error instanceof GatewayError);
  assert.deepEqual([trip.error.kind, trip.error.retryAfterMs], ['rate_limited', 7_000]);
});

test('a pinned request whose key is in cooldown gets the wait, and nothing is sent', async () => {
  const { go, host } = await bench({}, vendors);
  host.get(providers).coolDown('a#2', 'a-m', 9_000, 'busy');
  const trip = await go(modelWith('a', 'b'), [ok], options);
  assert.deepEqual(credentials(trip), []);
  assert.ok(trip.error instanceof GatewayError);
  assert.deepEqual([trip.error.kind, trip.error.retryAfterMs], ['overloaded', 9_000]);
});

for (const [what, entry, pinned] of [
  ['whose key is gone', modelWith('a'), { ...pin, credential: 'a#9' }],
  ['whose provider is gone', modelWith('a'), { ...pin, provider: 'gone' }],
  ['whose model its provider does not serve', modelWith('b'), pin],
  ['whose provider no longer speaks its protocol', modelWith('a'), { ...pin, protocol: 'messages' }],
] as const) {
  test(`a pinned request ${what} is a previous response that was not found`, async () => {
    const { go } = await bench({}, vendors);
    const trip = await go(entry, [ok], { protocol: 'responses', pinned });
    assert.ok(trip.error instanceof GatewayError);
    const { status, code, field } = trip.error;
    assert.deepEqual([status, code, field], [400, 'previous_response_not_found', 'previous_response_id']);
    assert.deepEqual(credentials(trip), []);
  });
}

test('a pinned request whose key or provider is disabled is a previous response that was not found', async () => {
  for (const credential of ['a#2', undefined]) {
    const { go, host } = await bench({}, vendors);
    await host.get(upstreamAdmin).setDisabled('a', credential, true);
    const trip = await go(modelWith('a', 'b'), [ok], options);
    assert.deepEqual(credentials(trip), []);
    assert.equal((trip.error as GatewayError).code, 'previous_response_not_found');
  }
});
