/** What the database does with leases, as plain sums: the oracle of the statement, and the database of nodes without one. */

import type { Answer, LeaseRequest } from '../../../../plugins/billing/leases/store.ts';
import { type Money, money } from '../../../../plugins/common/domain/money.ts';

const positive = (amount: bigint) => (amount > 0n ? amount : 0n);
const least = (...amounts: bigint[]) => amounts.reduce((left, right) => (left < right ? left : right));
const greatest = (...amounts: bigint[]) => amounts.reduce((left, right) => (left > right ? left : right));

/** What one account and the nodes come to when a node asks. */
export interface Counter {
  readonly balance: bigint;
  /** What the node has of it, what all others have, and what of that the living can return or their calls hold. */
  readonly own: bigint;
  readonly others: bigint;
  readonly elsewhere: bigint;
  readonly held: bigint;
  readonly nodes: number;
}

/** The share that one request gets. */
export function sliceOf(
  counter: Counter,
  request: Pick<LeaseRequest, 'pending' | 'keep' | 'need' | 'smallest' | 'target'>,
  locked = 0n,
): Answer {
  const { balance, held, own, others, elsewhere, nodes } = counter;
  const rest = balance - others - request.pending;
  const allowed = positive(rest - locked);
  const kept = positive(least(request.keep, own - request.pending));
  const share = least(request.target, allowed / BigInt(nodes));
  const granted = allowed < request.smallest ? kept : least(allowed, greatest(request.need, kept, share));
  const given = greatest(granted, kept);
  const amount = given === 0n ? least(request.pending, positive(balance) - others) : request.pending + given;
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
  readonly leases = new Map<string, bigint>();
  /** What calls hold of each lease, as its node reported it last. */
  readonly open = new Map<string, bigint>();
  readonly living = new Set<string>();

  constructor(balance: bigint) {
    this.balance = balance;
  }

  take(node: string, request: LeaseRequest, locked = 0n): Answer {
    const others = [...this.leases].filter(([name]) => name !== node);
    const living = others.filter(([name]) => this.living.has(name));
    const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + positive(amount), 0n);
    const openOf = (name: string) => this.open.get(name) ?? 0n;
    const counter = {
      balance: this.balance,
      own: this.leases.get(node) ?? 0n,
      others: sum(others.map(([, amount]) => amount)),
      elsewhere: sum(living.map(([name, amount]) => amount - openOf(name))),
      held: sum(living.map(([name, amount]) => least(amount, openOf(name)))),
      nodes: this.living.size,
    };
    const answer = sliceOf(counter, request, locked);
    this.#set(node, answer.amount, request.pending);
    return answer;
  }

  /** Charges of the node's journal, as far as they are new; `open`: what its running calls hold behind them. */
  apply(node: string, charges: bigint, open: bigint): void {
    this.balance -= charges;
    const lease = this.leases.get(node);
    if (lease === undefined && charges === 0n) return;
    this.leases.set(node, (lease ?? 0n) - charges);
    this.open.set(node, open);
  }

  #set(node: string, amount: bigint, open: bigint): void {
    if (amount === 0n) this.end(node);
    else {
      this.leases.set(node, amount);
      this.open.set(node, open);
    }
  }

  /** The node returns all of its lease. */
  end(node: string): void {
    this.leases.delete(node);
    this.open.delete(node);
  }

  /** What nodes may spend together. */
  get leased(): Money {
    return money([...this.leases.values()].reduce((sum, amount) => sum + amount, 0n));
  }
}
