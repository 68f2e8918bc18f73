/** Limits' own settings, changed while the gateway serves: the counters go on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../../core/contract/contract.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { plan } from '../../../plugins/common/domain/plans.ts';
import plugin from '../../../plugins/rate-limit/index.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

const endpoint: Endpoint = { method: 'POST', path: '/x', operation: 'x' };
const exchange = () =>
  fakeExchange({
    endpoint,
    facts: [
      [caller, { accountId: 'a', keyId: 'k', plan: 'p', models: undefined }],
      [plan, { name: 'p', limits: { rpm: 1 }, models: undefined, multiplier: undefined }],
    ],
  });

test('after a reload other endpoints are limited, and taken units stay taken', async () => {
  const part = await setUp(plugin, fakeHost(), { endpoints: ['x'] });
  await part.handle!(exchange(), async () => okAnswer);
  const commit = await prepare(plugin, part, { endpoints: ['x', 'y'], reserve: { output_tokens: 10 } });
  assert.equal(part.applies!({ ...endpoint, operation: 'y' }), false);
  commit();
  assert.equal(part.applies!({ ...endpoint, operation: 'y' }), true);
  await assert.rejects(async () => part.handle!(exchange(), async () => okAnswer), { kind: 'rate_limited' });
});

test('an invalid section is refused and changes nothing', async () => {
  const part = await setUp(plugin, fakeHost(), { endpoints: ['x'] });
  await assert.rejects(prepare(plugin, part, { endpoints: [''] }));
  assert.equal(part.applies!(endpoint), true);
});
