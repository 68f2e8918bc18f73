/** An order of several vendor calls of which some break off: what was made is charged, what may have been made is absorbed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { money } from '../../../plugins/common/domain/money.ts';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import {
  imagePrice,
  type Manner,
  openTestbed,
  orderOf,
  settleTurn,
  type Testbed,
  type VendorWorld,
  workOff,
} from './setup.ts';

const credited = 100_000_000_000n;
/** Images of one call at most, as the test's adapter has it. */
const mostPerCall = 10;

/** A vendor that does with each call what is next on its list, and then makes all. */
function vendorOf(manners: readonly Manner[]): VendorWorld {
  const left = [...manners];
  return { accepted: new Map(), charged: 0, manner: () => left.shift() ?? 'at once' };
}

interface Costs {
  readonly charged: bigint;
  readonly absorbed: bigint;
}

async function costsOf({ database, balance }: Pick<Testbed, 'database' | 'balance'>): Promise<Costs> {
  const [row] = await rowsOf<{ absorbed: string }>(
    database.orm,
    sql`select coalesce(sum(absorbed), 0)::text as absorbed from ${sql.identifier(database.schema)}.calls`,
  );
  return { charged: credited - (await balance()), absorbed: BigInt(row!.absorbed) };
}

interface AttemptRow {
  readonly result: string;
  readonly borne_by: string | null;
  readonly absorbed: string;
  readonly estimated: boolean;
}

function attemptsOf({ database }: Testbed): Promise<AttemptRow[]> {
  return rowsOf<AttemptRow>(
    database.orm,
    sql`select attempt->>'result' as result, attempt->>'bearer' as borne_by, coalesce(attempt->>'absorbed', '0') as absorbed,
          coalesce((attempt->>'estimated')::boolean, false) as estimated
        from ${sql.identifier(database.schema)}.calls, json_array_elements(${sql.identifier(database.schema)}.attempts_of(attempts, provider, target_model)) with ordinality as tried (attempt, place)
        order by place`,
  );
}

async function testbedOf(vendor: VendorWorld): Promise<Testbed> {
  const testbed = await openTestbed(vendor);
  await testbed.credit('100');
  return testbed;
}

test('three calls, of which one breaks off: two are charged, and the third is written off with its bound, marked as estimated', async () => {
  const vendor = vendorOf(['at once', 'breaks off', 'at once']);
  const testbed = await testbedOf(vendor);
  const node = testbed.node();
  await node.order('task_1', orderOf('p', 25));
  await workOff(testbed, node);
  assert.deepEqual(await testbed.states(), { task_1: 'completed' });
  const kept = (await testbed.rows.find('task_1'))!;
  assert.equal(kept.results.length, 15);
  assert.deepEqual(await costsOf(testbed), { charged: 15n * imagePrice, absorbed: 10n * imagePrice });
  assert.deepEqual(await attemptsOf(testbed), [
    { result: 'unknown', borne_by: 'operator', absorbed: String(10n * imagePrice), estimated: true },
    { result: 'answered', borne_by: 'client', absorbed: '0', estimated: false },
  ]);
  assert.deepEqual(await testbed.violations(), []);
  await testbed.database.close();
});

test('two calls, of which one does not connect and one is refused: the vendor has received the order, and the ledger has both', async () => {
  const testbed = await testbedOf(vendorOf(['unreachable', 'busy']));
  const node = testbed.node();
  await node.order('task_1', orderOf('p', 20));
  await workOff(testbed, node);
  assert.deepEqual(await testbed.states(), { task_1: 'completed' });
  const free = { absorbed: '0', estimated: false };
  assert.deepEqual(await attemptsOf(testbed), [
    { ...free, result: 'refused', borne_by: null },
    { ...free, result: 'answered', borne_by: 'client' },
  ]);
  await testbed.database.close();
});

test('the audit reports the possible cost of a broken call when only its row, or only its attempts, have it', async () => {
  const testbed = await testbedOf(vendorOf(['breaks off', 'at once']));
  const node = testbed.node();
  await node.order('task_1', orderOf('p', 20));
  await workOff(testbed, node);
  assert.deepEqual(await testbed.violations(), []);
  const { orm, schema } = testbed.database;
  const calls = sql`${sql.identifier(schema)}.calls`;
  await orm.execute(sql`alter table ${calls} disable trigger immutable`);
  await orm.execute(sql`
    update ${calls} set attempts = (select json_agg(attempt) from json_array_elements(attempts) as attempt
      where attempt->>9 is distinct from '2')`);
  await orm.execute(sql`alter table ${calls} enable trigger immutable`);
  const [violation, ...others] = (await testbed.violations()) as { rule: string; what: string }[];
  assert.deepEqual(others, []);
  assert.equal(violation!.rule, 'M10');
  assert.match(violation!.what, /operator bears/);
  await testbed.database.close();
});

testHistory(
  'a broken call is written off even when its worker dies at any statement and another continues',
  async () => {
    const ends = new Set<string>();
    for (const after of [false, true]) {
      for (let statements = 1; statements <= 5; statements += 1) {
        const vendor = vendorOf(['breaks off', 'at once']);
        const testbed = await testbedOf(vendor);
        const [mortal, other] = [testbed.node(), testbed.node()];
        await mortal.order('task_1', orderOf('p', 20));
        Object.assign(mortal.fate, { statements, after });
        await settleTurn(mortal);
        await workOff(testbed, other);
        const { charged, absorbed } = await costsOf(testbed);
        assert.ok(charged <= 20n * imagePrice);
        assert.ok(charged + absorbed >= BigInt(vendor.charged) * imagePrice, `${statements} ${after}`);
        ends.add(`${(await testbed.states())['task_1']} ${charged / imagePrice} ${absorbed / imagePrice}`);
        assert.deepEqual(await testbed.violations(), []);
        await testbed.database.close();
      }
    }
    // Its answer was lost with the worker; or it was written down, and was charged by the one that came next.
    assert.deepEqual(ends, new Set(['completed 10 10', 'failed 0 20']));
  },
);

test('whatever the outcome of the calls: never more is charged than was made, and charged and written-off cost cover the bill', async () => {
  const manners: Manner[] = ['at once', 'at once', 'breaks off', 'refuses content', 'busy', 'unreachable'];
  const testbed = await openTestbed({ accepted: new Map(), charged: 0, manner: (prompt) => next(prompt) });
  await testbed.credit('100');
  const waiting = new Map<string, Manner[]>();
  const next = (prompt: string) => waiting.get(prompt)?.shift() ?? 'at once';
  let orders = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...manners), { minLength: 2, maxLength: 5 }),
      fc.integer({ min: 1, max: mostPerCall }),
      async (drawn, lastCount) => {
        const counts = drawn.map((_, index) => (index === drawn.length - 1 ? lastCount : mostPerCall));
        const id = `task_${++orders}`;
        waiting.set(id, [...drawn]);
        const before = await costsOf(testbed);
        const node = testbed.node({ deadlineMs: { image: 600_000, video: 600_000 } });
        await node.order(
          id,
          orderOf(
            id,
            counts.reduce((sum, count) => sum + count, 0),
          ),
        );
        await workOff(testbed, node);
        const [records, task] = [await costsOf(testbed), (await testbed.rows.find(id))!];
        const charged = money(records.charged - before.charged);
        const absorbed = money(records.absorbed - before.absorbed);
        const imagesOf = (...which: Manner[]) =>
          counts.reduce((sum, count, index) => (which.includes(drawn[index]!) ? sum + count : sum), 0);
        const made = BigInt(imagesOf('at once')) * imagePrice;
        const brokenOff = BigInt(imagesOf('breaks off')) * imagePrice;
        if (made > 0n) {
          assert.equal(task.state, 'completed', drawn.join());
          assert.equal(charged, made, drawn.join());
          assert.equal(absorbed, brokenOff, drawn.join());
        } else if (brokenOff > 0n) {
          // Which of the calls may have been begun is not distinguished then: all that was ordered is the bound.
          assert.equal(task.state, 'failed', drawn.join());
          assert.equal(charged, 0n, drawn.join());
          assert.ok(absorbed >= brokenOff, drawn.join());
        } else {
          // Nothing was begun: another vendor, or a later try, made all of it, or it was refused.
          assert.equal(absorbed, 0n, drawn.join());
        }
        assert.ok(charged + absorbed >= made + brokenOff, drawn.join());
      },
    ),
    { numRuns: runsOf(6, 40) },
  );
  assert.deepEqual(await testbed.violations(), []);
  await testbed.database.close();
});
