/** Prices as they were last seen, and what has changed since: now, or announced for a time to come. Pure. */
import { createHash } from 'node:crypto';
import type { PricedModel } from '../common/domain/admin/prices.ts';
import { formatUsd } from '../common/domain/money.ts';
import { changesFrom, type PriceVersion, versionAt } from '../common/domain/prices.ts';
import type { Price } from '../common/domain/usage.ts';

/** By tier, the standard one without a name: `input 3.00, output 15.00`. */
type Entries = Readonly<Record<string, string>>;
export interface SeenPrice {
  readonly now: Entries;
  readonly next: { readonly from: string; readonly entries: Entries } | null;
}
export interface PriceChange {
  readonly model: string;
  /** Names the change. */
  readonly digest: string;
  readonly before: string;
  readonly after: string;
  /** ISO 8601; undefined: it holds now. */
  readonly from: string | undefined;
}

const mostTiers = 24;
/** Tiers in a line of a message. */
const mostShown = 4;

/** undefined: it is not sold now. */
export function seenPrice(
  { prices, multiplier }: Pick<PricedModel, 'prices' | 'multiplier'>,
  at: number,
): SeenPrice | undefined {
  const version = prices === undefined ? undefined : versionAt(prices, at);
  if (version === undefined) return undefined;
  const then = changesFrom(prices!, at).find((moment) => versionAt(prices!, moment) !== version);
  const coming = then === undefined ? undefined : versionAt(prices!, then);
  const next =
    coming === undefined ? null : { from: new Date(then!).toISOString(), entries: entriesOf(coming, multiplier) };
  return { now: entriesOf(version, multiplier), next };
}

function entriesOf(version: PriceVersion, multiplier: string | undefined): Entries {
  const ratio = multiplier === undefined || multiplier === '1' ? '' : ` × ${multiplier}`;
  const all = [version.standard, ...version.all()].slice(0, mostTiers);
  return Object.fromEntries(all.map(({ tier, price }) => [tier, textOf(price) + ratio]));
}

const textOf = (price: Price) =>
  Object.entries(price)
    .map(([name, amount]) => `${name} ${formatUsd(amount ?? 0n)}`)
    .join(', ');

/** What clients are notified of; what was announced before and holds now is not said again. */
export function changeOf(model: string, before: SeenPrice, after: SeenPrice): PriceChange | undefined {
  const { next } = after;
  if (next !== null && JSON.stringify(next) !== JSON.stringify(before.next))
    return difference(model, after.now, next.entries, next.from);
  const isAnnounced = before.next !== null && isSame(before.next.entries, after.now);
  return isAnnounced ? undefined : difference(model, before.now, after.now, undefined);
}

const isSame = (left: Entries, right: Entries) => JSON.stringify(left) === JSON.stringify(right);

function difference(model: string, before: Entries, after: Entries, from: string | undefined): PriceChange | undefined {
  const tiers = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = tiers.filter((tier) => before[tier] !== after[tier]);
  if (changed.length === 0) return undefined;
  const shown = (entries: Entries) =>
    changed
      .slice(0, mostShown)
      .map((tier) => `${tier === '' ? '' : `${tier}: `}${entries[tier] ?? '–'}`)
      .join('; ');
  const digest = createHash('sha256')
    .update(JSON.stringify([after, from]))
    .digest('hex')
    .slice(0, 32);
  return { model, digest, before: shown(before), after: shown(after), from };
}
