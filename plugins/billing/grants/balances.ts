/** Balances of expiring grants: the rest, the spendable amount at a moment, and which grant pays a charge. Pure. */
import { type Money, money } from '../../common/domain/money.ts';
import { type Period, periodAt, type WindowName, windowNames } from './periods.ts';

/** The spending limit of one source's grants within each window. */
export type WindowLimits = { readonly [K in WindowName]?: Money };

/** The balance of a grant that expires. */
export interface GrantBalance {
  readonly grantId: string;
  remaining: Money;
  /** Wall-clock milliseconds: the grant does not pay for holds made from this time on. */
  readonly expiresAt: number;
  readonly windows?: WindowsOf | undefined;
  /** What it pays is to be paid afterwards. */
  readonly isCredit?: boolean | undefined;
}

/** Windows count spending over all grants of one source. */
export interface WindowsOf {
  readonly source: string;
  readonly anchor: number;
  readonly limits: WindowLimits;
}

/** The amounts spent within windows, by `keyOf`. */
export type Spent = Map<string, Money>;

export interface GrantAllocation {
  readonly grant: GrantBalance;
  readonly amount: Money;
}

/** The order of spending: earliest expiry first, then by id, so that the order is the same in every process; credit lines last. */
export function inOrder(grantBalances: readonly GrantBalance[]): GrantBalance[] {
  return [...grantBalances].sort(
    (left, right) =>
      (left.isCredit ? 1 : 0) - (right.isCredit ? 1 : 0) ||
      left.expiresAt - right.expiresAt ||
      (left.grantId < right.grantId ? -1 : 1),
  );
}

export interface WindowAt extends Period {
  readonly name: WindowName;
  readonly limit: Money;
  readonly key: string;
}

/** The windows that limit this grant at a moment. */
export function windowsAt({ windows }: GrantBalance, at: number): WindowAt[] {
  if (windows === undefined) return [];
  const { source, anchor, limits } = windows;
  const found: WindowAt[] = [];
  for (const name of windowNames) {
    const limit = limits[name];
    if (limit === undefined) continue;
    const period = periodAt(name, anchor, at);
    found.push({ ...period, name, limit, key: keyOf(source, name, period.start) });
  }
  return found;
}

function keyOf(source: string, name: WindowName, start: number): string {
  return `${source} ${name} ${start}`;
}

/** The amount that this grant can pay for a hold made at `at`. */
function usable(grantBalance: GrantBalance, spent: Spent, at: number): Money {
  if (grantBalance.expiresAt <= at) return money(0n);
  let most: bigint = grantBalance.remaining;
  for (const { limit, key } of windowsAt(grantBalance, at)) {
    const left = limit - (spent.get(key) ?? 0n);
    if (left < most) most = left;
  }
  return money(most > 0n ? most : 0n);
}

/**
 * The part of the grants' money that cannot be spent at `at`, because it has expired or its windows are used up.
 * The answer is valid from `from` until `until`, when it can next change by itself.
 */
export function lockedAt(grantBalances: readonly GrantBalance[], spent: Spent, at: number): { locked: Money } & Period {
  const counted = new Map(spent);
  let locked = 0n;
  let start = Number.NEGATIVE_INFINITY;
  let end = Number.POSITIVE_INFINITY;
  for (const grantBalance of inOrder(grantBalances)) {
    const free = usable(grantBalance, counted, at);
    locked += grantBalance.remaining - free;
    if (grantBalance.expiresAt <= at) {
      start = Math.max(start, grantBalance.expiresAt);
      continue;
    }
    end = Math.min(end, grantBalance.expiresAt);
    for (const window of windowsAt(grantBalance, at)) {
      // The next grant of the same source may spend only what this one leaves of the window.
      counted.set(window.key, money((counted.get(window.key) ?? 0n) + free));
      start = Math.max(start, window.start);
      end = Math.min(end, window.end);
    }
  }
  return { locked: money(locked), start, end };
}

/** The most of the grants' money that is locked at any moment from `from` to `until` if nothing is spent meanwhile. */
export function lockedThrough(
  grantBalances: readonly GrantBalance[],
  spent: Spent,
  from: number,
  until: number,
): Money {
  let most = money(0n);
  for (let at = from; at < until; ) {
    const { locked, end } = lockedAt(grantBalances, spent, at);
    if (locked > most) most = locked;
    at = end;
  }
  return most;
}

/**
 * Pays `amount`, held at `at`: first from the grants in order, each within its windows; then from the wallet, which
 * does not expire and gets no allocation; then from credit lines; then from the grants beyond their windows, because
 * an answered call is always paid; any remainder overdraws the wallet. Changes `grants` and `spent`.
 */
export function allocate(
  grantBalances: readonly GrantBalance[],
  spent: Spent,
  wallet: bigint,
  amount: bigint,
  at: number,
): GrantAllocation[] {
  const taken = new Map<GrantBalance, bigint>();
  let left = amount;
  const take = (grantBalance: GrantBalance, most: bigint) => {
    const part = left < most ? left : most;
    if (part <= 0n) return;
    left -= part;
    grantBalance.remaining = money(grantBalance.remaining - part);
    taken.set(grantBalance, (taken.get(grantBalance) ?? 0n) + part);
    for (const { key } of windowsAt(grantBalance, at)) spent.set(key, money((spent.get(key) ?? 0n) + part));
  };
  const valid = inOrder(grantBalances).filter(({ expiresAt }) => expiresAt > at);
  for (const grantBalance of valid) if (!grantBalance.isCredit) take(grantBalance, usable(grantBalance, spent, at));
  if (wallet > 0n) left -= left < wallet ? left : wallet;
  for (const grantBalance of valid) if (grantBalance.isCredit) take(grantBalance, grantBalance.remaining);
  for (const grantBalance of valid) take(grantBalance, grantBalance.remaining);
  return Array.from(taken, ([grantBalance, part]) => ({ grant: grantBalance, amount: money(part) }));
}

/** The window that locks the most money at `at`, or undefined: the first that can free some of it. */
export function bindingWindow(grantBalances: readonly GrantBalance[], spent: Spent, at: number): WindowAt | undefined {
  let binding: WindowAt | undefined;
  for (const grantBalance of grantBalances) {
    if (grantBalance.expiresAt <= at || usable(grantBalance, spent, at) >= grantBalance.remaining) continue;
    for (const window of windowsAt(grantBalance, at)) {
      // Where several windows are used up, money is freed only when the last of them ends.
      const tight = window.limit - (spent.get(window.key) ?? 0n) < grantBalance.remaining;
      if (tight && isTighter(window, binding, spent)) binding = window;
    }
  }
  return binding;
}

function isTighter(window: WindowAt, other: WindowAt | undefined, spent: Spent): boolean {
  if (other === undefined) return true;
  const left = (one: WindowAt) => one.limit - (spent.get(one.key) ?? 0n);
  return left(window) < left(other) || (left(window) === left(other) && window.end > other.end);
}
