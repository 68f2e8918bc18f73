/** Administration of the shop: offers, codes by pages and batches, and the same rules as on the command line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type CodeGift, type CodeView, shopAdmin } from '../../../plugins/common/domain/admin/shop.ts';
import { makeCodes, openStall, redeem, statuses, usd } from './stall.ts';

const dayMs = 24 * 3_600_000;
const five: CodeGift = { kind: 'balance', amount: usd('5'), lastsMs: undefined };
const one = { batch: undefined, gift: five, count: 1, maxUses: 1, oncePerAccount: true, expiresAt: undefined };

test('paid plans are offered, and free ones are not', async () => {
  const stall = await openStall();
  const names = stall.host.get(shopAdmin).offers();
  assert.deepEqual(names.map(({ name }) => name).sort(), ['day', 'pro', 'saver']);
});

test('both kinds of codes are listed in pages, newest first, and never in full', async () => {
  const stall = await openStall();
  const admin = stall.host.get(shopAdmin);
  const first = await admin.createCodes({ ...one, batch: 'autumn', count: 7, maxUses: 2 });
  stall.host.advance(1_000);
  const typed = await makeCodes(stall, { plan: 'pro', days: '3', count: '2', batch: 'winter', expires: '30d' });
  const rows: CodeView[] = [];
  for (let after: string | undefined; ; ) {
    const page = await admin.codes({}, { limit: 4, after });
    rows.push(...page.rows);
    if (page.next === undefined) break;
    after = page.next;
  }
  assert.deepEqual(
    rows.map(({ batch }) => batch),
    ['winter', 'winter', ...Array.from({ length: 7 }, () => 'autumn')],
  );
  assert.equal(new Set(rows.map(({ id }) => id)).size, 9);
  assert.deepEqual(rows[0]!.gift, { kind: 'days', plan: 'pro', days: 3 });
  assert.equal(rows[0]!.expiresAt, stall.host.clock.now() + 30 * dayMs);
  const reported = JSON.stringify(rows, (_name, value) => (typeof value === 'bigint' ? String(value) : value));
  for (const code of [...first.codes, ...typed]) assert.ok(!reported.includes(code));
  assert.equal((await admin.codes({ batch: 'winter' }, { limit: 500 })).rows.length, 2);
});

test('batches count their codes and uses, and a batch is revoked at once', async () => {
  const stall = await openStall();
  const admin = stall.host.get(shopAdmin);
  const { codes } = await admin.createCodes({ ...one, batch: 'autumn', count: 3, maxUses: 2 });
  const createdAt = stall.host.clock.now();
  stall.host.advance(1_000);
  const other = await admin.createCodes(one);
  const [alice, bob] = [await stall.account('alice'), await stall.account('bob')];
  await redeem(stall, alice, codes[0]!);
  await redeem(stall, bob, codes[0]!);
  await redeem(stall, bob, codes[1]!);
  const used = (await admin.codes({}, { limit: 9 })).rows.find(({ uses }) => uses === 2)!;
  const page = await admin.redemptions(used.id, { limit: 1 });
  const rest = await admin.redemptions(used.id, { limit: 9, after: page.next });
  assert.deepEqual(
    [...page.rows, ...rest.rows],
    [bob, alice].map(({ id }) => ({ accountId: id, at: createdAt + 1_000 })),
  );
  assert.deepEqual(await admin.redemptions('no-id', { limit: 9 }), { rows: [], next: undefined });
  assert.deepEqual(await admin.batches(), [
    { batch: other.batch, codes: 1, uses: 0, createdAt: createdAt + 1_000 },
    { batch: 'autumn', codes: 3, uses: 3, createdAt },
  ]);
  assert.equal(await admin.revokeCodes('autumn'), 3);
  assert.equal(await admin.revokeCodes('autumn'), 0);
  const [row] = (await admin.codes({ batch: other.batch }, { limit: 1 })).rows;
  assert.equal(await admin.revokeCodes(row!.id), 1);
  assert.deepEqual(
    await statuses([redeem(stall, alice, codes[2]!), redeem(stall, alice, other.codes[0]!)]),
    [409, 409],
  );
  await stall.audit();
});

test('an impossible code is refused by its field', async () => {
  const stall = await openStall();
  const admin = stall.host.get(shopAdmin);
  const now = stall.host.clock.now();
  const wrong: [string, object][] = [
    ['count', { count: 0 }],
    ['count', { count: 10_001 }],
    ['maxUses', { maxUses: 1.5 }],
    ['batch', { batch: 'a b' }],
    ['expiresAt', { expiresAt: now }],
    ['expiresAt', { expiresAt: Number.NaN }],
    ['amount', { gift: { ...five, amount: 0n } }],
    ['lastsMs', { gift: { ...five, lastsMs: -1 } }],
    ['days', { gift: { kind: 'days', plan: 'pro', days: 0 } }],
    ['plan', { gift: { kind: 'plan', plan: 'no such plan' } }],
    ['after', {}],
  ];
  for (const [field, part] of wrong) {
    const work =
      field === 'after'
        ? admin.codes({}, { limit: 1, after: 'x' })
        : admin.createCodes({ ...one, ...(part as object) });
    await assert.rejects(work, (error: GatewayError) => error.field === field && error.status < 500, field);
  }
  assert.deepEqual((await admin.codes({}, { limit: 1 })).rows, []);
});
