/** Old calls in sealed files: nothing that anybody reads changes, refunds stay exact, and the audit finds what is missing or altered. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { sql } from 'drizzle-orm';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import type { Money } from '../../../plugins/common/domain/money.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import {
  type ArchiveWorld,
  archiveAll,
  archiveRoundOf,
  charge,
  commandOf,
  countIn,
  dayMs,
  fold,
  newArchiveWorld,
  newArchiveWorldOn,
  shownOf,
  written,
} from './archive-world.ts';
import { enter, leaveWorlds, newCall, usd, type World } from './world.ts';

after(leaveWorlds);

/** Calls of two accounts in three months, some of them free. */
async function oldWorld(section?: object): Promise<ArchiveWorld & { readonly ids: string[]; readonly from: number }> {
  const opened = await newArchiveWorld(section);
  const { world } = opened;
  const from = world.host.clock.now();
  await world.credit('5');
  await world.credit('5', 'bob');
  const ids: string[] = [];
  for (let day = 0; day < 80; day += 20) {
    for (const [accountId, output] of [
      ['alice', day],
      ['bob', day + 1],
      ['alice', day + 2],
    ] as const)
      ids.push(await charge(world, accountId, output, day % 40 === 0 ? 'key-1' : 'key-2'));
    const free = newCall({ accountId: 'alice' });
    await enter(world, free);
    await free.end();
    await written(world);
    world.host.advance(20 * dayMs);
  }
  await fold(world);
  return { ...opened, ids, from };
}

const rulesOf = async (world: World) => (await world.audit()).violations.map(({ rule }) => rule);

test('calls of whole months older than the setting leave the database, and every page shows the same', async () => {
  const opened = await oldWorld();
  const { world, files, ids, from } = opened;
  const before = await shownOf(world, ['alice', 'bob'], ids, from);
  const calls = await countIn(world, 'calls');
  await archiveAll(opened);
  const archived = [...files.objects.keys()];
  assert.ok(archived.length >= 4, archived.join());
  for (const name of archived) assert.match(name, /^archive\/[\w-]+\/(alice|bob)\/2027-0[12]-[0-9a-f]{64}\.jsonl\.gz$/);
  const left = await countIn(world, 'calls');
  assert.ok(left < calls && left > 0);
  assert.equal(await shownOf(world, ['alice', 'bob'], ids, from), before);
  assert.deepEqual((await world.audit()).violations, []);
});

test('free calls, recent calls and calls whose requests have facts stay rows', async () => {
  const opened = await oldWorld();
  const { world, ids } = opened;
  await world.rows(sql`update ${world.table('calls')} set status = 200 where id = ${ids[0]}::uuid`);
  await archiveAll(opened);
  const rows = await world.rows<{ id: string; free: boolean }>(
    sql`select id::text as id, cost = 0 as free from ${world.table('calls')} order by id`,
  );
  const kept = new Set(rows.filter(({ free }) => !free).map(({ id }) => id));
  assert.ok(kept.has(ids[0]!));
  assert.ok(ids.slice(-3).every((id) => kept.has(id)));
  assert.equal(rows.filter(({ free }) => free).length, 4);
});

test('an archived charge is refunded exactly, once for a reference, and up to its amount', async () => {
  const opened = await oldWorld();
  const { world, ids } = opened;
  await archiveAll(opened);
  const money = world.host.get(pool);
  const entry = (reference: string) => ({ reason: 'test', reference });
  const cost = usd('0.002');
  const before = await world.balance();
  await money.refundRequest('alice', ids[0]!, usd('0.0015'), entry('one'));
  await money.refundRequest('alice', ids[0]!, usd('0.0015'), entry('one'));
  await assert.rejects(money.refundRequest('alice', ids[0]!, usd('0.0006'), entry('two')), /0\.0005 USD can still/);
  await assert.rejects(money.refundRequest('bob', ids[0]!, usd('0.0001'), entry('three')), /no settled request/);
  await money.refundRequest('alice', ids[0]!, usd('0.0005'), entry('four'));
  assert.equal(await world.balance(), before + cost);
  assert.deepEqual((await world.audit()).violations, []);
});

test('a store that refuses, loses or changes a file keeps the calls in the database, and the next round continues', async () => {
  const opened = await oldWorld();
  const { world, files } = opened;
  const calls = await countIn(world, 'calls');
  files.failure = new Error('The bucket is away.');
  await assert.rejects(async () => archiveRoundOf(opened), /away/);
  files.failure = undefined;
  const { read } = files;
  files.read = async () => undefined;
  await assert.rejects(async () => archiveRoundOf(opened), /was stored and is missing/);
  // What a process leaves that dies between the file and its row.
  const [orphan] = files.objects.keys();
  files.read = async (name) => Buffer.concat([(await read.call(files, name, 1e6))!, Buffer.from('x')]);
  await assert.rejects(async () => archiveRoundOf(opened), /was stored and was altered/);
  assert.equal(await countIn(world, 'calls'), calls);
  assert.equal(await countIn(world, 'archives'), 0);
  files.read = read;
  await archiveAll(opened);
  const [row] = await world.rows<{ object: string }>(
    sql`select object from ${world.table('archives')} order by account_id, number limit 1`,
  );
  assert.equal(row!.object, orphan);
  assert.equal(files.objects.size, await countIn(world, 'archives'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('the database refuses to delete calls other than those of one file that the same transaction wrote', async () => {
  const opened = await oldWorld();
  const { world } = opened;
  const [calls, archives] = [world.table('calls'), world.table('archives')];
  const refused = (error: Error) => /immutable|not those of the file/.test(String(error.cause ?? error));
  await assert.rejects(world.rows(sql`delete from ${calls}`), refused);
  await archiveAll(opened);
  await assert.rejects(world.rows(sql`delete from ${calls} where account_id = 'bob'`), refused);
  await assert.rejects(world.rows(sql`truncate ${calls}`), refused);
  await assert.rejects(world.rows(sql`update ${calls} set cost = 0`), refused);
  await assert.rejects(world.rows(sql`update ${archives} set cost = 1`), refused);
  await assert.rejects(world.rows(sql`delete from ${archives}`), refused);
  const sealing = (edit: object, where: string) =>
    world.database.orm.transaction(async (transaction) => {
      const row = sql`(select max(number) + 1 from ${archives} where account_id = 'bob')`;
      await transaction.execute(sql`
        insert into ${archives} select (jsonb_populate_record(null::${archives}, to_jsonb(made) || ${JSON.stringify(edit)}::text::jsonb)).*
        from (select account_id, ${row} as number, '2027-03' as month, count(*)::int as calls, sum(cost)::bigint as cost, min(id::text)::uuid as first_id,
          max(id::text)::uuid as last_id, min(created_at) as first_at, max(created_at) as last_at, '{}' as header, 'none' as digest,
          null::text as previous, 'object' as object, 1 as bytes, now() as archived_at
          from ${calls} where account_id = 'bob' and settled group by 1) as made`);
      await transaction.execute(sql`delete from ${calls} where account_id = 'bob' and settled ${sql.raw(where)}`);
    });
  // All but the digest is right.
  await assert.rejects(sealing({}, ''), refused);
  await assert.rejects(sealing({ cost: 1 }, ''), refused);
  await assert.rejects(
    sealing(
      {},
      'and id = (select max(id::text)::uuid from calls_of_bob)'.replace(
        'calls_of_bob',
        `"${world.host.schema}".calls where account_id = 'bob'`,
      ),
    ),
    refused,
  );
  assert.deepEqual((await world.audit()).violations, []);
});

test('two processes do not archive at once, and the other takes over when the first has died', async () => {
  const opened = await oldWorld();
  const { world, files } = opened;
  const other = await newArchiveWorldOn(world, files);
  const put = files.put.bind(files);
  let done: unknown;
  files.put = async (name, bytes) => {
    // While one works, the other has nothing to do.
    done ??= await archiveRoundOf(other);
    await put(name, bytes);
  };
  await archiveRoundOf(opened);
  assert.equal(done, 'idle');
  const first = await countIn(world, 'archives');
  assert.ok(first > 0);
  await world.rows(sql`update ${world.table('archive_state')} set owned_until = now() - interval '1 second', account_id = '',
    after_id = '00000000-0000-0000-0000-000000000000'`);
  // It has the work, and what the first one goes on to seal is refused.
  files.put = async (name, bytes) => {
    await put(name, bytes);
    await world.rows(sql`update ${world.table('archive_state')} set owner = 'another'`);
  };
  const calls = await countIn(world, 'calls');
  world.host.advance(31 * dayMs);
  assert.equal(await archiveRoundOf(other), 'idle');
  assert.equal(await countIn(world, 'calls'), calls);
});

/** Each says how it is mended. */
const damages: {
  name: string;
  rules: string[];
  plant: (opened: ArchiveWorld) => Promise<() => unknown>;
}[] = [
  {
    name: 'a file that is missing',
    rules: ['A1', 'M17', 'M4'],
    plant: async ({ files }) => changed(files, () => undefined),
  },
  {
    name: 'a file of which a call was made cheaper',
    rules: ['A1', 'M17', 'M4'],
    plant: async ({ files }) =>
      changed(files, (bytes) => gzipSync(gunzipSync(bytes).toString().replace('"cost":2', '"cost":1'))),
  },
  {
    name: 'a file that was cut short',
    rules: ['A1', 'M17', 'M4'],
    plant: async ({ files }) => changed(files, (bytes) => bytes.subarray(0, -1)),
  },
  {
    name: 'a row of a file that names another sum',
    rules: ['A1'],
    plant: async ({ world }) => {
      const change = (by: number) =>
        unguarded(world, sql`update ${world.table('archives')} set cost = cost + ${by}::int where number = 1`);
      await change(1);
      return () => change(-1);
    },
  },
  {
    name: 'a trigger for deletions that is off',
    rules: ['M2'],
    plant: async ({ world }) => {
      const turn = (how: string) =>
        world.rows(sql`alter table ${world.table('calls')} ${sql.raw(how)} trigger archived`);
      await turn('disable');
      return () => turn('enable');
    },
  },
  {
    name: 'an archived call that is a row too',
    rules: ['M1', 'M17', 'M4'],
    plant: async ({ world, files }) => {
      const [, line] = gunzipSync([...files.objects.values()][0]!)
        .toString()
        .split('\n');
      const calls = world.table('calls');
      await world.rows(
        sql`insert into ${calls} select changed.* from ${world.table('archived_charges')} as charges, json_populate_record(null::${calls},
            (${line}::text::jsonb || jsonb_build_object('seq', seq, 'balance_after', balance_after))::json) as changed
            where charges.id = ${line!.slice(7, 43)}::uuid`,
      );
      return async () => {
        await world.rows(sql`alter table ${calls} disable trigger archived`);
        await world.rows(sql`delete from ${calls} where id = ${line!.slice(7, 43)}::uuid`);
        await world.rows(sql`alter table ${calls} enable trigger archived`);
      };
    },
  },
  {
    name: 'a row of a file that was removed',
    rules: ['A1', 'M17', 'M4'],
    plant: async ({ world }) => {
      await unguarded(world, sql`delete from ${world.table('archives')} where number = 1 and account_id = 'alice'`);
      return () => {};
    },
  },
];

/** Another first file. */
function changed({ objects }: ArchiveWorld['files'], change: (bytes: Uint8Array) => Uint8Array | undefined) {
  const [name, bytes] = [...objects].find(([each]) => each.includes('/alice/'))!;
  const other = change(bytes);
  if (other === undefined) objects.delete(name);
  else objects.set(name, other);
  return () => objects.set(name, bytes);
}

async function unguarded(world: World, statement: ReturnType<typeof sql>): Promise<void> {
  await world.rows(sql`alter table ${world.table('archives')} disable trigger immutable`);
  await world.rows(statement);
  await world.rows(sql`alter table ${world.table('archives')} enable trigger immutable`);
}

test('the audit and the verification find each kind of damage', async () => {
  const opened = await oldWorld();
  const { world } = opened;
  await archiveAll(opened);
  for (const { name, rules, plant } of damages) {
    const mend = await plant(opened);
    assert.deepEqual([...new Set(await rulesOf(world))].sort(), rules, name);
    const isOfFile = rules.includes('A1');
    const verified = await commandOf(world, 'archive verify');
    assert.equal(verified.exitCode, isOfFile ? 1 : 0, name);
    if (isOfFile) assert.match(verified.text, /a file of archived calls .*archive\//, name);
    await mend();
  }
});

test('charges and statement lines that need a missing file are refused until it is there', async () => {
  const opened = await oldWorld();
  const { world, files, ids } = opened;
  await archiveAll(opened);
  const mend = changed(files, () => undefined);
  const queries = world.host.get(ledgerQueries);
  const refused = { kind: 'overloaded', code: undefined };
  await assert.rejects(queries.charge(ids[0]!, 'alice'), refused);
  await assert.rejects(queries.ledger('alice', {}, { limit: 50 }), refused);
  assert.equal((await queries.ledger('alice', { kinds: ['CREDIT'] }, { limit: 50 })).rows.length, 1);
  mend();
  assert.equal((await queries.charge(ids[0]!, 'alice'))?.attempts.length, 1);
  assert.equal(await queries.charge(ids[0]!, 'bob'), undefined);
});

test('sums are rebuilt with archived calls too, or not at all', async () => {
  const opened = await oldWorld();
  const { world, files } = opened;
  await archiveAll(opened);
  await world.rows(sql`update ${world.table('call_sums')} set cost = cost + 1 where part = 0`);
  assert.deepEqual([...new Set(await rulesOf(world))], ['M17']);
  const audit = await commandOf(world, 'audit', { rebuildSums: true });
  assert.match(audit.text, /All invariants hold/);
  const [name, bytes] = [...files.objects][0]!;
  files.objects.delete(name);
  await assert.rejects(commandOf(world, 'audit', { rebuildSums: true }), /is missing: archive/);
  files.objects.set(name, bytes);
  assert.deepEqual(await rulesOf(world), []);
  const list = await commandOf(world, 'archive list', { account: 'bob' });
  assert.match(list.text, /^bob {2}2027-01 {2}1 calls/);
});

type Step =
  | { readonly does: 'call'; readonly account: number; readonly output: number; readonly key: number }
  | { readonly does: 'wait'; readonly days: number }
  | { readonly does: 'credit'; readonly account: number; readonly days: number }
  | { readonly does: 'refund'; readonly call: number; readonly part: number }
  | { readonly does: 'archive'; readonly fails: boolean };

const account = fc.nat(1);
const stepIn: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('call' as const), account, output: fc.nat(900), key: fc.nat(1) }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 25 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('credit' as const), account, days: fc.integer({ min: 1, max: 60 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('refund' as const),
      call: fc.nat(50),
      part: fc.integer({ min: 1, max: 100 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('archive' as const), fails: fc.boolean() }) },
);

const names = ['alice', 'bob'];

/** Random calls, expiring grants, refunds and rounds: what is shown, and what can be refunded, are as if nothing was archived. */
async function runHistory(steps: readonly Step[]): Promise<void> {
  const opened = await newArchiveWorld();
  const { world, files } = opened;
  const from = world.host.clock.now();
  const left = new Map<string, { readonly accountId: string; amount: bigint }>();
  for (const name of names) await world.credit('5', name);
  const references = Array.from({ length: steps.length }, (_, index) => `reference ${index}`).values();
  for (const step of steps) {
    if (step.does === 'call') {
      const accountId = names[step.account]!;
      const cost = 2_000_000n + 10_000n * BigInt(step.output);
      left.set(await charge(world, accountId, step.output, `key-${step.key}`), { accountId, amount: cost });
      await written(world);
    } else if (step.does === 'wait') {
      world.host.advance(step.days * dayMs + 7_777);
      await fold(world);
    } else if (step.does === 'credit') {
      const grant = { kind: 'promotion', reason: 'test', reference: references.next().value! };
      const expiresAt = world.host.clock.now() + step.days * dayMs;
      await world.host.get(ledger).credit(names[step.account]!, usd('0.003'), { ...grant, expiresAt });
    } else if (step.does === 'refund') {
      const [id, call] = [...left][step.call % Math.max(1, left.size)] ?? [];
      if (call === undefined || call.amount === 0n) continue;
      const entry = { reason: 'test', reference: references.next().value! };
      const money = world.host.get(pool);
      await assert.rejects(money.refundRequest(call.accountId, id!, (call.amount + 1n) as Money, entry));
      const amount = (call.amount * BigInt(step.part) + 99n) / 100n;
      await money.refundRequest(call.accountId, id!, amount as Money, entry);
      call.amount -= amount;
    } else {
      const ids = [...left.keys()];
      const before = await shownOf(world, names, ids, from);
      files.failure = step.fails ? new Error('The bucket is away.') : undefined;
      await archiveAll(opened).catch(() => {});
      files.failure = undefined;
      assert.equal(await shownOf(world, names, ids, from), before);
    }
  }
  world.host.advance(70 * dayMs);
  await fold(world);
  const before = await shownOf(world, names, [...left.keys()], from);
  await archiveAll(opened);
  assert.equal(await shownOf(world, names, [...left.keys()], from), before);
  assert.deepEqual((await world.audit()).violations, []);
  world.leave();
}

test('random histories show the same, refund the same and add up, whenever their calls are archived', async () => {
  const property = fc.asyncProperty(fc.array(stepIn, { minLength: 8, maxLength: 18 }), runHistory);
  await fc.assert(property, { numRuns: runsOf(1, 60) });
});
