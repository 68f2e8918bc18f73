/** The audit finds each kind of damage, and the operator's commands say what they did. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type Account, type Accounts, accounts } from '../../../plugins/common/domain/accounts.ts';
import { answer, enter, entered, leaveWorlds, newCall, newWorld, usd, type World } from './world.ts';

after(leaveWorlds);

/** Two charged calls, one open, one credit. */
async function busyWorld(): Promise<World> {
  const world = await newWorld({ credit: '1' });
  for (const output of [10, 100]) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output });
  }
  await enter(world, newCall());
  await world.tick('write the ledger');
  return world;
}

/** Does what the guards forbid, then puts them back. */
async function plant(world: World, ...statements: SQL[]): Promise<void> {
  const guarded = ['ledger', 'calls'].map(world.table);
  for (const table of guarded) await world.rows(sql`alter table ${table} disable trigger user`);
  for (const statement of statements) await world.rows(statement);
  for (const table of guarded) await world.rows(sql`alter table ${table} enable trigger user`);
}

const because = (reason: RegExp) => (error: Error) => reason.test(String(error.cause ?? error));

const damages: { name: string; rules: string[]; plant: (world: World) => Promise<void> }[] = [
  {
    name: 'a balance that was changed by hand',
    rules: ['M1'],
    plant: (world) => plant(world, sql`update ${world.table('balances')} set balance = balance + 1`),
  },
  {
    name: 'a balance that was deleted',
    rules: ['M1', 'M1'],
    plant: (world) => plant(world, sql`delete from ${world.table('balances')}`),
  },
  {
    name: 'a row whose sides do not add up',
    rules: ['M1', 'M1'],
    plant: (world) =>
      plant(
        world,
        sql`alter table ${world.table('ledger')} drop constraint ledger_balanced`,
        sql`update ${world.table('ledger')} set revenue = revenue + 1 where seq = (select min(seq) from ${world.table('ledger')})`,
      ),
  },
  {
    name: 'the sum of a side that was changed',
    rules: ['M1'],
    plant: (world) => plant(world, sql`update ${world.table('balances')} set funding = funding - 5`),
  },
  {
    name: 'a charge for more tokens than a call can have',
    rules: ['M17', 'M18', 'M9'],
    plant: (world) =>
      plant(
        world,
        sql`update ${world.table('calls')} set classes = '{"input": 1000, "output": 4000000000}'
          where id = (select id from ${world.table('calls')} where settled order by id limit 1)`,
      ),
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
    name: 'a charge that is gone',
    rules: ['M1', 'M1', 'M1', 'M17'],
    plant: (world) =>
      plant(
        world,
        sql`delete from ${world.table('calls')} where seq = (select min(seq) from ${world.table('calls')} where cost > 0)`,
      ),
  },
  {
    name: 'a charge that is no movement',
    rules: ['M1', 'M1', 'M1'],
    plant: (world) =>
      plant(
        world,
        sql`alter table ${world.table('calls')} drop constraint calls_moved`,
        sql`update ${world.table('calls')} set seq = null where seq = (select min(seq) from ${world.table('calls')} where cost > 0)`,
      ),
  },
  {
    name: 'a balance after a charge that does not follow',
    rules: ['M1', 'M1'],
    plant: (world) =>
      plant(
        world,
        sql`update ${world.table('calls')} set balance_after = balance_after + 1
          where seq = (select min(seq) from ${world.table('calls')} where cost > 0)`,
      ),
  },
  {
    name: 'a call that ended twice, once for another account',
    rules: ['M1', 'M1', 'M17', 'M4'],
    plant: (world) =>
      plant(
        world,
        sql`insert into ${world.table('calls')} select changed.* from (select * from ${world.table('calls')} where cost > 0 order by seq limit 1)
            as first, json_populate_record(null::${world.table('calls')}, (to_jsonb(first) || jsonb_build_object('account_id', 'bob',
              'seq', 1000, 'balance_after', -cost))::json) as changed`,
      ),
  },
  {
    name: 'a charge of an archived call without its file',
    rules: ['M1', 'M1', 'M1', 'M4'],
    plant: (world) =>
      plant(
        world,
        sql`insert into ${world.table('archived_charges')} values ('alice', 1000, gen_random_uuid(), 5, 0, now())`,
      ),
  },
  {
    name: 'a call that ended and still has money set aside',
    rules: ['M3'],
    plant: (world) =>
      plant(
        world,
        sql`insert into ${world.table('deposits')} (request_id, account_id, held, terms, created_at)
            select id, account_id, 5, '{}', now() from ${world.table('calls')} limit 1`,
        sql`update ${world.table('balances')} set balance = balance - 5, held = held + 5`,
      ),
  },
  {
    name: 'money that is set aside for nothing',
    rules: ['M3'],
    plant: (world) => plant(world, sql`update ${world.table('balances')} set balance = balance - 5, held = held + 5`),
  },
  {
    name: 'an authorization that no money is set aside for',
    rules: ['M3'],
    plant: (world) =>
      plant(
        world,
        sql`insert into ${world.table('deposits')} (request_id, account_id, held, terms, created_at)
            values (gen_random_uuid(), 'alice', 5, '{}', now())`,
      ),
  },
  ...[
    sql`ratio = '8/5'`,
    sql`classes = jsonb_set(classes, '{output}', '11')`,
    sql`price = jsonb_set(price::jsonb, '{input}', '"3000000000"')::json`,
    sql`classes = jsonb_set(classes, '{output}', '-10')`,
    sql`price = null`,
  ].map((formula, index) => ({
    name: `a charge whose formula comes to another amount, or to none (${index + 1})`,
    // Sums are kept of what was consumed.
    rules: index % 2 === 1 ? ['M17', 'M9'] : ['M9'],
    plant: (world: World) =>
      plant(
        world,
        sql`update ${world.table('calls')} set ${formula}
            where id = (select id from ${world.table('calls')} order by cost limit 1)`,
      ),
  })),
  {
    name: 'a call that is gone',
    rules: ['M1', 'M1', 'M17'],
    plant: (world) => plant(world, sql`delete from ${world.table('calls')}`),
  },
  {
    name: 'a call that tells another cost',
    rules: ['M1', 'M1', 'M1', 'M1', 'M17', 'M9', 'M9'],
    plant: (world) => plant(world, sql`update ${world.table('calls')} set cost = cost + 1`),
  },
  {
    name: 'a charge without an attempt',
    rules: ['M5', 'M5'],
    plant: (world) => plant(world, sql`update ${world.table('calls')} set attempts = '[]'`),
  },
  {
    name: 'a grant that was never credited',
    rules: ['M12'],
    plant: (world) =>
      plant(
        world,
        sql`with named as (insert into ${world.table('movement_references')} values ('planted', true, 'alice'))
            insert into ${world.table('grants')} (account_id, kind, amount, reason, reference, created_at)
            values ('alice', 'top-up', 5, 'test', 'planted', now())`,
      ),
  },
  {
    name: 'the name of an event without its movement, and one of another account',
    rules: ['M12', 'M12'],
    plant: async (world) => {
      const names = world.table('movement_references');
      await plant(world, sql`insert into ${names} values ('nothing', false, 'alice')`);
      await world.rows(sql`alter table ${names} disable trigger immutable`);
      await world.rows(
        sql`update ${names} set account_id = 'bob' where ctid = (select min(ctid) from ${names} where is_grant)`,
      );
      await world.rows(sql`alter table ${names} enable trigger immutable`);
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
      world.leave();
      await world.stop();
    });
  }
});

test('ledger, calls and grants cannot be changed, deleted or emptied', async () => {
  const world = await busyWorld();
  for (const [name, column] of [
    ['ledger', 'amount'],
    ['calls', 'cost'],
    ['grants', 'amount'],
  ] as const) {
    const table = world.table(name);
    for (const statement of [
      sql`update ${table} set ${sql.identifier(column)} = 1`,
      sql`delete from ${table}`,
      sql`truncate ${table} cascade`,
    ]) {
      await assert.rejects(world.rows(statement), because(/immutable/));
    }
  }
  await world.stop();
});

test('the database refuses a row whose sides do not add up, a second end of a call, a charge that is no movement, and a negative cost', async () => {
  const world = await busyWorld();
  const [ledger, calls] = [world.table('ledger'), world.table('calls')];
  const insert = (kind: string, amount: number, revenue: number) =>
    world.rows(sql`insert into ${ledger} (account_id, kind, reference, amount, revenue, balance_after, created_at)
      values ('alice', ${kind}, ${kind}, ${amount}::bigint, ${revenue}::bigint, 0, now())`);
  await insert('PURCHASE', -1, 1);
  await assert.rejects(insert('DEBIT', -1, 0), 'sides');
  for (const kind of ['CHARGE', 'HOLD', 'EXTEND', 'SETTLE', 'VOID', 'LAPSE', 'CREDIT'])
    await assert.rejects(insert(kind, 0, 0), kind);
  await assert.rejects(
    world.rows(
      sql`insert into ${ledger} (account_id, kind, amount, balance_after, created_at) values ('a', 'CREDIT', 1, 1, now())`,
    ),
  );
  await assert.rejects(world.rows(sql`insert into ${calls} select * from ${calls} limit 1`), 'a second end');
  await world.rows(sql`alter table ${calls} disable trigger immutable`);
  await assert.rejects(world.rows(sql`update ${calls} set cost = -1`), because(/calls_cost_check|calls_moved/));
  await assert.rejects(world.rows(sql`update ${calls} set settled = false`), because(/calls_settled/));
  await assert.rejects(world.rows(sql`update ${calls} set seq = null where cost > 0`), because(/calls_moved/));
  await assert.rejects(
    world.rows(sql`update ${calls} set balance_after = null where cost > 0`),
    because(/calls_moved/),
  );
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
  return world.part.commandLine!.commands!.find((command) => command.name === name)!.run(values);
}

test('commands credit an account, show its rows with their formula, and audit, without a serving process', async () => {
  const served = await busyWorld();
  await served.stop();
  const world = await newWorld({ schema: served.host.schema, directory: served.directory, idle: true });
  world.host.provide(accounts, accountsOf(['alice']));
  const credited = await run(world, 'accounts credit', { name: 'alice', usd: '2.5', reason: 'a gift' });
  assert.deepEqual(credited.json, { account: 'alice', credited: '2.50', balance: '3.4949' });
  const shown = await run(world, 'ledger', { account: 'alice', limit: '3' });
  const { rows } = shown.json as { rows: { kind: string; change: string; balance_after: string; formula: string }[] };
  assert.deepEqual(
    rows.map(({ kind, change, balance_after }) => [kind, change, balance_after]),
    [
      ['CREDIT', '2.50', '3.4949'],
      ['CHARGE', '-0.003', '0.9949'],
      ['CHARGE', '-0.0021', '0.9979'],
    ],
  );
  assert.equal(rows[0]!.formula, 'a gift');
  assert.equal(rows[1]!.formula, '(1000 input × 2.00 + 100 output × 10.00) / 1M = 0.003 USD (v1)');
  assert.match(shown.text, /CHARGE .* 0\.9949 /);
  const audited = await run(world, 'audit', {});
  assert.deepEqual([audited.exitCode, audited.text], [0, 'All invariants hold: 1 accounts, 4 ledger rows.']);
  await plant(world, sql`update ${world.table('balances')} set balance = 0`);
  const wrong = await run(world, 'audit', {});
  assert.equal(wrong.exitCode, 1);
  assert.match(wrong.text, /M1: the balance is not the sum of the ledger rows: alice/);
});

test('a command that cannot run is refused in one sentence', async () => {
  const world = await newWorld({ idle: true });
  await assert.rejects(run(world, 'ledger', { account: 'alice' }), /no accounts/);
  world.host.provide(accounts, accountsOf(['alice']));
  const refused: [string, Record<string, string | undefined>, string][] = [
    ['accounts credit', { name: 'alice', usd: '1' }, 'reason'],
    ['accounts credit', { name: 'alice', usd: 'ten', reason: 'x' }, 'usd'],
    ['accounts credit', { name: 'alice', usd: '-1', reason: 'x' }, 'amount'],
    ['accounts credit', { name: 'missing', usd: '1', reason: 'x' }, 'account'],
    ['ledger', {}, 'account'],
    ['ledger', { account: 'alice', limit: '0' }, 'limit'],
  ];
  for (const [name, values, field] of refused) {
    await assert.rejects(run(world, name, values), (error) => (error as GatewayError).field === field);
  }
  assert.equal(await world.balance(), usd('0'));
});
