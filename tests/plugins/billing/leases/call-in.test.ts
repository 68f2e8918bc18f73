/** Money that is taken beside calls while processes lease: what comes back may be leased again before it is taken. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { money } from '../../../../core/money.ts';
import type { Database } from '../../../../core/vocabulary.ts';
import { Changes } from '../../../../plugins/billing/changes.ts';
import { notThere } from '../../../../plugins/billing/entries.ts';
import type { Store } from '../../../../plugins/billing/store.ts';
import { fakeHost } from '../../../helpers/fakes.ts';

/** Changes of an account of 25 of which a living node leases `leased`; the takings end as said, one after the other. */
function changesOf(takings: readonly (Error | string)[], leased = 0n) {
  let isUpkeep = true;
  let taken = 0;
  const store = {
    // Each change begins with upkeep, of which there is nothing to do here.
    async transact() {
      if (isUpkeep) {
        isUpkeep = false;
        return { next: Number.POSITIVE_INFINITY, rows: 0 };
      }
      const taking = takings[taken++]!;
      if (typeof taking === 'string') return taking;
      throw taking;
    },
    funds: async () => new Map([['alice', { balance: money(25n), pool: undefined, term: undefined }]]),
    leases: { leasedOf: async () => ({ leased: money(leased), byLiving: leased === 0n ? money(1n) : money(leased) }) },
  };
  const announced: string[] = [];
  const announce = async (topic: string) => void announced.push(topic);
  const database = { shared: true, announce } as unknown as Database;
  const changes = new Changes(fakeHost(), database, store as unknown as Store, () => undefined);
  return { take: () => changes.change('alice', money(20n), async () => 'unused'), count: () => taken, announced };
}
const lacking = () => notThere('The balance does not cover this debit.');

test('what was free and is leased again before it is taken is asked for once more', async () => {
  const { take, count, announced } = changesOf([lacking(), 'taken']);
  assert.equal(await take(), 'taken');
  assert.equal(count(), 2);
  assert.deepEqual(announced, ['account'], 'nobody is told of what was refused: who heard of it would lease again');
});

test('it is refused after three times; and at once where it never was free, or for another reason', async () => {
  const often = changesOf([lacking(), lacking(), lacking(), 'taken']);
  await assert.rejects(often.take(), { code: 'insufficient_balance' });
  assert.equal(often.count(), 3);
  const neverFree = changesOf([lacking(), 'taken'], 10n);
  await assert.rejects(neverFree.take(), { code: 'insufficient_balance' });
  assert.equal(neverFree.count(), 1);
  const broken = changesOf([new Error('the database is away'), 'taken']);
  await assert.rejects(broken.take(), /away/);
  assert.equal(broken.count(), 1);
  assert.deepEqual(broken.announced, ['account'], 'it may have been done all the same');
});
