/** The operator's first page: findings, the steps that are left, errors by cause. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  doneSteps,
  type Facts,
  findingsIn,
  mild,
} from '../../../../plugins/console/web/src/pages/operator/overview/findings.ts';
import { placesFor, type Sources } from '../../../../plugins/console/web/src/parts/command-places.ts';

const key = { credential: 'a#1', disabled: false, restsMs: 0, modelRests: [] };
const day = (requests: number, failed: number, margin: string | null) =>
  ({
    requests,
    results: { ok: requests - failed, client_error: 0, upstream_error: failed, left: 0 },
    margin,
  }) as unknown as Facts['day'];
const upstream = (provider: string, keys: readonly object[]) =>
  ({ provider, disabled: false, keys, targets: [] }) as unknown as NonNullable<Facts['upstreams']>[number];

const well: Facts = {
  upstreams: [upstream('a', [key])],
  models: { all: 3, unpriced: 0 },
  day: day(100, 0, '1.00'),
  people: 2,
  mail: true,
};

test('a healthy or unknown state has no findings', () => {
  assert.deepEqual(findingsIn(well), []);
  const unknown = { upstreams: undefined, models: undefined, day: undefined, people: undefined, mail: false };
  assert.deepEqual(findingsIn(unknown), []);
  assert.equal(doneSteps(unknown), undefined);
});

test('vendors without a usable key, many failures, losses and missing prices are findings, the worst first', () => {
  const facts: Facts = {
    ...well,
    upstreams: [upstream('a', [{ ...key, restsMs: 60_000 }])],
    models: { all: 3, unpriced: 2 },
    day: day(100, 6, '-0.01'),
  };
  assert.deepEqual(
    findingsIn(facts).map(({ finding, count, names }) => [finding, count, names]),
    [
      ['broken', 1, ['a']],
      ['errors', 6, []],
      ['loss', 1, []],
      ['unpriced', 2, []],
    ],
  );
  const found = findingsIn({ ...well, day: day(10, 9, '1'), alerts: 1 });
  assert.deepEqual(
    found.map(({ finding, count }) => [finding, count, mild.includes(finding)]),
    [
      ['alerts', 1, false],
      ['few', 9, true],
    ],
    'a few calls say little, but not all is well',
  );
});

test('steps of the first day are completed one by one', () => {
  assert.equal(doneSteps(well)!.size, 5);
  const fresh: Facts = { upstreams: [], models: { all: 3, unpriced: 3 }, day: day(0, 0, null), people: 1, mail: false };
  assert.deepEqual([...doneSteps(fresh)!], []);
});

test('a few letters find pages, models, keys, accounts and actions; an id opens its request for people with the right to see it', () => {
  const sources: Sources = {
    pages: [
      { name: 'Audit log', path: '/admin/audit' },
      { name: 'Usage', path: '/usage' },
    ],
    models: ['gpt-5.4', 'claude-sonnet-5'],
    keys: [{ id: 'k1', name: 'laptop', prefix: 'sk-7Qx' }],
    accounts: [{ id: 'a/1', name: 'x', person: { name: 'Ada', email: 'ada@a.test' } }],
    requests: 'operator',
    batches: 'operator',
    tasks: true,
    actions: [
      { name: 'Create a key', to: '/keys', search: { new: '1' } },
      { name: 'Credit', asks: 'account', search: { act: 'credit' } },
      { name: 'Refund', asks: 'request', search: { act: 'refund' } },
    ],
  };
  const bare: Sources = { ...sources, accounts: [], tasks: false, actions: [] };
  assert.deepEqual(
    placesFor('lo', bare).map(({ name }) => name),
    ['Audit log'],
  );
  assert.deepEqual(placesFor('son', bare)[0]!.search, { open: 'claude-sonnet-5' });
  assert.equal(placesFor('ada', sources).at(-1)!.to, '/admin/accounts/a%2F1');
  const id = '01993c2e-7f9a-7cc0-8000-000000000001';
  assert.equal(placesFor(` ${id} `, sources)[0]!.to, `/admin/requests/${id}`);
  assert.deepEqual(placesFor(id, { ...sources, requests: 'own' })[0]!.search, { open: id });
  assert.deepEqual(placesFor(id, { ...bare, requests: 'none' }), []);
  assert.deepEqual(
    placesFor(id, sources).map(({ kind, to }) => [kind, to]),
    [
      ['request', `/admin/requests/${id}`],
      ['action', `/admin/requests/${id}`],
      ['task', '/tasks'],
    ],
  );
  assert.deepEqual(placesFor('sk-7q', bare)[0]!.search, { keyId: 'k1' });
  assert.equal(placesFor('batch_abc', bare)[0]!.to, '/admin/batches');
  assert.deepEqual(placesFor('batch_abc', { ...bare, batches: 'none' }), []);
  assert.equal(placesFor('cre', sources)[0]!.to, '/keys');
  assert.equal(placesFor('cred', sources)[0]!.fill, 'Credit ');
  const [credit] = placesFor('credit ada', sources);
  assert.deepEqual([credit!.to, credit!.search], ['/admin/accounts/a%2F1', { act: 'credit' }]);
  assert.deepEqual(placesFor(`Refund ${id}`, sources)[0]!.search, { act: 'refund' });
  assert.deepEqual(placesFor('refund ada', sources), []);
});
