/** The table of orders in a database: whether an order stands, and which process settles it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { OrderRows } from '../../../plugins/admission/orders.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import type { AdmittedCall } from '../../../plugins/common/wire/admission-rules.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { requestIdAt } from '../../helpers/fakes.ts';

let store: TestDatabase;
let rows: OrderRows;
before(async () => {
  store = await openDatabase({ plugins: ['admission'] });
  rows = new OrderRows(store);
});
after(() => store.close());

const callOf = (): AdmittedCall => ({
  id: requestIdAt(1_800_000_000_000),
  at: 1_800_000_000_000,
  caller: { accountId: 'a', keyId: 'k' },
  operation: 'videos',
  model: 'v',
  amount: money(12n),
});
const end = { outcome: 'answered', cost: money(7n), usage: { second: 5 }, sent: true } as const;

test('an order that was rolled back does not stand, and leaves no row; one that is committed does', async () => {
  const [gone, placed] = [callOf(), callOf()];
  await assert.rejects(
    store.orm.transaction(async (orm) => {
      await rows.add(orm, gone, [['a', 'one']]);
      throw new Error('rolled back');
    }),
  );
  assert.equal(await rows.stands(gone), false);
  assert.equal(await rows.stands(gone), false);
  await store.orm.transaction((orm) => rows.add(orm, placed, [['a', 'one']]));
  assert.equal(await rows.stands(placed), true);
});

test('a running call of an owner is no order until it is kept as one, and a kept one is no running call', async () => {
  const call = callOf();
  await rows.add(undefined, call, [['a', 'one']], 'me');
  assert.deepEqual(await rows.running('me'), [call]);
  assert.deepEqual(await rows.running('another'), []);
  assert.equal(await rows.stands(call), false);
  await store.orm.transaction((orm) => rows.add(orm, call, [['b', 'two']]));
  assert.deepEqual(await rows.running('me'), []);
  assert.equal(await rows.stands(call), true);
  await rows.end(undefined, call.id, end);
  assert.deepEqual((await rows.take(call.id))?.reservations, [['b', 'two']]);
  await rows.delete(call.id);
});

test('an ended order is taken by one process, with all that was kept, and by another one when the lease has ended', async () => {
  const call = callOf();
  await rows.add(store.orm, call, [['a', 'one']]);
  assert.equal(await rows.take(call.id), undefined);
  await rows.end(store.orm, call.id, end);
  await rows.end(store.orm, call.id, { ...end, cost: money(9n) });
  assert.deepEqual(await rows.due(), [call.id]);
  const taken = await Promise.all([rows.take(call.id), rows.take(call.id)]);
  assert.deepEqual(
    taken.filter((one) => one !== undefined),
    [{ call, reservations: [['a', 'one']], end }],
  );
  assert.deepEqual(await rows.due(), []);
  await store.orm.execute(
    sql`update ${sql.identifier(store.schema)}.admitted_orders set leased_until = now() - interval '1 second'`,
  );
  assert.deepEqual(await rows.due(), [call.id]);
  await rows.delete(call.id);
  assert.deepEqual(await rows.due(), []);
});
