/** A database that is slow, not dead: a key that is read for the first time waits for a bounded time, and its lookup goes on. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { closeEmbedded } from './embedded.ts';
import { type Gate, openGate } from './setup.ts';

after(closeEmbedded);

/** The database gives no answer until the returned function is called. */
function hold(gate: Gate): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate.db.gate = promise;
  return () => {
    gate.db.gate = undefined;
    resolve();
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a key whose lookup takes too long gets 503 after 5 s, and the result once it was read', async (context) => {
  const gate = await openGate();
  const key = await gate.newKey();
  gate.db.statements = [];
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const letThrough = hold(gate);
  const refusals = [gate.refusal(key), gate.refusal(key)];
  await turn();
  context.mock.timers.tick(5_000);
  for (const { status, code, retryAfterMs } of await Promise.all(refusals))
    assert.deepEqual([status, code, retryAfterMs], [503, 'keys_unavailable', 1_000]);
  context.mock.timers.reset();
  const last = gate.send(key);
  letThrough();
  assert.equal((await last).accountId, gate.accountId);
  await gate.send(key);
  assert.equal(gate.db.statements.length, 1, 'all of them shared one lookup');
});

test('a known key whose account has changed is served unchanged while its lookup takes too long', async (context) => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  await gate.db.announce('account', gate.accountId);
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const letThrough = hold(gate);
  const served = gate.send(key);
  await turn();
  context.mock.timers.tick(5_000);
  assert.equal((await served).accountId, gate.accountId);
  letThrough();
});
