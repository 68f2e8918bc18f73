/** Where notices look: accounts with new movements of money, capped keys, keys and plans that end, confirmed addresses, in the real tables. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { openAccountEnds } from '../../../plugins/auth/ends.ts';
import { openMovedAccounts } from '../../../plugins/billing/reports/moved.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { tableOf } from '../../../plugins/common/kit/sql.ts';
import { mailsOf } from '../../../plugins/console/members/in-charge.ts';
import { peopleTables } from '../../../plugins/console/people/tables.ts';
import { openDatabase } from '../../helpers/database.ts';

const ids = [1, 2, 3].map((number) => `01980000-0000-7000-8000-00000000000${number}`);
const [ada, bob, eve] = ids as [string, string, string];
const now = Date.UTC(2027, 0, 1);
const day = 86_400_000;
const at = (ms: number) => sql`${new Date(ms).toISOString()}::timestamptz`;

test('accounts that have moved are found behind a movement, so many movements at once, with their balances', async () => {
  await using database = await openDatabase({ plugins: ['billing'] });
  const { orm } = database;
  const moved = openMovedAccounts(database);
  assert.equal(await moved.latest(), 0n);
  assert.deepEqual(await moved.behind(0n, 10), { accountIds: [], upTo: 0n, isFull: false });
  for (const [place, account] of [ada, bob, ada, bob].entries())
    await orm.execute(sql`insert into ${tableOf(database, 'ledger')}
      (seq, account_id, kind, reference, amount, funding, balance_after, created_at)
      values (${place + 1}, ${account}, 'DEBIT', ${`r${place}`}, -1, 1, 0, now())`);
  await orm.execute(
    sql`insert into ${tableOf(database, 'balances')} (account_id, balance, held) values (${ada}, 7, 2)`,
  );
  assert.equal(await moved.latest(), 4n);
  assert.deepEqual(await moved.behind(0n, 3), { accountIds: [ada, bob], upTo: 3n, isFull: true });
  assert.deepEqual(await moved.behind(3n, 3), { accountIds: [bob], upTo: 4n, isFull: false });
  assert.deepEqual(
    await moved.balances([ada, bob]),
    new Map([
      [ada, 9n],
      [bob, 0n],
    ]),
  );
});

test('models that accounts have called since are found in the sums of their calls', async () => {
  await using database = await openDatabase({ plugins: ['billing'] });
  const { orm } = database;
  const sums = async (group: number, account: string, model: string, when: number) => {
    await orm.execute(
      sql`insert into ${tableOf(database, 'call_sums_groups')} values (${group}, ${account}, 'k', ${model}, 'p')`,
    );
    await orm.execute(sql`insert into ${tableOf(database, 'call_sums')} (account_id, group_id, at, part)
      values (${account}, ${group}, ${at(when)}, 0)`);
  };
  await sums(1, ada, 'm', now - 600_000);
  await sums(2, ada, 'old', now - day);
  await sums(3, bob, 'other', now);
  await sums(4, bob, 'm', now);
  await sums(5, eve, 'm', now);
  const used = await openMovedAccounts(database).used([ada, bob], ['m', 'old'], now);
  assert.deepEqual(
    used,
    new Map([
      [ada, new Set(['m'])],
      [bob, new Set(['m'])],
    ]),
  );
});

test('capped keys, and keys and plans that end in time, are found account by account; revoked keys and disabled accounts are not', async () => {
  await using database = await openDatabase({ plugins: ['auth'] });
  const { orm } = database;
  const account = (id: string, endsAt: number | undefined, disabled = false) =>
    orm.execute(sql`insert into ${tableOf(database, 'accounts')} (id, name, plan, disabled, created_at, plan_ends_at)
      values (${id}, ${id}, 'pro', ${disabled}, now(), ${endsAt === undefined ? null : at(endsAt)})`);
  await account(ada, now + day);
  await account(bob, now + 5 * day);
  await account(eve, now + day, true);
  const key = (
    owner: string,
    name: string,
    endsAt: number | undefined,
    more: { cap?: bigint; revoked?: boolean } = {},
  ) =>
    orm.execute(sql`insert into ${tableOf(database, 'keys')}
      (account_id, name, prefix, hash, expires_at, revoked_at, created_at, cap_amount, cap_every)
      values (${owner}, ${name}, 'sk-x', ${name}, ${endsAt === undefined ? null : at(endsAt)}, ${more.revoked ? sql`now()` : null}, now(),
        ${more.cap === undefined ? null : String(more.cap)}, ${more.cap === undefined ? null : 'week'})`);
  await orm.execute(sql`update ${tableOf(database, 'accounts')} set multiplier = '0.9' where id in (${bob}, ${eve})`);
  await key(ada, 'a', now + 2 * day);
  await key(ada, 'b', now + day, { cap: parseUsd('3') });
  await key(ada, 'over', now - day);
  await key(ada, 'gone', now + day, { cap: 1n, revoked: true });
  await key(bob, 'c', now + day);
  await key(bob, 'far', now + 90 * day);
  await key(eve, 'd', now + day, { cap: 1n });
  const ends = openAccountEnds(database, () => now);
  const capped = await ends.cappedKeys([ada, bob, 'not-an-id']);
  assert.deepEqual(
    capped.map(({ accountId, name, cap }) => ({ accountId, name, cap })),
    [{ accountId: ada, name: 'b', cap: { amount: parseUsd('3'), every: 'week' } }],
  );
  const names = async (after: string, most: number) =>
    (await ends.endingKeys(7 * day, after, most)).map(({ name }) => name);
  const standing = async (...options: Parameters<typeof ends.standing>) =>
    (await ends.standing(...options)).map(({ accountId, multiplier }) => [accountId, multiplier]);
  assert.deepEqual(await standing('', 9), [
    [ada, undefined],
    [bob, '0.9'],
  ]);
  assert.deepEqual(await standing(ada, 9, 'own ratio'), [
    [bob, '0.9'],
    [eve, '0.9'],
  ]);
  assert.deepEqual(await ends.standing('', 1), [
    { accountId: ada, plan: 'pro', planEndsAt: now + day, multiplier: undefined },
  ]);
  assert.deepEqual(await names('', 10), ['b', 'a', 'c']);
  assert.deepEqual(await names('', 2), ['b', 'a']);
  assert.deepEqual(await names(ada, 10), ['c']);
  const plans = await ends.endingPlans(3 * day, '', 10);
  assert.deepEqual(plans, [{ accountId: ada, plan: 'pro', endsAt: now + day }]);
});

test('keys are old by their last secret, account by account; young, revoked and expired ones and those of disabled accounts are not', async () => {
  await using database = await openDatabase({ plugins: ['auth'] });
  const { orm } = database;
  for (const [id, disabled] of [
    [ada, false],
    [bob, false],
    [eve, true],
  ] as const)
    await orm.execute(sql`insert into ${tableOf(database, 'accounts')} (id, name, plan, disabled, created_at)
      values (${id}, ${id}, 'pro', ${disabled}, now())`);
  const key = (
    owner: string,
    name: string,
    days: number,
    more: { rotated?: number; expired?: true; revoked?: true } = {},
  ) =>
    orm.execute(sql`insert into ${tableOf(database, 'keys')}
      (account_id, name, prefix, hash, created_at, rotated_at, expires_at, revoked_at)
      values (${owner}, ${name}, 'sk-x', ${name}, ${at(now - days * day)},
        ${more.rotated === undefined ? null : at(now - more.rotated * day)},
        ${more.expired ? at(now - 1) : null}, ${more.revoked ? at(now) : null})`);
  await key(ada, 'old', 90);
  await key(ada, 'older', 400, { rotated: 100 });
  await key(ada, 'renewed', 400, { rotated: 89 });
  await key(ada, 'young', 89);
  await key(ada, 'gone', 400, { revoked: true });
  await key(ada, 'over', 400, { expired: true });
  await key(bob, 'his', 91);
  await key(eve, 'hers', 400);
  const ends = openAccountEnds(database, () => now);
  const found = async (after: string, most: number) =>
    (await ends.oldKeys(90 * day, after, most)).map(({ name, since }) => [name, (now - since) / day]);
  assert.deepEqual(await found('', 9), [
    ['older', 100],
    ['old', 90],
    ['his', 91],
  ]);
  assert.deepEqual(await found('', 1), [['older', 100]]);
  assert.deepEqual(await found(ada, 9), [['his', 91]]);
});

test('mails of an account go to people who have confirmed their address and may sign in', async () => {
  await using database = await openDatabase({ plugins: ['console'] });
  const person = (email: string, account: string, verified: boolean, blocked = false) =>
    database.orm.execute(sql`insert into ${tableOf(database, 'console_people')}
      (id, name, email, email_verified, blocked, account_id, created_at, updated_at)
      values (${email}, 'x', ${email}, ${verified}, ${blocked}, ${account}, now(), now())`);
  await person('b@example.test', bob, true, true);
  await person('c@example.test', eve, false);
  await person('a@example.test', ada, true);
  const found = await mailsOf(database.orm, peopleTables(database.schema), () => undefined)(ids);
  assert.deepEqual(found, new Map([[ada, ['a@example.test']]]));
});
