/** What is left of the grants that expire, what of it may be spent at a moment, and which of them pays a charge. Pure. */
import { type Money, money } from '../../core/money.ts';
import { type Period, periodAt, type WindowName, windowNames } from './periods.ts';

/** The most that may be spent of one source's grants within each window. */
export type WindowLimits = { readonly [K in WindowName]?: Money };

/** A grant that expires. */
export interface Pot {
  readonly grantId: string;
  remaining: Money;
  /** Wall-clock milliseconds: money set aside from here on is not paid by it. */
  readonly expiresAt: number;
  readonly windows?: WindowsOf | undefined;
}

/** Windows count over all grants of one source. */
export interface WindowsOf {
  readonly source: string;
  readonly anchor: number;
  readonly limits: WindowLimits;
}

/** What was spent within windows, by `keyOf`. */
export type Spent = Map<string, Money>;

export interface Draw {
  readonly pot: Pot;
  readonly amount: Money;
}

/** The order of spending: what expires first, first. Ids make it one order everywhere. */
export function inOrder(pots: readonly Pot[]): Pot[] {
  return [...pots].sort((left, right) => left.expiresAt - right.expiresAt || (left.grantId < right.grantId ? -1 : 1));
}

export interface WindowAt extends Period {
  readonly name: WindowName;
  readonly limit: Money;
  readonly key: string;
}

/** The windows that bound this pot at a moment. */
export function windowsAt({ windows }: Pot, at: number): WindowAt[] {
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

export function keyOf(source: string, name: WindowName, start: number): string {
  return `${source} ${name} ${start}`;
}

/** What this pot can pay for money that is set aside at `at`. */
export function usable(pot: Pot, spent: Spent, at: number): Money {
  if (pot.expiresAt <= at) return money(0n);
  let most: bigint = pot.remaining;
  for (const { limit, key } of windowsAt(pot, at)) {
    const left = limit - (spent.get(key) ?? 0n);
    if (left < most) most = left;
  }
  return money(most > 0n ? most : 0n);
}

/**
 * Of the pots' money, what cannot be spent at `at`: it has expired, or its windows are used up. `until` is when that can
 * change by itself; before `from` it was another question.
 */
export function lockedAt(pots: readonly Pot[], spent: Spent, at: number): { locked: Money } & Period {
  const counted = new Map(spent);
  let locked = 0n;
  let start = Number.NEGATIVE_INFINITY;
  let end = Number.POSITIVE_INFINITY;
  for (const pot of inOrder(pots)) {
    const free = usable(pot, counted, at);
    locked += pot.remaining - free;
    if (pot.expiresAt <= at) {
      start = Math.max(start, pot.expiresAt);
      continue;
    }
    end = Math.min(end, pot.expiresAt);
    for (const window of windowsAt(pot, at)) {
      // The next grant of the same source may spend only what this one leaves of the window.
      counted.set(window.key, money((counted.get(window.key) ?? 0n) + free));
      start = Math.max(start, window.start);
      end = Math.min(end, window.end);
    }
  }
  return { locked: money(locked), start, end };
}

/**
 * Pays `amount`, which was set aside at `at`: by the grants in their order, each within its windows; then by the money that
 * does not expire (`wallet`), which leaves no draw; then by the grants beyond their windows, because a call that was
 * answered is paid whatever it cost; what is left puts the wallet below zero. Changes `pots` and `spent`.
 */
export function draw(pots: readonly Pot[], spent: Spent, wallet: bigint, amount: bigint, at: number): Draw[] {
  const taken = new Map<Pot, bigint>();
  let left = amount;
  const take = (pot: Pot, most: bigint) => {
    const part = left < most ? left : most;
    if (part <= 0n) return;
    left -= part;
    pot.remaining = money(pot.remaining - part);
    taken.set(pot, (taken.get(pot) ?? 0n) + part);
    for (const { key } of windowsAt(pot, at)) spent.set(key, money((spent.get(key) ?? 0n) + part));
  };
  const valid = inOrder(pots).filter(({ expiresAt }) => expiresAt > at);
  for (const pot of valid) take(pot, usable(pot, spent, at));
  if (wallet > 0n) left -= left < wallet ? left : wallet;
  for (const pot of valid) take(pot, pot.remaining);
  return Array.from(taken, ([pot, part]) => ({ pot, amount: money(part) }));
}

/** The window that keeps the most money back at `at`, if any does: the first to free some of it. */
export function bindingWindow(pots: readonly Pot[], spent: Spent, at: number): WindowAt | undefined {
  let binding: WindowAt | undefined;
  for (const pot of pots) {
    if (pot.expiresAt <= at || usable(pot, spent, at) >= pot.remaining) continue;
    for (const window of windowsAt(pot, at)) {
      // Of several that are used up, money comes free only when the last of them ends.
      const tight = window.limit - (spent.get(window.key) ?? 0n) < pot.remaining;
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
