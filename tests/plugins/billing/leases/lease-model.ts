/** What the database does with leases, as plain sums: the oracle of the statement, and the database of nodes without one. */
import { type Money, money } from '../../../../core/money.ts';
import type { Answer, Ask } from '../../../../plugins/billing/leases/slice.ts';

const positive = (amount: bigint) => (amount > 0n ? amount : 0n);
const least = (...amounts: bigint[]) => amounts.reduce((left, right) => (left < right ? left : right));
const greatest = (...amounts: bigint[]) => amounts.reduce((left, right) => (left > right ? left : right));

export class LeaseModel {
  balance: bigint;
  held = 0n;
  readonly leases = new Map<string, bigint>();
  readonly living = new Set<string>();

  constructor(balance: bigint) {
    this.balance = balance;
  }

  take(node: string, ask: Ask, locked = 0n): Answer {
    const others = [...this.leases].filter(([name]) => name !== node);
    const sum = (list: typeof others) => list.reduce((total, [, amount]) => total + positive(amount), 0n);
    const elsewhere = sum(others.filter(([name]) => this.living.has(name)));
    const rest = this.balance - sum(others) - ask.pending;
    const allowed = positive(rest - locked);
    const nodes = this.living.size;
    const kept = positive(least(ask.keep, (this.leases.get(node) ?? 0n) - ask.pending));
    const share = least(ask.wish, allowed / BigInt(nodes));
    const granted = allowed < ask.smallest ? kept : least(allowed, greatest(ask.need, kept, share));
    const given = greatest(granted, kept);
    const amount = given === 0n ? least(ask.pending, positive(this.balance) - sum(others)) : ask.pending + given;
    if (amount === 0n) this.leases.delete(node);
    else this.leases.set(node, amount);
    return {
      amount: money(amount),
      allowed: money(allowed),
      rest: money(rest),
      elsewhere: money(elsewhere),
      held: money(this.held),
      nodes,
    };
  }

  /** Rows of the node's journal, as far as they are new. */
  apply(node: string, amount: bigint, held: bigint): void {
    this.held += held;
    this.balance += amount;
    this.leases.set(node, (this.leases.get(node) ?? 0n) + amount);
  }

  /** What nodes may spend together. */
  get leased(): Money {
    return money([...this.leases.values()].reduce((sum, amount) => sum + amount, 0n));
  }
}
