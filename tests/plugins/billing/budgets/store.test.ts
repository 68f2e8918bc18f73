/** The statements on shares against a real database: the answers of the one in memory, and those who are shut out. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { ShareRequest } from '../../../../plugins/billing/budgets/shares.ts';
import { sqlShares } from '../../../../plugins/billing/budgets/store.ts';
import { releaseNode } from '../../../../plugins/billing/leases/store.ts';
import { applyBatch } from '../../../../plugins/billing/ledger/batch.ts';
import type { JournalRecord } from '../../../../plugins/billing/model/records.ts';
import { rowsOf, tablesOf } from '../../../../plugins/billing/model/sql.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { openDatabase } from '../../../helpers/database.ts';
import { requestIdAt } from '../../../helpers/fakes.ts';
import { fc } from '../../../helpers/properties.ts';
import type { StoredCursor } from '../../../simulation/memory-leases.ts';
import { MemoryShares } from '../../../simulation/memory-shares.ts';
import { lineOf } from '../world.ts';

const at = Date.UTC(2026, 4, 1, 12);
const accountId = '00000000-0000-7000-8000-000000000001';
const names = ['a', 'b', 'c'];

let calls = 0;

function charge(key: string, cost: bigint, endedAt: number): JournalRecord {
  const given = { account: accountId, key, model: 'm', plan: 'p', reason: 'answered', held: '9', heldAt: endedAt };
  const charged = { price: { input: '7' }, ratio: '1/1', version: 'v1', estimated: false, terminal: true, input: 5 };
  const record = { kind: 'SETTLE', id: requestIdAt(endedAt + ++calls), at: endedAt, ...given, ...charged };
  return {
    ...record,
    cost: cost.toString(),
    usage: { input: 1 },
    attempts: [[1, 0, 0]],
    provider: 'v',
    target: 't',
  } as unknown as JournalRecord;
}

const amount = fc.bigInt(0n, 500n);
const steps = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        node: fc.nat(2),
        key: fc.nat(1),
        sums: fc.record({ pending: amount, keep: amount, need: amount, wish: amount }),
        ceiling: fc.bigInt(1n, 3_000n),
        from: fc.constantFrom(0, at),
        waitedMs: fc.constantFrom(0, 3_600_000),
        isUsed: fc.integer({ min: 0, max: 5 }).map((drawn) => drawn > 0),
      }),
    },
    { weight: 1, arbitrary: fc.record({ cost: amount, key: fc.nat(1), isEarlier: fc.boolean() }) },
  ),
  { minLength: 10, maxLength: 25 },
);

test('shares are cut as the oracle cuts them, of what the rollups say', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      await using database = await openDatabase({ plugins: ['billing'] });
      const { orm, schema } = database;
      const cursors = new Map<string, StoredCursor>();
      const spent: { key: string; cost: bigint; at: number }[] = [];
      for (const name of names) {
        cursors.set(name, { owner: name, epoch: 1, applied: 0, asked: 0, seenAt: Number.POSITIVE_INFINITY });
        await orm.execute(
          sql`insert into ${tablesOf(schema)('journal_cursor')} (journal, owner, updated_at) values (${name}, ${name}, now())`,
        );
      }
      const sumOf = ({ counted }: ShareRequest) =>
        spent.reduce(
          (sum, each) => (each.key === counted!.spending.key && each.at >= counted!.from ? sum + each.cost : sum),
          0n,
        );
      const now = () => Date.now();
      const memory = new MemoryShares({ cursors, now, charged: (request) => ({ spent: sumOf(request), ordered: 0n }) });
      const real = sqlShares(orm, schema);
      for (const [index, step] of history.entries()) {
        const key = `00000000-0000-7000-8000-0000000000b${step.key}`;
        if ('cost' in step) {
          const endedAt = step.isEarlier ? at - 5_000_000 : at + 5_000_000;
          if (step.cost === 0n) continue;
          spent.push({ key, cost: step.cost, at: endedAt });
          const text = lineOf(index + 1, charge(key, step.cost, endedAt)).toString();
          await applyBatch(database, text, new Map([[accountId, money(0n)]]), {
            journal: 'a',
            owner: 'a',
            applied: index + 1,
          });
          continue;
        }
        const { pending, keep, need, wish } = step.sums;
        const sums = { pending: money(pending), open: money(pending / 2n), keep: money(keep), need: money(need) };
        const counted = { spending: { accountId, key }, from: step.from, amount: money(step.ceiling) };
        const scope = `key:${key}`;
        const request = {
          accountId,
          scope,
          counted: step.isUsed ? counted : undefined,
          ...sums,
          smallest: money(need / 2n),
          wish: money(wish),
          waitedMs: step.waitedMs,
        };
        const node = { journal: names[step.node]!, owner: names[step.node]! };
        const round = { number: index + 1, requests: [request], lastsMs: 60_000 };
        assert.deepEqual(await real.take(node, round), await memory.take(node, round), `step ${index}`);
      }
    }),
    { numRuns: 4 },
  );
});

test('a request of an earlier run, and one that a later one has overtaken, change nothing', async () => {
  await using database = await openDatabase({ plugins: ['billing'] });
  const { orm, schema } = database;
  const [journal, owner] = [randomUUID() as string, randomUUID() as string];
  const cursors = tablesOf(schema)('journal_cursor');
  await orm.execute(sql`insert into ${cursors} (journal, owner, updated_at) values (${journal}, ${owner}, now())`);
  const shares = sqlShares(orm, schema);
  const none = {
    pending: money(0n),
    open: money(0n),
    keep: money(0n),
    smallest: money(0n),
    wish: money(0n),
    waitedMs: 0,
  };
  const counted = { spending: { accountId, key: 'k' }, from: 0, amount: money(100n) };
  const request = (need: bigint) => ({ accountId, scope: 'key:k', counted, ...none, need: money(need) });
  const take = (number: number, need: bigint, by = owner) =>
    shares.take({ journal, owner: by }, { number, requests: [request(need)], lastsMs: 0 });
  const rows = () =>
    rowsOf<{ amount: string }>(orm, sql`select amount::text as amount from ${tablesOf(schema)('scope_leases')}`);
  await take(2, 40n);
  await assert.rejects(take(1, 90n), /a later request/);
  await assert.rejects(take(3, 90n, 'another'), /belongs to another process/);
  assert.deepEqual(await rows(), [{ amount: '40' }]);
  await shares.reclaim({ journal, owner });
  assert.equal((await rows()).length, 1);
  await releaseNode(orm, schema, journal);
  assert.deepEqual(await rows(), []);
});
