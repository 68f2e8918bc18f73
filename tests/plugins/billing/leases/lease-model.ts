/** What the database does with leases, as plain sums: the oracle of the statement, and the database of nodes without one. */
import { type Money, money } from '../../../../core/money.ts';
import type { Answer, Ask } from '../../../../plugins/billing/leases/slice.ts';

const positive = (amount: bigint) => (amount > 0n ? amount : 0n);
const least = (...amounts: bigint[]) => amounts.reduce((left, right) => (left < right ? left : right));
const greatest = (...amounts: bigint[]) => amounts.reduce((left, right) => (left > right ? left : right));

/** What one account and the nodes come to when a node asks. */
export interface Counter {
  readonly balance: bigint;
  readonly held: bigint;
  /** What the node has of it, what all others have, and as much of that as those have that live. */
  readonly own: bigint;
  readonly others: bigint;
  readonly elsewhere: bigint;
  readonly nodes: number;
}

/** The slice that one ask gets. */
export function sliceOf(
  counter: Counter,
  ask: Pick<Ask, 'pending' | 'keep' | 'need' | 'smallest' | 'wish'>,
  locked = 0n,
): Answer {
  const { balance, held, own, others, elsewhere, nodes } = counter;
  const rest = balance - others - ask.pending;
  const allowed = positive(rest - locked);
  const kept = positive(least(ask.keep, own - ask.pending));
  const share = least(ask.wish, allowed / BigInt(nodes));
  const granted = allowed < ask.smallest ? kept : least(allowed, greatest(ask.need, kept, share));
  const given = greatest(granted, kept);
  const amount =
    given === 0n ? least(ask.pending, (held > 0n ? balance : positive(balance)) - others) : ask.pending + given;
  return {
    amount: money(amount),
    allowed: money(allowed),
    rest: money(rest),
    elsewhere: money(elsewhere),
    held: money(held),
    nodes,
  };
}

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
    const { balance, held } = this;
    const counter = { balance, held, own: this.leases.get(node) ?? 0n, others: sum(others), elsewhere };
    const answer = sliceOf({ ...counter, nodes: this.living.size }, ask, locked);
    if (answer.amount === 0n) this.leases.delete(node);
    else this.leases.set(node, answer.amount);
    return answer;
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
