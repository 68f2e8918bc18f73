/** A node begins with what an earlier run has left returned, and only within the number of nodes that the settings allow. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLeaseLifecycle } from '../../../../plugins/billing/leases/lifecycle.ts';
import type { LeaseManager } from '../../../../plugins/billing/leases/manager.ts';
import type { Leases } from '../../../../plugins/billing/leases/store.ts';
import type { Database } from '../../../../plugins/common/domain/database.ts';
import { fakeHost } from '../../../helpers/fakes.ts';

function openWith(others: number) {
  const done: string[] = [];
  const leases = {
    countOthers: async () => others,
    heartbeat: async (_node, lives) => void done.push(lives ? 'lives' : 'has left'),
    returnAll: async () => void done.push('returned all'),
    accountsOf: async () => [],
  } as Partial<Leases> as Leases;
  const lifecycle = openLeaseLifecycle({
    host: fakeHost(),
    database: { onChange: () => {} } as Partial<Database> as Database,
    leases,
    shares: { returnAll: async () => void done.push('returned shares'), reclaim: async () => {} },
    manager: {} as LeaseManager,
    node: { journal: 'a', owner: 'a', epoch: 1 } as never,
    nodeLimit: 4,
  });
  return { lifecycle, done };
}

test('the last node within the setting begins; one more does not, and is no longer counted', async () => {
  const last = openWith(3);
  await last.lifecycle.begin();
  assert.deepEqual(last.done, ['returned all', 'returned shares']);
  await last.lifecycle.end();
  assert.deepEqual(last.done, ['returned all', 'returned shares', 'returned all', 'returned shares', 'has left']);
  const tooMany = openWith(4);
  await assert.rejects(tooMany.lifecycle.begin(), /4 other processes .* billing\.nodes is 4: raise it/);
  assert.deepEqual(tooMany.done, ['has left']);
});
