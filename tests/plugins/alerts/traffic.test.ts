/** Kinds of alerts about traffic: what they ask, and what they make of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trafficKinds } from '../../../plugins/alerts/kinds/traffic.ts';
import type { Span } from '../../../plugins/common/domain/admin/pages.ts';
import type { RequestQueries } from '../../../plugins/common/domain/admin/requests.ts';

const countsOf = (group: string, ok: number, failed: number) => ({
  group,
  results: { ok, upstream_error: failed, client_error: 3, left: 1 },
});

function kindsOf(asked: string[], fails = () => false) {
  const queries = {
    async groupCounts({ from, until }: Span, by: string) {
      asked.push(`counts ${by} ${from}-${until}`);
      if (fails()) throw new Error('the database is away');
      return [countsOf('m', 3, 1), countsOf('quiet', 0, 0), countsOf('', 5, 5)];
    },
    async groupTimes({ from, until }: Span, by: string, groups: readonly string[]) {
      asked.push(`times ${by} ${from}-${until} ${groups.join(' ')}`);
      return (group: string) => ({ firstByte: { p95: group === 'm' ? 1_200 : undefined } });
    },
  };
  const kinds = trafficKinds(() => queries as unknown as RequestQueries);
  return (name: string, span: Span) => kinds.find((kind) => kind.name === name)!.measure!(span);
}

test('rules of one window share what is read, and another window is read anew', async () => {
  const asked: string[] = [];
  const measure = kindsOf(asked);
  const span = { from: 0, until: 600 };
  const [success, firstByte] = [await measure('model_success', span), await measure('model_first_byte', span)];
  assert.deepEqual(success, [{ subject: 'm', value: 0.75, sample: 4, fields: { failed: 1, answered: 3 } }]);
  assert.deepEqual(firstByte, [{ subject: 'm', value: 1_200, sample: 3, fields: { requests: 3 } }]);
  assert.deepEqual(asked, ['counts model 0-600', 'times model 0-600 m quiet']);
  await measure('provider_success', span);
  await measure('model_success', { from: 30, until: 630 });
  assert.deepEqual(asked.slice(2), ['counts provider 0-600', 'counts model 30-630']);
});

test('a read that failed fails the rules of its window alone', async () => {
  let isAway = true;
  const measure = kindsOf([], () => isAway);
  await assert.rejects(async () => await measure('model_success', { from: 0, until: 600 }), /away/);
  await assert.rejects(async () => await measure('model_first_byte', { from: 0, until: 600 }), /away/);
  isAway = false;
  assert.equal((await measure('model_success', { from: 30, until: 630 })).length, 1);
});
