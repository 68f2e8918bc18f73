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

export class MemoryGrants {
  readonly draws: StoredDraw[] = [];
  readonly byGrant = new Map<string, { readonly account: string; readonly grant: GrantBalance }>();
  readonly #openByAccount = new Map<string, Set<string>>();
  readonly #drawsBySource = new Map<string, StoredDraw[]>();

  /** Whether anything is left of a grant of this account that expires. */
  isOpen(account: string): boolean {
    return (this.#openByAccount.get(account)?.size ?? 0) > 0;
  }

  /** Accounts behind `after` with something left of a grant that ended before `before`. */
  expired(before: number, after: string, limit: number): string[] {
    const found = [...this.byGrant.values()].filter(({ grant }) => grant.remaining > 0n && grant.expiresAt <= before);
    const accounts = [...new Set(found.map(({ account }) => account))].filter((account) => account > after);
    return accounts.sort().slice(0, limit);
  }

  /** The function that takes it back. */
  open(account: string, grant: GrantBalance): () => void {
    this.byGrant.set(grant.grantId, { account, grant: { ...grant } });
    this.#setOpen(grant.grantId);
    return () => {
      this.#openByAccount.get(account)?.delete(grant.grantId);
      this.byGrant.delete(grant.grantId);
    };
  }

  empty(grantId: string): () => void {
    const { grant } = this.byGrant.get(grantId)!;
    const { remaining } = grant;
    grant.remaining = money(0n);
    this.#setOpen(grantId);
    return () => {
      grant.remaining = remaining;
      this.#setOpen(grantId);
    };
  }

  /** The function that takes it back. */
  end(grantId: string, expiresAt: number): () => void {
    const known = this.byGrant.get(grantId)!;
    this.byGrant.set(grantId, { ...known, grant: { ...known.grant, expiresAt } });
    return () => this.byGrant.set(grantId, known);
  }

  draw(placed: readonly PlacedAllocation[]): () => void {
    const undo: (() => void)[] = [];
    for (const { seq, grant: given, amount, heldAt } of placed) {
      const { grant } = this.byGrant.get(given.grantId)!;
      const source = given.windows?.source;
      const drawn = { seq, grantId: given.grantId, amount, source, heldAt };
      this.draws.push(drawn);
      const ofSource = source === undefined ? undefined : (this.#drawsBySource.get(source) ?? []);
      ofSource?.push(drawn);
      if (source !== undefined) this.#drawsBySource.set(source, ofSource!);
      if (grant.remaining < amount) throw new Error('violates check constraint "pots_remaining_check"');
      grant.remaining = money(grant.remaining - amount);
      this.#setOpen(grant.grantId);
      undo.push(() => {
        this.draws.pop();
        ofSource?.pop();
        grant.remaining = money(grant.remaining + amount);
        this.#setOpen(grant.grantId);
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
      const grantBalances = inOrder(Array.from(ids, (id) => ({ ...this.byGrant.get(id)!.grant })));
      pools.set(account, { grants: grantBalances, spent });
      for (const grant of grantBalances) for (const at of times) this.#addSpent(spent, grant, at);
    }
    return pools;
  }

  #addSpent(spent: PoolState['spent'], grant: GrantBalance, at: number): void {
    for (const { key, start, end } of windowsAt(grant, at)) {
      if (spent.has(key)) continue;
      let sum = 0n;
      for (const { heldAt, amount } of this.#drawsBySource.get(grant.windows!.source) ?? []) {
        if (heldAt >= start && heldAt < end) sum += amount;
      }
      spent.set(key, money(sum));
    }
  }

  #setOpen(grantId: string): void {
    const { account, grant } = this.byGrant.get(grantId)!;
    let ids = this.#openByAccount.get(account);
    if (ids === undefined) {
      ids = new Set();
      this.#openByAccount.set(account, ids);
    }
    if (grant.remaining > 0n) ids.add(grantId);
    else ids.delete(grantId);
  }
}
