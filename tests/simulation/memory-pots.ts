/** Grants that expire, and what was drawn from them, as the database in memory keeps them. */

import type { PlacedAllocation } from '../../plugins/billing/grants/allocations.ts';
import { type GrantBalance, inOrder, windowsAt } from '../../plugins/billing/grants/balances.ts';
import type { PoolState } from '../../plugins/billing/grants/funds.ts';
import { money } from '../../plugins/common/domain/money.ts';

export interface StoredDraw {
  readonly seq: string;
  readonly grantId: string;
  readonly amount: bigint;
  readonly source: string | undefined;
  readonly heldAt: number;
}

export class MemoryPots {
  readonly draws: StoredDraw[] = [];
  readonly byGrant = new Map<string, { readonly account: string; readonly pot: GrantBalance }>();
  readonly #openByAccount = new Map<string, Set<string>>();
  readonly #drawsBySource = new Map<string, StoredDraw[]>();

  /** Whether anything is left of a grant of this account that expires. */
  isOpen(account: string): boolean {
    return (this.#openByAccount.get(account)?.size ?? 0) > 0;
  }

  /** The function that takes it back. */
  open(account: string, pot: GrantBalance): () => void {
    this.byGrant.set(pot.grantId, { account, pot: { ...pot } });
    this.#setOpen(pot.grantId);
    return () => {
      this.#openByAccount.get(account)?.delete(pot.grantId);
      this.byGrant.delete(pot.grantId);
    };
  }

  empty(grantId: string): () => void {
    const { pot } = this.byGrant.get(grantId)!;
    const { remaining } = pot;
    pot.remaining = money(0n);
    this.#setOpen(grantId);
    return () => {
      pot.remaining = remaining;
      this.#setOpen(grantId);
    };
  }

  draw(placed: readonly PlacedAllocation[]): () => void {
    const undo: (() => void)[] = [];
    for (const { seq, grant: given, amount, heldAt } of placed) {
      const { pot } = this.byGrant.get(given.grantId)!;
      const source = given.windows?.source;
      const drawn = { seq, grantId: given.grantId, amount, source, heldAt };
      this.draws.push(drawn);
      const ofSource = source === undefined ? undefined : (this.#drawsBySource.get(source) ?? []);
      ofSource?.push(drawn);
      if (source !== undefined) this.#drawsBySource.set(source, ofSource!);
      if (pot.remaining < amount) throw new Error('violates check constraint "pots_remaining_check"');
      pot.remaining = money(pot.remaining - amount);
      this.#setOpen(pot.grantId);
      undo.push(() => {
        this.draws.pop();
        ofSource?.pop();
        pot.remaining = money(pot.remaining + amount);
        this.#setOpen(pot.grantId);
      });
    }
    return () => {
      for (const step of undo.reverse()) step();
    };
  }

  /** Copies that may be changed, with what was spent in their windows around `times`. */
  pools(accounts: readonly string[], times: readonly number[]): Map<string, PoolState> {
    const pools = new Map<string, PoolState>();
    const spent: PoolState['spent'] = new Map();
    for (const account of accounts) {
      const ids = this.#openByAccount.get(account);
      if (ids === undefined || ids.size === 0) continue;
      const pots = inOrder(Array.from(ids, (id) => ({ ...this.byGrant.get(id)!.pot })));
      pools.set(account, { grants: pots, spent });
      for (const pot of pots) for (const at of times) this.#addSpent(spent, pot, at);
    }
    return pools;
  }

  #addSpent(spent: PoolState['spent'], pot: GrantBalance, at: number): void {
    for (const { key, start, end } of windowsAt(pot, at)) {
      if (spent.has(key)) continue;
      let sum = 0n;
      for (const { heldAt, amount } of this.#drawsBySource.get(pot.windows!.source) ?? []) {
        if (heldAt >= start && heldAt < end) sum += amount;
      }
      spent.set(key, money(sum));
    }
  }

  #setOpen(grantId: string): void {
    const { account, pot } = this.byGrant.get(grantId)!;
    let ids = this.#openByAccount.get(account);
    if (ids === undefined) {
      ids = new Set();
      this.#openByAccount.set(account, ids);
    }
    if (pot.remaining > 0n) ids.add(grantId);
    else ids.delete(grantId);
  }
}
