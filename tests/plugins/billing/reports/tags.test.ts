/** Sums by tag, person and project: each has exactly what its calls came to, whatever the order and repetition of batches; many tags share a sum. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { audit } from '../../../../plugins/billing/audit/audit.ts';
import { rebuildTagSums } from '../../../../plugins/billing/audit/tag-rebuild.ts';
import { applyBatch } from '../../../../plugins/billing/ledger/batch.ts';
import { callSums } from '../../../../plugins/billing/ledger/call-sums.ts';
import { forgetTags } from '../../../../plugins/billing/ledger/tag-rows.ts';
import { spentByTag, trackTag } from '../../../../plugins/billing/ledger/tag-spending.ts';
import type { JournalRecord } from '../../../../plugins/billing/model/records.ts';
import { rowsOf, tablesOf } from '../../../../plugins/billing/model/sql.ts';
import { spendTable } from '../../../../plugins/billing/reports/sums.ts';
import { tagNames } from '../../../../plugins/billing/reports/tags.ts';
import type { SpendTableQuery } from '../../../../plugins/common/domain/admin/ledger.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { checkSums } from '../../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../../plugins/common/rollups/fold.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { requestIdAt } from '../../../helpers/fakes.ts';
import { fc } from '../../../helpers/properties.ts';
import { lineOf } from '../world.ts';

const quarterMs = 900_000;
const start = Date.UTC(2026, 9, 20);

const call = fc.record({
  at: fc.integer({ min: 0, max: 12 * quarterMs - 1 }),
  account: fc.constantFrom<string>('alice', 'bob'),
  key: fc.constantFrom('key-1', 'key-2'),
  model: fc.constantFrom('small', 'large'),
  person: fc.constantFrom('', 'ann', 'ben'),
  project: fc.constantFrom('', 'eval', 'site'),
  charged: fc.constantFrom(true, true, false),
  cost: fc.constantFrom(0n, 1n, 10n ** 12n),
  tags: fc.subarray(['env=dev', 'env=prod', 'env-b=x', 'run=2026-11/a', 'team=a', 'team=b']),
});
type Drawn = typeof call extends fc.Arbitrary<infer T> ? T : never;
type Call = Drawn & { readonly id: string };

/** A charged call of a service's key. */
const whole = { key: 'key-1', model: 'small', person: '', project: '', charged: true, cost: 1n } as const;

const identified = (each: Drawn): Call => ({ ...each, id: requestIdAt(start + each.at) });

function recordOf({ id, at, account, key, model, person, project, charged, cost, tags }: Call): JournalRecord {
  const who = { account, key, model, ...(person && { person }), ...(project && { project }) };
  const ended = { id, at: start + at, ...who, held: `${cost}`, attempts: [], reason: 'answered' };
  const tagged = tags.length === 0 ? ended : { ...ended, tags: tags.join(',') };
  if (!charged) return { kind: 'VOID', ...tagged } as never;
  const charge = { input: 1, cost: `${cost}`, usage: { input: 3 }, price: {}, ratio: '1/1', version: 'v1' };
  return { kind: 'SETTLE', ...tagged, ...charge, estimated: false, terminal: true } as never;
}

let database: TestDatabase;

before(async () => {
  database = await openDatabase({ plugins: ['billing'] });
  await database.orm.execute(
    sql`insert into ${tablesOf(database.schema)('journal_cursor')} (journal, owner, updated_at) values ('node', 'o', now())`,
  );
});
after(() => database.close());

/** Every sum by tag, as text. */
const allSums = () =>
  rowsOf<{ row: string }>(
    database.orm,
    sql`select sums::text as row from ${tablesOf(database.schema)('tag_sums')} as sums order by 1`,
  );

/** Sums that are right are the same when they are made again. */
async function rebuildsTheSame(): Promise<void> {
  const before = await allSums();
  await rebuildTagSums(database.orm, database.schema);
  assert.deepEqual(await allSums(), before);
}

/** What the audit says of sums by tag. */
async function wrongSums(days?: number): Promise<string[]> {
  const { violations } = await audit(database.orm, database.schema, { days });
  return violations
    .filter(({ what }) => what === 'a sum by tag is not the sum of its calls')
    .map(({ subject }) => subject);
}

const change = (text: string) => database.orm.execute(sql.raw(text.replaceAll('{schema}', database.schema)));

let applied = 0;

function write(some: readonly Call[]): Promise<unknown> {
  const { orm, schema } = database;
  const accounts = new Map(some.map(({ account }) => [account, money(0n)]));
  const cursor = { journal: 'node', owner: 'o', applied: ++applied };
  return applyBatch({ orm, schema }, lineOf(1, ...some.map(recordOf)).toString(), accounts, cursor);
}

const sum = (some: readonly Call[]) => some.reduce((total, { cost }) => total + cost, 0n);

/** Sums of the calls with this tag, by the values of these members. */
function expected(all: readonly Call[], query: SpendTableQuery) {
  const { accountId, tags: names = [], by, bounds, models, personIds, projectIds } = query;
  const name = names.find((text) => !text.includes('=')) ?? names.join(',');
  const found: [string, bigint, number][] = [];
  for (const [slot, from] of bounds.slice(0, -1).entries()) {
    const within = all.filter(
      ({ at, account, charged, model, person, project }) =>
        start + at >= from &&
        start + at < bounds[slot + 1]! &&
        account === accountId &&
        charged &&
        (models ?? [model]).includes(model) &&
        (personIds ?? [person]).includes(person) &&
        (projectIds ?? [project]).includes(project),
    );
    const has = ({ tags: own }: Call) => names.every((text) => !text.includes('=') || own.includes(text as never));
    const tagged = within
      .filter(has)
      .flatMap((each) =>
        name === '' || name.includes('=')
          ? [{ each, text: name }]
          : each.tags.filter((text) => text.startsWith(`${name}=`)).map((text) => ({ each, text })),
      );
    const groups = Map.groupBy(tagged, ({ each, text }) =>
      JSON.stringify([slot, by.map((part) => (part === 'tag' ? text : each[part]))]),
    );
    for (const [group, same] of groups) found.push([group, sum(same.map(({ each }) => each)), same.length]);
  }
  return found.sort();
}

async function found(query: SpendTableQuery) {
  const cells = await spendTable(database.orm, database.schema, query);
  for (const { requests, usage } of cells) assert.deepEqual(usage, { input: requests * 3 });
  return cells
    .map(({ slot, group, cost, requests }): [string, bigint, number] => [JSON.stringify([slot, group]), cost, requests])
    .sort();
}

test('sums by one tag and by several are those of their calls, in random batches that are sent once or twice', async () => {
  const batches = fc.sample(fc.array(call, { minLength: 1, maxLength: 12 }), { numRuns: 12, seed: 7 });
  const all = batches.map((some) => some.map(identified));
  for (const some of all) await write(some);
  await write([...all[3]!, ...all[4]!, ...all[4]!]);
  const bounds = [0, 4, 5, 12].map((quarters) => start + quarters * quarterMs);
  for (const accountId of ['alice', 'bob'])
    for (const tags of [
      ['team'],
      ['env'],
      ['team=a'],
      ['run=2026-11/a'],
      ['none'],
      ['team=a', 'env=dev'],
      ['env', 'team=a'],
      ['team', 'team=a', 'run=2026-11/a'],
    ])
      for (const by of [[], ['tag'], ['model', 'key'], ['model', 'tag']] as const) {
        const query = { accountId, tags, by, bounds, ...(by.length === 1 ? { models: ['small'] } : {}) };
        assert.deepEqual(await found(query), expected(all.flat(), query), JSON.stringify(query));
      }
  assert.deepEqual(await tagNames(database.orm, database.schema, 'alice'), ['env', 'env-b', 'run', 'team']);
  assert.deepEqual(await tagNames(database.orm, database.schema, 'carol'), []);
  assert.deepEqual(await wrongSums(), []);
  await rebuildsTheSame();
});

test('the audit finds sums by tag that were changed, removed or made up, and says which', async () => {
  const of = (account: string, quarters: number) =>
    identified({
      ...whole,
      at: quarters * quarterMs,
      account,
      cost: 7n,
      tags: ['team=a'],
    });
  await write([of('dora', 0), of('dora', 3), of('emil', 96)]);
  await change(
    `update {schema}.tag_sums set cost = cost + 1 where account_id = 'dora' and at = to_timestamp(${start / 1000})`,
  );
  await change(`delete from {schema}.tag_sums where account_id = 'emil'`);
  await change(
    `insert into {schema}.tag_sums (account_id, tag, at, key_id, model, charged) values ('fay', 'run=1', to_timestamp(${start / 1000}), '', 'small', 1)`,
  );
  const wrong = [
    'run=1 2026-10-20T00:00Z fay  small',
    'team=a 2026-10-20T00:00Z dora key-1 small',
    'team=a 2026-10-21T00:00Z emil key-1 small',
  ];
  assert.deepEqual((await wrongSums()).sort(), wrong);
  assert.deepEqual((await wrongSums(5)).sort(), wrong.slice(0, 2), 'days that have sums are chosen by chance');
  await rebuildTagSums(database.orm, database.schema, start + 96 * quarterMs);
  assert.deepEqual((await wrongSums()).sort(), wrong.slice(0, 2), 'days before the first one stay as they are');
  await rebuildTagSums(database.orm, database.schema);
  assert.deepEqual(await wrongSums(), []);
  await change(`delete from {schema}.call_tags where account_id in ('dora', 'emil')`);
  await change(`delete from {schema}.tag_sums where account_id in ('dora', 'emil')`);
  assert.deepEqual(await wrongSums(), []);
});

test('the spending of a tag with a budget is that of its calls before it and since, and the audit finds a wrong sum and makes it again', async () => {
  const { orm, schema } = database;
  const spent = () => spentByTag(orm, schema, { accountId: 'gus', tag: 'team=a' }, start);
  const of = (quarters: number, cost: bigint, tags = ['team=a']) =>
    identified({ ...whole, at: quarters * quarterMs, account: 'gus', cost, tags });
  await write([of(0, 7n), of(1, 5n, ['team=b'])]);
  assert.equal(await spent(), 7n);
  await orm.transaction((transaction) => trackTag(transaction, schema, { accountId: 'gus', tag: 'team=a' }));
  await change(`update {schema}.budget_tags set since = to_timestamp(${start / 1000 - 900})`);
  const later = [of(0, 1n), of(9, 2n), of(9, 3n, ['env=dev', 'team=a']), of(9, 100n, ['team=b'])];
  await write(later);
  await write(later);
  assert.equal(await spent(), 13n);
  assert.deepEqual(await wrongSums(), []);
  await change(`update {schema}.tag_spending set cost = cost + 1 where cost = 5`);
  assert.deepEqual(await wrongSums(), ['budget of team=a 2026-10-20T02:15Z gus']);
  await rebuildTagSums(orm, schema);
  assert.deepEqual([await wrongSums(), await spent()], [[], 13n]);
});

test('sums by person and project are those of its calls, before and after hours are folded, and as the audit finds them', async () => {
  const { orm, schema } = database;
  const all = fc.sample(call, { numRuns: 60, seed: 8 }).map((each) => identified({ ...each, account: 'org' }));
  for (let from = 0; from < all.length; from += 15) await write(all.slice(from, from + 15));
  const bounds = [0, 4, 8, 12].map((quarters) => start + quarters * quarterMs);
  const queries: Partial<SpendTableQuery>[] = [
    { by: ['person'] },
    { by: ['project', 'person'] },
    { by: ['key', 'project', 'model'], personIds: ['ann', ''] },
    { by: ['person'], projectIds: ['eval'], models: ['large'] },
    { by: [], personIds: ['ben'], projectIds: ['site', ''] },
  ];
  for (const folded of [false, true]) {
    if (folded) await foldSums(orm, schema, callSums, start + 24 * 3_600_000, 1);
    for (const part of queries) {
      const query = { accountId: 'org', bounds, by: [], ...part };
      assert.deepEqual(await found(query), expected(all, query), JSON.stringify(query));
    }
  }
  assert.deepEqual(await checkSums(orm, schema, callSums), []);
});

test('a span of tags that begins within a quarter of an hour is refused, and names the field', async () => {
  const query = { accountId: 'alice', tags: ['team'], by: [], bounds: [start + 1, start + quarterMs] } as const;
  await assert.rejects(spendTable(database.orm, database.schema, query), { status: 400, field: 'start_time' });
});

test('an account with hundreds of tags in an hour has sums of the first 200 of them, and of the others by name', async () => {
  const of = (tag: string, account = 'crowd') => identified({ ...whole, at: 5, account, tags: [tag] });
  const users = Array.from({ length: 300 }, (_, number) => of(`user=${number}`));
  await write(users.slice(0, 120));
  await write(users.slice(120));
  await write([of('user=7'), of('user=299'), of('team=a'), of('team=b', 'few')]);
  await write(Array.from({ length: 90 }, (_, number) => of(`name${number}=x`)));
  const { orm, schema } = database;
  const rows = await rowsOf<{ account_id: string; tag: string; charged: string }>(
    orm,
    sql`select account_id, tag, charged::text as charged from ${tablesOf(schema)('tag_sums')} order by account_id, tag`,
  );
  const crowd = rows.filter(({ account_id }) => account_id === 'crowd');
  const charged = (tag: string) => crowd.find((row) => row.tag === tag)?.charged;
  assert.deepEqual(
    [charged('user=7'), charged('user=299'), charged('user=*'), charged('team=*')],
    ['2', undefined, '101', '1'],
  );
  assert.equal(charged('*'), '42', 'further names are summed up together');
  assert.equal(crowd.length, 251);
  assert.equal(
    crowd.reduce((total, row) => total + Number(row.charged), 0),
    393,
    'no call is lost',
  );
  assert.deepEqual(
    rows.filter(({ account_id }) => account_id === 'few').map(({ tag }) => tag),
    ['team=b'],
  );
  assert.deepEqual(await wrongSums(), []);
  await rebuildsTheSame();
});

test('tags of calls go with the facts of their requests, and their sums stay', async () => {
  const { orm, schema } = database;
  const [old, young] = [0, quarterMs].map((at) => identified({ ...whole, at, account: 'old', tags: ['team=a'] }));
  await write([old!, young!]);
  await forgetTags(orm, schema, requestIdAt(start + quarterMs - 1));
  const left = await rowsOf<{ id: string }>(
    orm,
    sql`select id::text as id from ${tablesOf(schema)('call_tags')} where account_id = 'old'`,
  );
  assert.deepEqual(left, [{ id: young!.id }]);
  const query = { accountId: 'old', tags: ['team=a'], by: [], bounds: [start, start + 4 * quarterMs] } as const;
  assert.equal((await found(query))[0]![2], 2);
  // As the removal of facts has it written down.
  await change(`insert into {schema}.facts_forgotten (before) values (to_timestamp(${(start + quarterMs) / 1000}))`);
  assert.deepEqual(await wrongSums(), []);
  await rebuildsTheSame();
  // What several tags have together is read from the calls.
  await assert.rejects(found({ ...query, tags: ['team=a', 'env=dev'] }), { status: 400, field: 'start_time' });
});
