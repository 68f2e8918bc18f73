/** The margin of rows on the operator's pages: its shares, and the sum of some rows. Pure. */
import { costedRevenueOf, marginOf, revenueOf } from '../../../../../../common/domain/admin/margin.ts';
import { formatUsd, parseUsd } from '../../../../../../common/domain/money.ts';
import { percentOf, sum } from './usd.ts';

/** As the API answers it; null: not known. */
export interface MarginSums {
  readonly cost: string | null;
  readonly refunded: string | null;
  readonly uncosted: string | null;
  readonly ownCost: string | null;
  readonly writtenOff: string | null;
  readonly margin: string | null;
}

/** In tenths of a percent: the margin of the revenue that it is of, and that revenue of all. */
export function sharesOf({ cost, refunded, uncosted, margin }: MarginSums) {
  if (cost === null || margin === null) return undefined;
  const sums = { cost: parseUsd(cost), refunded: parseUsd(refunded ?? '0'), uncosted: parseUsd(uncosted ?? '0') };
  const costed = formatUsd(costedRevenueOf(sums));
  const margins = percentOf(margin, costed);
  return margins === undefined
    ? undefined
    : { margin: margins, known: percentOf(costed, formatUsd(revenueOf(sums))) ?? 0 };
}

/** The margin of one call, with its attempts that no client pays. */
export function marginOfCharge(
  { cost, refunded }: { readonly cost: string; readonly refunded: string },
  ownCost: string,
  attempts: readonly { readonly absorbed: string }[],
): string {
  const writtenOff = parseUsd(sum(attempts.map(({ absorbed }) => absorbed)));
  const sums = {
    requests: 1,
    cost: parseUsd(cost),
    refunded: parseUsd(refunded),
    ownCost: parseUsd(ownCost),
    writtenOff,
  };
  return formatUsd(marginOf(sums)!);
}

const names = ['cost', 'refunded', 'uncosted', 'ownCost', 'writtenOff', 'margin'] as const;

/** Each column's known amounts added up; null where no row has one. */
export function sumOfRows(rows: readonly MarginSums[]): MarginSums {
  const added = names.map((name) => {
    const known = rows.flatMap((row) => row[name] ?? []);
    return [name, known.length === 0 ? null : sum(known)] as const;
  });
  return Object.fromEntries(added) as unknown as MarginSums;
}
