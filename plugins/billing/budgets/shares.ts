/** How the database divides what a scope may spend among the processes: its requests, its answers, and the arithmetic. Pure. */
import { type Money, money } from '../../common/domain/money.ts';
import type { Node } from '../leases/store.ts';
import { least, most, type Spending } from './scope.ts';

/** What one process asks for one scope. All sums are absolute, so that a request may be sent again. */
export interface ShareRequest {
  readonly accountId: string;
  readonly scope: string;
  /** Which charges count, of which there may be so much from `from` on; undefined: the process has no more use for the scope. */
  readonly counted: { readonly spending: Spending; readonly from: number; readonly amount: Money } | undefined;
  /** What running calls hold, with what ended ones cost that the ledger may lack. */
  readonly pending: Money;
  /** The part of it that running calls hold. */
  readonly open: Money;
  /** What the process goes on spending meanwhile. */
  readonly keep: Money;
  /** What waiting calls need together, and the cheapest of them. */
  readonly need: Money;
  readonly smallest: Money;
  /** What the process would like to have beyond that; zero: nothing. */
  readonly wish: Money;
  /** For how long its calls have waited: what other processes said before may have changed since. */
  readonly waitedMs: number;
}

/** The requests of one statement. A number that is lower than one seen before, or an earlier run's, changes nothing. */
export interface ShareRound {
  readonly number: number;
  readonly requests: readonly ShareRequest[];
  readonly lastsMs: number;
}

/** What a scope and the processes come to, under the account's lock. */
export interface ScopeState {
  /** Charged in the period, and held by open authorizations. */
  readonly spent: bigint;
  readonly ordered: bigint;
  /** What this process has, what all others have, and what of that may come back from those that live. */
  readonly own: bigint;
  readonly others: bigint;
  readonly elsewhere: bigint;
  readonly nodes: number;
}

export interface ShareAnswer {
  /** What the process may charge from now on beyond what the ledger has. */
  readonly amount: Money;
  /** What it could have beside `pending`; below zero: settlements went beyond their holds, or the ceiling was lowered. */
  readonly rest: Money;
  readonly elsewhere: Money;
  readonly ordered: Money;
}

/** Operations of processes on the shares of scopes. */
export interface BudgetShares {
  /** Takes, renews or returns shares; by account and scope, as `keyOf` names them. Each account is one transaction. */
  take(node: Node, round: ShareRound): Promise<Map<string, ShareAnswer>>;
  /** What is charged and ordered, where one process spends all: shares are of no use. */
  read(requests: readonly ShareRequest[]): Promise<Map<string, ShareAnswer>>;
  /** Returns everything the node has. Only when all of its journal is applied. */
  returnAll(node: Node): Promise<void>;
  /** Returns what an earlier run of the node has written too late. */
  reclaim(node: Node): Promise<void>;
}

/** A process that asks for no particular amount gets this part of its fair share. */
const usualPart = 16n;

/** A share of what is there while that is enough; near the end exactly what waiting calls need, if it is there. */
export function cutShare(
  { spent, ordered, own, others, elsewhere, nodes }: ScopeState,
  request: ShareRequest,
): ShareAnswer {
  const { counted, pending, keep, need, smallest, wish } = request;
  const rest = (counted?.amount ?? 0n) - spent - ordered - others - pending;
  const allowed = most(rest, 0n);
  // An operator may have released the share: then there is nothing to keep.
  const kept = most(least(keep, own - pending), 0n);
  const fair = allowed / BigInt(nodes);
  const wanted = wish === 0n ? 0n : least(most(wish, fair / usualPart), fair);
  const granted = allowed < smallest ? kept : most(kept, least(allowed, most(need, wanted)));
  return { amount: money(pending + granted), rest: money(rest), elsewhere: money(elsewhere), ordered: money(ordered) };
}
