/** What the key form means, in both directions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyRow } from '../../../../plugins/console/web/src/api/types.ts';
import { fieldsOf, isAmount, termsOf } from '../../../../plugins/console/web/src/pages/client/key-terms.ts';
import { spanOf } from '../../../../plugins/console/web/src/pages/client/period.ts';

const row: KeyRow = {
  id: 'k1',
  name: 'build server',
  prefix: 'sk-abc',
  models: ['a', 'b'],
  addresses: ['10.0.0.0/8'],
  limits: { rpm: 60, concurrency: 4 },
  cap: { amount: '5.00', every: 'day' },
  expiresAt: '2027-01-02T03:04:00.000Z',
  createdAt: '2026-11-01T00:00:00.000Z',
  lastUsedAt: null,
  revokedAt: null,
  spent30d: null,
};

test('a key that is opened and saved unchanged keeps its terms', () => {
  const { name, models, addresses, limits, cap, expiresAt } = row;
  assert.deepEqual(termsOf(fieldsOf(row), 0), { name, models, addresses, limits, cap, expiresAt });
});

test('an empty form means no bound', () => {
  assert.deepEqual(termsOf({ ...fieldsOf(undefined), name: ' mine ' }, 0), {
    name: 'mine',
    models: null,
    addresses: null,
    limits: null,
    cap: null,
    expiresAt: null,
  });
});

test('an expiry in days counts from now', () => {
  const terms = termsOf({ ...fieldsOf(undefined), expiry: '30' }, Date.UTC(2026, 10, 21));
  assert.equal(terms.expiresAt, '2026-12-21T00:00:00.000Z');
});

test('amounts are decimal USD above zero', () => {
  for (const text of ['5', '12.50', '0.000000001']) assert.ok(isAmount(text), text);
  for (const text of ['', '0', '0.00', '-1', '1,5', '1e3', '1.0000000001', 'NaN']) assert.ok(!isAmount(text), text);
});

test('a period begins on a whole minute, so that the same question is asked for a while', () => {
  const now = Date.UTC(2026, 10, 21, 8, 30, 59, 999);
  assert.deepEqual(spanOf('24h', now), { from: '2026-11-20T08:30:00.000Z', until: undefined });
  assert.deepEqual(spanOf('custom', now, { from: 'nonsense', until: '' }), { from: undefined, until: undefined });
});
