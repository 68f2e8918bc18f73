/** Kinds of alerts about traffic: what they ask, and what they make of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trafficKinds } from '../../../plugins/alerts/kinds/traffic.ts';
import type { Span } from '../../../plugins/common/domain/admin/pages.ts';
import type { RecentGroups, RequestFilter, RequestQueries } from '../../../plugins/common/domain/admin/requests.ts';

const groupOf = (group: string, ok: number, failed: number, p95?: number) => ({
  group,
  requests: ok + failed + 4,
  results: { ok, upstream_error: failed, client_error: 3, left: 1 },
  firstByte: { p50: p95, p95, p99: p95 },
});

function kindsOf(requested: string[], fails = () => false) {
  const queries = {
    async recentGroups({ from, until, withoutCauses }: RequestFilter): Promise<RecentGroups> {
      // An outage of a store of the gateway is not the model's.
      assert.ok(
        ['store_unavailable', 'balance_unavailable', 'keys_unavailable'].every((own) => withoutCauses!.includes(own)),
      );
      requested.push(`${from}-${until}`);
      if (fails()) throw new Error('the database is away');
      return { model: [groupOf('m', 3, 1, 1_200), groupOf('quiet', 0, 0)], provider: [groupOf('p', 1, 0)] };
    },
  };
  const kinds = trafficKinds(() => queries as unknown as RequestQueries);
  return (name: string, span: Span) => kinds.find((kind) => kind.name === name)!.measure!(span);
}

test('rules with one window share a read, and another window is read again', async () => {
  const requests: string[] = [];
  const measure = kindsOf(requests);
  const span = { from: 0, until: 600 };
  const [success, firstByte] = [await measure('model_success', span), await measure('model_first_byte', span)];
  assert.deepEqual(success, [{ subject: 'm', value: 0.75, sample: 4, fields: { failed: 1, answered: 3 } }]);
  assert.deepEqual(firstByte, [{ subject: 'm', value: 1_200, sample: 3, fields: { requests: 3 } }]);
  assert.deepEqual(await measure('provider_success', span), [
    { subject: 'p', value: 1, sample: 1, fields: { failed: 0, answered: 1 } },
  ]);
  assert.deepEqual(await measure('provider_first_byte', span), []);
  assert.deepEqual(requests, ['0-600']);
  await measure('model_success', { from: 30, until: 630 });
  assert.deepEqual(requests, ['0-600', '30-630']);
});

test('a failed read fails only the rules of its window', async () => {
  let isAway = true;
  const measure = kindsOf([], () => isAway);
  await assert.rejects(async () => await measure('model_success', { from: 0, until: 600 }), /away/);
  await assert.rejects(async () => await measure('model_first_byte', { from: 0, until: 600 }), /away/);
  isAway = false;
  assert.equal((await measure('model_success', { from: 30, until: 630 })).length, 1);
});
