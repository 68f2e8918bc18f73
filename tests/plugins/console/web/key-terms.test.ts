/** What the key form means, in both directions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyRow } from '../../../../plugins/console/web/src/api/types.ts';
import { fieldsOf, isAmount, termsOf } from '../../../../plugins/console/web/src/pages/client/key-terms.ts';
import { before, type SpanName, startOf } from '../../../../plugins/console/web/src/parts/named-span.ts';

const row: KeyRow = {
  id: 'k1',
  name: 'build server',
  project: 'web',
  prefix: 'sk-abc',
  models: ['a', 'b'],
  addresses: ['10.0.0.0/8'],
  limits: { rpm: 60, concurrency: 4 },
  cap: { amount: '5.00', every: 'day' },
  images: 'wait',
  tags: ['team=search', 'env'],
  regions: ['eu'],
  access: null,
  person: null,
  expiresAt: '2027-01-02T03:04:00.000Z',
  createdAt: '2026-11-01T00:00:00.000Z',
  lastUsedAt: null,
  revokedAt: null,
  rotatedAt: null,
  replaced: [],
  spent30d: null,
  capSpent: null,
};

test('a key that is opened and saved unchanged keeps its terms', () => {
  const { name, project, models, addresses, limits, cap, expiresAt, images, tags, regions } = row;
  assert.deepEqual(termsOf(fieldsOf(row), 0), {
    name,
    project,
    models,
    addresses,
    limits,
    cap,
    expiresAt,
    images,
    tags,
    regions,
  });
});

test('an empty form means no bound', () => {
  assert.deepEqual(termsOf({ ...fieldsOf(undefined), name: ' mine ' }, 0), {
    name: 'mine',
    project: null,
    models: null,
    addresses: null,
    limits: null,
    cap: null,
    expiresAt: null,
    images: 'task',
    tags: null,
    regions: null,
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

test('a span begins on a whole hour or day, so that its query is reused for a while, and ends with today', () => {
  const now = new Date(2026, 10, 21, 8, 30, 59, 999);
  const from = (name: SpanName) => startOf(name, now);
  assert.deepEqual(from('24h'), new Date(2026, 10, 20, 9), '24 hours, this one among them');
  assert.deepEqual(from('today'), new Date(2026, 10, 21));
  assert.deepEqual(from('7d'), new Date(2026, 10, 15));
  assert.deepEqual(from('30d'), new Date(2026, 9, 23), 'days of a calendar: summer ends among them');
});

test('a span is compared with the preceding one of the same elapsed length', () => {
  const now = new Date(2026, 10, 21, 8, 30);
  assert.deepEqual(before('today', startOf('today', now)), new Date(2026, 10, 20));
  assert.deepEqual(before('today', now), new Date(2026, 10, 20, 8, 30));
  assert.deepEqual(before('30d', startOf('30d', now)), new Date(2026, 8, 23));
  assert.deepEqual(before('1h', now), new Date(2026, 10, 21, 7, 30));
});
