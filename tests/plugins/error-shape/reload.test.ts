/** The error shape, changed while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { errorShape } from '../../../plugins/common/domain/error-shape.ts';
import plugin from '../../../plugins/error-shape/index.ts';
import { fakeHost, prepare, setUp } from '../../helpers/fakes.ts';

test('errors are rendered in a new shape once it is applied, and an invalid one changes nothing', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host);
  const service = host.get(errorShape);
  const error = new GatewayError('rate_limited', 'Slower.');
  const both = () => [JSON.parse(part.renderError!(error, undefined)!.body as string), service.members(error, '')];
  const before = { code: 'RATE_LIMITED', message: 'Slower.' };
  const commit = await prepare(plugin, part, { body: { error: '{message}' } });
  assert.deepEqual(both(), [before, before]);
  commit();
  assert.deepEqual(both(), [{ error: 'Slower.' }, { error: 'Slower.' }]);
  await assert.rejects(prepare(plugin, part, { body: { error: '{secret}' } }), /may hold/);
  assert.deepEqual(both(), [{ error: 'Slower.' }, { error: 'Slower.' }]);
});
