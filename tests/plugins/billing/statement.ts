/** Checks an account's statement against what a bank's statement promises, however it is paged and filtered. */
import assert from 'node:assert/strict';
import { type LedgerRow, ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import type { World } from './world.ts';

type Filter = Parameters<ReturnType<typeof queriesOf>['ledger']>[1];

const queriesOf = (world: World) => world.host.get(ledgerQueries);

/** All lines that a filter finds, in pages of `limit`. */
async function linesOf(
  world: World,
  accountId: string | undefined,
  limit: number,
  filter: Filter = {},
): Promise<LedgerRow[]> {
  const lines: LedgerRow[] = [];
  for (let after: string | undefined; ; ) {
    const { rows, next } = await queriesOf(world).ledger(accountId, filter, { limit, after });
    lines.push(...rows);
    if (next === undefined) return lines;
    after = next;
  }
}

/** `balance`: what the account has, with what is set aside. */
export async function checkStatement(world: World, accountId: string, balance: bigint, limit: number): Promise<void> {
  const lines = await linesOf(world, accountId, limit);
  let [before, seq] = [0n, 0n];
  for (const line of lines.toReversed()) {
    assert.notEqual(line.change, 0n, 'a line moves money');
    assert.equal(line.balanceAfter, before + line.change, `${line.kind} ${line.seq}`);
    assert.ok(BigInt(line.seq) > seq, 'newest first');
    [before, seq] = [line.balanceAfter, BigInt(line.seq)];
  }
  assert.equal(before, balance, 'the newest line ends with the balance');
  const bySeq = new Map(lines.map((line) => [line.seq, line]));
  const same = (some: readonly LedgerRow[]) => {
    for (const line of some) assert.deepEqual(line, bySeq.get(line.seq));
    return some.length;
  };
  const charges = { kinds: ['CHARGE'] };
  assert.equal(
    same(await linesOf(world, accountId, limit, charges)),
    lines.filter(({ kind }) => kind === 'CHARGE').length,
  );
  const middle = lines[Math.floor(lines.length / 2)]?.at ?? 0;
  const halves = [{ until: middle }, { from: middle }].map((span) => linesOf(world, accountId, limit, span));
  const [older, newer] = await Promise.all(halves);
  assert.equal(same(older!) + same(newer!), lines.length);
  const ofAll = (await linesOf(world, undefined, limit)).filter((line) => line.accountId === accountId);
  assert.equal(same(ofAll), lines.length);
}
