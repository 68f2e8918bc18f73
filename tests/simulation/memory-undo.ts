/** How a transaction of the database in memory is taken back: whatever it wrote says how to undo it. */
import type { Orm } from '../../plugins/common/domain/database.ts';

/** Run from the last to the first. */
export type Undo = (() => unknown)[];

/** What runs statements inside a transaction here; it understands none. */
export interface Transaction {
  readonly undo: Undo;
  /** Run when it is committed. */
  readonly commits: (() => void)[];
}

/** The transaction as plugins hand it on to the one that writes in it too. */
export function runnerOf(transaction: Transaction): Orm {
  return transaction as unknown as Orm;
}

/** The same, as seen by those. */
export function undoOf(runner: object): Undo {
  const { undo } = runner as Transaction;
  if (undo === undefined) throw new Error('this is to run inside a transaction');
  return undo;
}

/** `work` runs when the transaction is committed, if it is. */
export function atCommit(runner: object, work: () => void): void {
  (runner as Transaction).commits.push(work);
}

/** Sets a map's entry so that it can be taken back. */
export function putIn<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, undo: Undo): void {
  const had = map.has(key);
  const before = map.get(key);
  map.set(key, value);
  undo.push(() => (had ? map.set(key, before!) : map.delete(key)));
}

export function dropFrom<Key, Value>(map: Map<Key, Value>, key: Key, undo: Undo): void {
  const before = map.get(key);
  if (map.delete(key)) undo.push(() => map.set(key, before!));
}
