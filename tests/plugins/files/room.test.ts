/** Room for files: a part for accounts that have paid, and limits that hold while files of several processes come at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { uploadedFiles } from '../../../plugins/common/domain/stored-files.ts';
import { openDatabase } from '../../helpers/database.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { fc } from '../../helpers/properties.ts';
import { never, openRooms, owner, png, type Rooms } from './setup.ts';

const paying = new Set(['paid-1', 'paid-2']);
const isPaid = (accountId: string) => paying.has(accountId);
/** Bytes that are sniffed as an image. */
const image = (bytes: number) => Buffer.concat([png.subarray(0, 40), Buffer.alloc(bytes - 40, 1)]);

async function sums(rooms: Rooms): Promise<Map<string, number>> {
  const { orm, schema, close } = await openDatabase({ schema: rooms.schema });
  try {
    const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
    const rows = [
      ...((await orm.execute(
        sql`select u.account_id, u.bytes::int as counted, coalesce(sum(f.bytes), 0)::int as bytes
          from ${table('file_usage')} as u left join ${table('files')} as f using (account_id) group by u.account_id, u.bytes`,
      )) as unknown as Iterable<{ account_id: string; counted: number; bytes: number }>),
    ];
    for (const { counted, bytes } of rows) assert.equal(counted, bytes);
    return new Map(rows.map((row) => [row.account_id, row.counted]));
  } finally {
    await close();
  }
}

interface Wanted {
  readonly account: string;
  readonly bytes: number;
  readonly second: boolean;
  readonly kind: 'file' | 'space' | 'removal';
}

test('concurrent files and spaces of two processes never exceed the limits of an account, of those that have not paid, and of all', async () => {
  const total = 10_000;
  const limits = { account: 6_000, free: 5_000, freeAccount: 2_000 };
  const settings = { total_limit: total, account_limit: limits.account, free: { limit: 0.5, account: 0.2 } };
  const wanted = fc.record<Wanted>({
    account: fc.constantFrom('paid-1', 'paid-2', 'free-1', 'free-2', 'free-3', 'free-4'),
    bytes: fc.integer({ min: 50, max: 2_500 }),
    second: fc.boolean(),
    kind: fc.constantFrom('file', 'file', 'space', 'removal'),
  });
  const rooms = await openRooms(settings, {}, paying);
  const other = await rooms.beside();
  let task = 0;
  const run = async ({ account, bytes, second, kind }: Wanted, _: number, group: readonly Wanted[]) => {
    const { keeper } = second ? other : rooms;
    task += 1;
    if (kind === 'removal') return keeper.removeOfAccount(account);
    const work =
      kind === 'file'
        ? keeper.keep(image(bytes), 'image', owner(`t${task}`, 0, account), never)
        : keeper.reserve(account, `s${account}`, bytes, { lifetimeMs: 60_000, fits: true });
    const isRemoved = group.some((one) => one.kind === 'removal' && one.account === account);
    await work.catch((error: unknown) => {
      assert.ok(
        error instanceof GatewayError &&
          (/^(file_space_used_up|storage_full)$/.test(error.code ?? '') || (isRemoved && error.kind === 'conflict')),
        String(error),
      );
    });
  };
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(wanted, { minLength: 1, maxLength: 8 }), { maxLength: 5 }), async (groups) => {
        for (const group of groups) {
          await Promise.all(group.map(run));
          await rooms.keeper.sweep();
          const used = await sums(rooms);
          const of = (filter: (account: string) => boolean) =>
            [...used].reduce((sum, [account, bytes]) => sum + (filter(account) ? bytes : 0), 0);
          assert.ok(of(() => true) <= total);
          assert.ok(of((account) => !isPaid(account)) <= limits.free);
          for (const [account, bytes] of used)
            assert.ok(bytes <= (isPaid(account) ? limits.account : limits.freeAccount), `${account}: ${bytes}`);
        }
        for (const account of ['paid-1', 'paid-2', 'free-1', 'free-2', 'free-3', 'free-4'])
          await rooms.keeper.removeOfAccount(account);
        rooms.host.advance(120_000);
        await rooms.keeper.sweep();
        assert.ok([...(await sums(rooms)).values()].every((bytes) => bytes === 0));
      }),
      { numRuns: 12 },
    );
  } finally {
    await rooms.close();
  }
});

test('accounts that have not paid fill only their part, and one that has paid finds space as before', async () => {
  const rooms = await openRooms({ total_limit: 10_000, free: { limit: 0.4, account: 0.15 } }, {}, paying);
  const keep = (account: string, bytes: number) =>
    rooms.keeper.keep(image(bytes), 'image', owner(`${account}-${bytes}`, 0, account), never).then(
      () => 'kept',
      (error: GatewayError) => error.code,
    );
  try {
    assert.equal(await keep('free-1', 1_500), 'kept');
    assert.equal(await keep('free-1', 50), 'file_space_used_up');
    assert.equal(await keep('free-2', 1_500), 'kept');
    assert.equal(await keep('free-3', 1_001), 'storage_full');
    assert.equal(await keep('free-3', 1_000), 'kept');
    assert.equal(await keep('free-4', 50), 'storage_full');
    await assert.rejects(rooms.keeper.ensureRoom('free-4'), { code: 'storage_full' });
    assert.equal(await keep('paid-1', 5_000), 'kept');
    await rooms.keeper.ensureRoom('paid-1');
    assert.equal(await keep('paid-2', 1_001), 'storage_full');
    assert.equal(await keep('paid-2', 1_000), 'kept');
  } finally {
    await rooms.close();
  }
});

test('space beyond the limit is counted where it has arrived already, and refuses further space', async () => {
  const rooms = await openRooms({ account_limit: 1_000 });
  const terms = { lifetimeMs: 60_000, fits: false };
  try {
    await rooms.keeper.reserve('one', 's', 1_500, terms);
    assert.equal(await rooms.keeper.hasRoom('one'), false);
    await assert.rejects(rooms.keeper.reserve('one', 't', 10, { ...terms, fits: true }), {
      code: 'file_space_used_up',
    });
    await rooms.keeper.reserve('one', 's', 100, { ...terms, fits: true });
    assert.equal(await rooms.keeper.hasRoom('one'), true);
    await rooms.keeper.release('one', 's');
    assert.deepEqual(await sums(rooms), new Map([['one', 0]]));
  } finally {
    await rooms.close();
  }
});

test('an account has paid after a top-up, not after a gift, and no longer after all of it was paid back', async (context) => {
  const running = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, models, billing, route, files]
plans: { default: free, offers: { free: { price: 0 } } }
files: { origin: "http://127.0.0.1", disk_reserve: 1MB, total_limit: 1000, free: { limit: 0.2, account: 0.1 } }
`);
  context.after(() => running.stop());
  const { gateway } = running;
  const money = gateway.find(ledger)!;
  const files = gateway.find(uploadedFiles)!;
  const { id } = await gateway.find(accounts)!.create('one', 'free');
  const reserve = (bytes: number) =>
    files.reserve(id, 'rows', bytes, { lifetimeMs: 60_000, fits: true }).then(
      () => 'kept',
      ({ code }) => code,
    );
  await money.credit(id, parseUsd('5'), { kind: 'promotion', reason: 'a gift', reference: 'gift' });
  assert.equal(await reserve(101), 'file_space_used_up');
  assert.equal(await reserve(100), 'kept');
  await money.credit(id, parseUsd('5'), { kind: 'top-up', reason: 'payment', reference: 'paid' });
  assert.equal(await reserve(900), 'kept');
  const { orm, schema } = gateway.find(database)!;
  const [row] = [
    ...((await orm.execute(sql`select paid from ${sql.identifier(schema)}.file_usage`)) as unknown as Iterable<{
      paid: boolean;
    }>),
  ];
  assert.equal(row!.paid, true);
  assert.equal(await reserve(50), 'kept');
  await gateway.find(pool)!.refundCredit(id, 'paid', parseUsd('5'), { reason: 'back', reference: 'back' });
  assert.equal(await reserve(101), 'file_space_used_up');
});
