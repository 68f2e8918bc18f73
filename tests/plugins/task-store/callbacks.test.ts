/** Callbacks go to the public internet alone, and each account has a secret of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GuardedClient, Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import { callbackSecret } from '../../../plugins/task-store/engine/callbacks.ts';

const inside = [
  'http://127.0.0.1:8080/',
  'http://[::1]:8080/',
  'http://169.254.169.254/latest/meta-data',
  'http://10.0.0.1:9000/',
  'http://user:password@example.com/',
  'http://example.com:22/',
  'file:///etc/passwd',
  'http://[::ffff:127.0.0.1]:8080/',
  'http://0x7f000001:8080/',
];

test('no callback is posted to a private address', async () => {
  const client = new GuardedClient({ allowPrivate: false, maxBytes: 0 });
  for (const address of inside) {
    const posting = client.post(address, '{}', {}, AbortSignal.timeout(2_000));
    await assert.rejects(posting, (error: unknown) => error instanceof Unfetchable, address);
  }
  await client.close();
});

test('a callback to a name that resolves to a private address is not connected', async () => {
  const lookup = ((_name: string, _options: object, callback: (error: null, found: object[]) => void) =>
    callback(null, [{ address: '127.0.0.1', family: 4 }])) as never;
  const client = new GuardedClient({ allowPrivate: false, maxBytes: 0, lookup });
  await assert.rejects(
    client.post('http://callbacks.example:8080/', '{}', {}, AbortSignal.timeout(2_000)),
    Unfetchable,
  );
  await client.close();
});

test('a secret belongs to an account, and is the same each time', () => {
  assert.equal(callbackSecret('gateway secret', 'alice'), callbackSecret('gateway secret', 'alice'));
  assert.notEqual(callbackSecret('gateway secret', 'alice'), callbackSecret('gateway secret', 'bob'));
  assert.match(callbackSecret('gateway secret', 'alice'), /^whsec_/);
});
