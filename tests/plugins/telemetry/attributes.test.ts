/** How attempts are told apart in metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attempt } from '../../../plugins/common/domain/calls.ts';
import { attemptAttributes } from '../../../plugins/telemetry/attributes.ts';

const attempt = { provider: 'p', model: 'm', result: 'unknown', status: undefined } as Attempt;
const base = { 'gen_ai.provider.name': 'p', model: 'm' };

test('an attempt is counted by its end, a hedge as such, and one that another was faster than as lost', () => {
  assert.deepEqual(attemptAttributes(attempt), { ...base, result: 'unknown' });
  assert.deepEqual(attemptAttributes({ ...attempt, result: 'answered', status: 200, hedge: true }), {
    ...base,
    result: 'answered',
    status: 200,
    hedge: true,
  });
  assert.deepEqual(attemptAttributes({ ...attempt, lost: true }), { ...base, result: 'lost' });
});
