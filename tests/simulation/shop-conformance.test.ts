/**
 * The codes in memory mean what the real ones do: the same random histories of making, using and revoking, on them and on the
 * embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers and leave the same rows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { CodeGift } from '../../plugins/common/domain/admin/shop.ts';
import type { Orm } from '../../plugins/common/domain/database.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { rowsOf } from '../../plugins/common/kit/sql.ts';
import { type CodeStore, openCodeStore } from '../../plugins/shop/store.ts';
import { openDatabase } from '../helpers/database.ts';
import { Chance } from './chance.ts';
import { memoryCodes, ShopTables } from './memory-shop.ts';
import { runnerOf } from './memory-undo.ts';

const accounts = ['alice', 'bob', 'carol'] as const;

/** Codes, and how a transaction is run around them. */
interface Side {
  readonly codes: CodeStore;
  readonly transact: <T>(work: (orm: Orm) => Promise<T>) => Promise<T>;
}
type Step = (side: Side) => Promise<unknown>;

/** Ids are drawn by each side for itself: a code is known by its prefix. */
const nameless = <Code extends { readonly id: string }>(code: Code | undefined) => code && { ...code, id: '' };

function script(chance: Chance, length: number): Step[] {
  const steps: Step[] = [];
  const hashes: string[] = [];
  let at = Date.UTC(2027, 0, 1);
  const gifts: readonly CodeGift[] = [
    { kind: 'balance', amount: money(5n), lastsMs: undefined },
    { kind: 'balance', amount: money(9_000_000_000_000n), lastsMs: 86_400_000 },
    { kind: 'plan', plan: 'pro' },
    { kind: 'days', plan: 'pro', days: 3 },
  ];
  const make = () => {
    const batch = `batch-${chance.below(3)}`;
    // Now and then one that is there already.
    const codes = Array.from({ length: chance.between(1, 3) }, (_, index) => {
      const number = chance.oneIn(10) ? 0 : hashes.length + index;
      return { hash: `hash-${number}`, prefix: `P${number}` };
    });
    hashes.push(...codes.map(({ hash }) => hash));
    const terms = { gift: chance.pick(gifts), maxUses: chance.between(1, 3), oncePerAccount: chance.oneIn(2) };
    const expiresAt = chance.oneIn(2) ? undefined : at + 1_000 * chance.between(1, 9);
    const createdAt = at;
    steps.push(({ codes: store }) => store.insert({ ...terms, batch, codes, expiresAt, createdAt }));
  };
  const revoke = () => {
    const [hash, now] = [chance.pick(['', ...hashes]), at];
    const named = chance.oneIn(4) ? `batch-${chance.below(3)}` : 'missing';
    steps.push(({ codes }) => codes.revoke(named, hash, now));
  };
  const use = () => {
    const [hash, account, now] = [chance.pick(['nothing', ...hashes]), chance.pick(accounts), at];
    const [offset, fails] = [chance.oneIn(8) ? 0 : 1, chance.oneIn(6)];
    steps.push(({ codes, transact }) =>
      transact(async (orm) => {
        const code = await codes.lock(orm, hash);
        if (code === undefined) return undefined;
        const before = await codes.isRedeemedBy(orm, code.id, account);
        await codes.insertUse(orm, code.id, code.uses + offset, account, now);
        if (fails) throw new Error('thought better of it');
        return [nameless(code), before, await codes.isRedeemedBy(orm, code.id, account)];
      }),
    );
  };
  make();
  for (let count = 0; count < length; count += 1) {
    at += chance.pick([0, 1, 60_000]);
    chance.pick([make, revoke, use, use, use, use])();
  }
  // In the end all codes are looked at once more.
  for (const hash of hashes)
    steps.push(({ codes, transact }) => transact(async (orm) => nameless(await codes.lock(orm, hash))));
  return steps;
}

async function answerOf(step: Step, side: Side): Promise<unknown> {
  return step(side).catch(() => 'refused');
}

function inMemory(): { side: Side; tables: ShopTables } {
  const tables = new ShopTables();
  const codes = memoryCodes(tables, { send: (_name, run) => run() });
  const transact: Side['transact'] = async (work) => {
    const transaction = { undo: [], commits: [] };
    try {
      return await work(runnerOf(transaction));
    } catch (error) {
      for (const undo of (transaction.undo as (() => void)[]).reverse()) undo();
      throw error;
    }
  };
  return { side: { codes, transact }, tables };
}

test('codes in memory give the answers of real ones, and are used as often', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase({ plugins: ['shop'] });
    const { side, tables } = inMemory();
    const real: Side = {
      codes: openCodeStore(database),
      transact: (work) => database.orm.transaction((transaction) => work(transaction as unknown as Orm)),
    };
    for (const [index, step] of script(new Chance(seed), 80).entries())
      assert.deepEqual(await answerOf(step, side), await answerOf(step, real), `history ${seed}, step ${index}`);
    const table = (name: string) => sql`${sql.identifier(database.schema)}.${sql.identifier(name)}`;
    const uses = await rowsOf<{ row: string }>(
      database.orm,
      sql`select concat_ws(' ', prefix, number, account_id, round(extract(epoch from redeemed_at) * 1000)::bigint) as row
          from ${table('redemptions')} join ${table('codes')} on id = code_id`,
    );
    const prefixes = new Map([...tables.codes.values()].map(({ id, prefix }) => [id, prefix]));
    const kept = [...tables.uses.values()].map(
      ({ codeId, number, account, at }) => `${prefixes.get(codeId)} ${number} ${account} ${at}`,
    );
    assert(kept.length > 5);
    assert.deepEqual(kept.sort(), uses.map(({ row }) => row).sort(), `history ${seed}`);
    await database.close();
  }
});
