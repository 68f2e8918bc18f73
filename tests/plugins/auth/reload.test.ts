/** Who may come in, changed while the gateway serves. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Endpoint } from '../../../core/contract/contract.ts';
import auth from '../../../plugins/auth/index.ts';
import { prepare } from '../../helpers/fakes.ts';
import { closeEmbedded } from './embedded.ts';
import { openGate } from './setup.ts';

after(closeEmbedded);

const models: Endpoint = { method: 'GET', path: '/v1/models', operation: 'models' };

test('open endpoints, carriers and the bound on failures change at a reload; known keys stay known', async () => {
  const gate = await openGate();
  const { part } = gate;
  const key = await gate.newKey();
  await gate.send(key);
  const changed = { public: ['models'], carriers: ['bearer'], failures: { per_minute: 2 } };
  const commit = await prepare(auth, part, changed);
  assert.equal(part.applies!(models), true);
  commit();
  assert.equal(part.applies!(models), false);
  gate.db.statements = [];
  await gate.send(key);
  assert.deepEqual(gate.db.statements, [], 'it is still in memory');
  assert.match((await gate.refusal({ headers: { 'x-api-key': key } })).message, /missing/);
  await gate.refusal('nonsense');
  assert.equal((await gate.refusal('nonsense')).kind, 'rate_limited');
  assert.deepEqual(part.reload?.members, ['public', 'carriers', 'failures', 'secret', 'jwt']);
});

test('an unknown carrier is refused and changes nothing', async () => {
  const { part, ...gate } = await openGate();
  await assert.rejects(prepare(auth, part, { public: ['models'], carriers: ['pigeon'] }));
  assert.equal(part.applies!(models), true);
  await gate.send({ headers: { 'x-api-key': await gate.newKey() } });
});
