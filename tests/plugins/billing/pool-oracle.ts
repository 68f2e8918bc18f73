/** A naive account: lots of money, a list of everything that was ever spent, and sums made of it again each time. */

import type { WindowLimits } from '../../../plugins/billing/grants/balances.ts';
import { periodAt, type WindowName } from '../../../plugins/billing/grants/periods.ts';

export interface Lot {
  readonly reference: string;
  left: bigint;
  readonly expiresAt: number;
  readonly source?: string | undefined;
  readonly anchor?: number | undefined;
  readonly limits?: WindowLimits | undefined;
}

export class NaiveAccount {
  lots: Lot[] = [];
  wallet = 0n;
  held = 0n;
  readonly spendings: { source: string; at: number; amount: bigint }[] = [];

  get balance(): bigint {
    return this.lots.reduce((sum, { left }) => sum + left, 0n) + this.wallet - this.held;
  }

  /** What one more call could spend: the balance without what lots keep back, by trying it on a copy. */
  spendable(now: number): bigint {
    const copy = new NaiveAccount();
    copy.lots = this.lots.map((lot) => ({ ...lot }));
    copy.spendings.push(...this.spendings);
    const kept = copy.lots.reduce((sum, { left }) => sum + left, 0n) - copy.#spendLots(10n ** 18n, now, true);
    return this.balance - kept;
  }

  add(lot: Lot, now: number): void {
    this.lots.push(lot);
    if (this.wallet >= 0n) return;
    const repaid = -this.wallet < lot.left ? -this.wallet : lot.left;
    this.#take(lot, repaid, now);
    this.wallet += repaid;
  }

  spend(amount: bigint, at: number): void {
    let left = amount - this.#spendLots(amount, at, true);
    const fromWallet = this.wallet <= 0n ? 0n : left < this.wallet ? left : this.wallet;
    this.wallet -= fromWallet;
    left -= fromWallet;
    left -= this.#spendLots(left, at, false);
    this.wallet -= left;
  }

  #spendLots(amount: bigint, at: number, bounded: boolean): bigint {
    let left = amount;
    const turn = [...this.lots].sort((one, other) => one.expiresAt - other.expiresAt);
    for (const lot of turn) {
      if (lot.expiresAt <= at) continue;
      let most = lot.left < left ? lot.left : left;
      for (const [name, limit] of bounded ? Object.entries(lot.limits ?? {}) : []) {
        const room = limit! - this.#spentWithin(lot, name as WindowName, at);
        if (room < most) most = room;
      }
      if (most <= 0n) continue;
      this.#take(lot, most, at);
      left -= most;
    }
    return amount - left;
  }

  #spentWithin({ source, anchor }: Lot, name: WindowName, at: number): bigint {
    const { start, end } = periodAt(name, anchor!, at);
    return this.spendings
      .filter((each) => each.source === source && each.at >= start && each.at < end)
      .reduce((sum, { amount }) => sum + amount, 0n);
  }

  #take(lot: Lot, amount: bigint, at: number): void {
    lot.left -= amount;
    if (lot.source !== undefined) this.spendings.push({ source: lot.source, at, amount });
  }
}
