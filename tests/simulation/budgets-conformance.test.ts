/** The budgets of accounts in memory are those of a real database, step by step. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BudgetRows, openBudgetRows } from '../../plugins/billing/budgets/rows.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { BudgetAuthority, BudgetTerms } from '../../plugins/common/domain/organizations/budgets.ts';
import { openDatabase } from '../helpers/database.ts';
import { Chance } from './chance.ts';
import { MemoryBudgets } from './memory-budgets.ts';

const accounts = ['alice', 'bob'];
const authorities: readonly BudgetAuthority[] = ['operator', 'owner'];

function drawTerms(chance: Chance): BudgetTerms {
  const of = chance.pick(['account', 'person', 'tag'] as const);
  const every = chance.pick(['day', 'month', 'ever'] as const);
  const zone = chance.pick([undefined, 'UTC', 'Asia/Tokyo']);
  return {
    ...{ of, every, ...(zone === undefined ? {} : { zone }) },
    ...(of === 'tag' ? { tag: chance.pick(['env=dev', 'env=prod']) } : {}),
    amount: money(BigInt(chance.between(0, 1_000))),
  };
}

/** Without ids and times, which each makes by itself. */
const seen = ({
  id: _id,
  changedAt: _at,
  hard: _hard,
  warn: _warn,
  instead: _instead,
  ...terms
}: object & {
  readonly id?: unknown;
  readonly changedAt?: unknown;
  readonly hard?: unknown;
  readonly warn?: unknown;
  readonly instead?: unknown;
}) => terms;

async function stateOf(rows: BudgetRows): Promise<unknown[]> {
  const lists = await Promise.all(accounts.map((account) => rows.list(account)));
  const read = await Promise.all(accounts.map((account) => rows.read(account)));
  const changed = (await rows.changedWithin(3_600_000)).toSorted();
  return [lists.map((list) => list.map(seen)), read.map(({ rules }) => rules.map(seen)), changed, await rows.some()];
}

test('budgets that are set, set again and ended in memory are those of a real database', async () => {
  const [memory, real] = [new MemoryBudgets(Date.now), openBudgetRows(await openDatabase({ plugins: ['billing'] }))];
  const chance = new Chance(1);
  for (let step = 0; step < 40; step += 1) {
    const [account, authority] = [chance.pick(accounts), chance.pick(authorities)];
    const open = (await memory.list(account)).length;
    if (open > 0 && chance.oneIn(3)) {
      const which = chance.below(open);
      const end = async (rows: BudgetRows) => {
        const { id } = (await rows.list(account))[which]!;
        return rows.end(account, authority, id);
      };
      const [left, right] = [await end(memory), await end(real)];
      assert.deepEqual(left && seen(left), right && seen(right), `step ${step}`);
    } else {
      const terms = drawTerms(chance);
      const [left, right] = [await memory.set(account, authority, terms), await real.set(account, authority, terms)];
      assert.deepEqual(seen(left!), seen(right!), `step ${step}`);
    }
    assert.deepEqual(await stateOf(memory), await stateOf(real), `step ${step}`);
  }
});
