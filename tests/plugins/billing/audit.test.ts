/** The audit finds each kind of damage, and the operator's commands say what they did. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/errors.ts';
import { type Account, type Accounts, accounts } from '../../../core/vocabulary.ts';
import { answer, closeEngine, enter, newCall, newWorld, usd, type World } from './world.ts';

after(closeEngine);

/** Two charged calls, one open, one credit. */
async function busyWorld(): Promise<World> {
  const world = await newWorld();
  await world.credit('1');
  for (const output of [10, 100]) {
    const exchange = newCall();
    await enter(world, exchange);
    await answer(exchange, { input: 1_000, output });
  }
  await enter(world, newCall());
  await world.tick('write the ledger');
  return world;
}

/** Does what the guards forbid, then puts them back. */
async function plant(world: World, ...statements: SQL[]): Promise<void> {
  const ledger = world.table('ledger');
  await world.rows(sql`alter table ${ledger} disable trigger immutable`);
  for (const statement of statements) await world.rows(statement);
  await world.rows(sql`alter table ${ledger} enable trigger immutable`);
}

const damages: { name: string; rules: string[]; plant: (world: World) => Promise<void> }[] = [
  {
    name: 'a balance that was changed by hand',
    rules: ['M1'],
    plant: (world) => plant(world, sql`update ${world.table('balances')} set balance = balance + 1`),
  },
  {
    name: 'a balance that was deleted',
    rules: ['M1'],
    plant: (world) => plant(world, sql`delete from ${world.table('balances')}`),
  },
  {
    name: 'a row whose sides do not add up',
    rules: ['M1', 'M1', 'M4', 'M9'],
    plant: (world) =>
      plant(
        world,
        sql`alter table ${world.table('ledger')} drop constraint ledger_balanced`,
        sql`update ${world.table('ledger')} set revenue = revenue + 1 where seq = (select min(seq) from ${world.table('ledger')} where kind = 'SETTLE')`,
      ),
  },
  {
    name: 'totals that were changed',
    rules: ['M1'],
    plant: (world) => plant(world, sql`update ${world.table('totals')} set funding = funding - 5`),
  },
  {
    name: 'a balance after a row that does not follow',
    rules: ['M1', 'M1'],
    plant: (world) =>
      plant(world, sql`update ${world.table('ledger')} set balance_after = balance_after + 1 where kind = 'CREDIT'`),
  },
  {
    name: 'a trigger that is off',
    rules: ['M2'],
    plant: async (world) =>
      void (await world.rows(sql`alter table ${world.table('ledger')} disable trigger immutable`)),
  },
  {
    name: 'a trigger that is gone',
    rules: ['M2'],
    plant: async (world) => void (await world.rows(sql`drop trigger immutable on ${world.table('grants')}`)),
  },
  {
    name: 'an end without its hold',
    rules: ['M1', 'M1', 'M1', 'M1', 'M3', 'M3', 'P1'],
    plant: (world) =>
      plant(
        world,
        sql`delete from ${world.table('ledger')} where kind = 'HOLD' and seq = (select min(seq) from ${world.table('ledger')} where kind = 'HOLD')`,
      ),
  },
  {
    name: 'two ends of one request',
    rules: ['M3'],
    plant: (world) =>
      plant(
        world,
        sql`drop index ${world.table('ledger_end')}`,
        sql`insert into ${world.table('ledger')} (account_id, kind, request_id, amount, balance_after, created_at)
            select account_id, 'VOID', request_id, 0, (select balance from ${world.table('balances')}), now()
            from ${world.table('ledger')} where kind = 'SETTLE' limit 1`,
      ),
  },
  {
    name: 'an end that leaves money set aside',
    rules: ['M1', 'M1', 'M3', 'M4', 'M9', 'P1'],
    plant: (world) =>
      plant(
        world,
        sql`update ${world.table('ledger')} set held = held + 1, revenue = revenue - 1
            where kind = 'SETTLE' and seq = (select min(seq) from ${world.table('ledger')} where kind = 'SETTLE')`,
      ),
  },
  ...[
    sql`jsonb_set(detail, '{ratio}', '"8/5"')`,
    sql`jsonb_set(detail, '{usage,output}', '11')`,
    sql`jsonb_set(detail, '{price,input}', '"3000000000"')`,
    sql`jsonb_set(detail, '{usage,output}', '-10')`,
    sql`detail - 'price'`,
  ].map((formula, index) => ({
    name: `a charge whose formula comes to another amount, or to none (${index + 1})`,
    rules: ['M9'],
    plant: (world: World) =>
      plant(
        world,
        sql`update ${world.table('ledger')} set detail = ${formula}
            where seq = (select min(seq) from ${world.table('ledger')} where kind = 'SETTLE')`,
      ),
  })),
  {
    name: 'a usage row that is gone',
    rules: ['M4', 'M4'],
    plant: (world) => plant(world, sql`delete from ${world.table('usage')}`),
  },
  {
    name: 'a usage row that tells another cost',
    rules: ['M4', 'M4'],
    plant: (world) => plant(world, sql`update ${world.table('usage')} set cost = cost + 1`),
  },
  {
    name: 'a charge without an attempt',
    rules: ['M5', 'M5'],
    plant: (world) => plant(world, sql`delete from ${world.table('attempts')}`),
  },
  {
    name: 'a grant that was never credited',
    rules: ['M12'],
    plant: (world) =>
      plant(
        world,
        sql`insert into ${world.table('grants')} (account_id, kind, amount, reason, reference, created_at)
            values ('alice', 'top-up', 5, 'test', 'planted', now())`,
      ),
  },
  {
    name: 'an open hold that no journal knows of',
    rules: ['M3'],
    plant: async (world) => {
      const directory = join(world.directory, 'journal', world.host.schema);
      rmSync(join(directory, '0000000000000001.journal'));
    },
  },
];

test('the audit finds each kind of damage, and nothing else', async (t) => {
  const clean = await busyWorld();
  assert.deepEqual((await clean.audit()).violations, []);
  await clean.stop();
  for (const damage of damages) {
    await t.test(damage.name, async () => {
      const world = await busyWorld();
      await damage.plant(world);
      const found = await world.audit();
      assert.equal(found.ok, false);
      assert.deepEqual(found.violations.map(({ rule }) => rule).sort(), damage.rules);
      world.faults.down = true;
      await world.stop();
    });
  }
});

test('ledger and grants cannot be changed, deleted or emptied', async () => {
  const world = await busyWorld();
  for (const table of ['ledger', 'grants'].map(world.table)) {
    for (const statement of [
      sql`update ${table} set amount = 1`,
      sql`delete from ${table}`,
      sql`truncate ${table} cascade`,
    ]) {
      await assert.rejects(world.rows(statement), (error: Error) => /immutable/.test(String(error.cause ?? error)));
    }
  }
  await world.stop();
});

test('the database refuses a row whose sides do not add up, a second end and a negative charge', async () => {
  const world = await busyWorld();
  const ledger = world.table('ledger');
  const insert = (kind: string, held: number, revenue: number) =>
    world.rows(sql`insert into ${ledger} (account_id, kind, request_id, amount, held, revenue, balance_after, created_at)
      select account_id, ${kind}, request_id, ${-held - revenue}::bigint, ${held}::bigint, ${revenue}::bigint, 0, now()
      from ${ledger} where kind = 'SETTLE' limit 1`);
  for (const kind of ['SETTLE', 'VOID', 'EXPIRE', 'HOLD']) await assert.rejects(insert(kind, 0, 0), kind);
  await assert.rejects(
    world.rows(
      sql`insert into ${ledger} (account_id, kind, amount, balance_after, created_at) values ('a', 'CREDIT', 1, 1, now())`,
    ),
  );
  await assert.rejects(world.rows(sql`update ${world.table('usage')} set cost = -1`));
  await world.stop();
});

function accountsOf(names: string[]): Accounts {
  const list: Account[] = names.map((name) => ({ id: name, name, plan: 'free', createdAt: new Date(0) }));
  return {
    create: () => assert.fail('not asked for'),
    createKey: () => assert.fail('not asked for'),
    setPlan: () => assert.fail('not asked for'),
    find: async (name) => list.find((account) => account.name === name),
    list: async () => list,
  };
}

async function run(world: World, name: string, values: Record<string, string | undefined>) {
  return world.part.commands!.find((command) => command.name === name)!.run(values);
}

test('commands credit an account, show its rows with their formula, and audit, without a serving process', async () => {
  const served = await busyWorld();
  await served.stop();
  const world = await newWorld({ schema: served.host.schema, directory: served.directory, idle: true });
  world.host.provide(accounts, accountsOf(['alice']));
  const credited = await run(world, 'accounts credit', { name: 'alice', usd: '2.5', reason: 'a gift' });
  assert.deepEqual(credited.json, { account: 'alice', credited: '2.50', balance: '3.4919' });
  const shown = await run(world, 'ledger', { account: 'alice', limit: '3' });
  const { rows } = shown.json as { rows: { kind: string; amount: string; balance_after: string; formula: string }[] };
  assert.deepEqual(
    rows.map(({ kind, amount, balance_after }) => [kind, amount, balance_after]),
    [
      ['CREDIT', '2.50', '3.4919'],
      ['HOLD', '-0.003', '0.9919'],
      ['SETTLE', '0.00', '0.9949'],
    ],
  );
  assert.equal(rows[0]!.formula, 'a gift');
  assert.equal(rows[2]!.formula, '(1000 input × 2.00 + 100 output × 10.00) / 1M = 0.003 USD (v1)');
  assert.match(shown.text, /SETTLE .* 0\.9949 /);
  const audited = await run(world, 'audit', {});
  assert.deepEqual([audited.exitCode, audited.text], [0, 'All invariants hold: 1 accounts, 7 ledger rows.']);
  await plant(world, sql`update ${world.table('balances')} set balance = 0`);
  const wrong = await run(world, 'audit', {});
  assert.equal(wrong.exitCode, 1);
  assert.match(wrong.text, /M1: the balance is not the sum of the ledger rows: alice/);
});

test('commands refuse what they cannot do in one sentence', async () => {
  const world = await newWorld({ idle: true });
  await assert.rejects(run(world, 'ledger', { account: 'alice' }), /no accounts/);
  world.host.provide(accounts, accountsOf(['alice']));
  const refused: [string, Record<string, string | undefined>, string][] = [
    ['accounts credit', { name: 'alice', usd: '1' }, 'reason'],
    ['accounts credit', { name: 'alice', usd: 'ten', reason: 'x' }, 'usd'],
    ['accounts credit', { name: 'alice', usd: '-1', reason: 'x' }, 'amount'],
    ['accounts credit', { name: 'nobody', usd: '1', reason: 'x' }, 'account'],
    ['ledger', {}, 'account'],
    ['ledger', { account: 'alice', limit: '0' }, 'limit'],
  ];
  for (const [name, values, field] of refused) {
    await assert.rejects(run(world, name, values), (error) => (error as GatewayError).field === field);
  }
  assert.equal(await world.balance(), usd('0'));
});
