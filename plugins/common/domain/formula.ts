/** A charge as a sum that anybody can do again: classes × price × ratio. Pure. */
import { formatUsd, type Ratio, unitPrice } from './money.ts';
import { type Price, pieceClasses, type Usage, type UsageClass, usageClasses } from './usage.ts';

const pieces: ReadonlySet<UsageClass> = new Set(pieceClasses);

/**
 * `[(1200 input × 2.50 + 300 output × 10.00) / 1M + 2 web_search × 0.01 + 12 audio × 0.36 / 3600] × 8/5`; `0` where nothing was
 * counted.
 */
export function formulaOf(usage: Usage, price: Price, ratio: Ratio | string): string {
  const term = (name: UsageClass) => `${usage[name]} ${name} × ${formatUsd(unitPrice(price, name))}`;
  const counted = usageClasses.filter((name) => (usage[name] ?? 0) > 0);
  const tokens = counted.filter((name) => !pieces.has(name) && name !== 'audio').map(term);
  const sums = counted.filter((name) => pieces.has(name)).map(term);
  if (counted.includes('audio')) sums.push(`${term('audio')} / 3600`);
  if (tokens.length > 0) sums.unshift(`(${tokens.join(' + ')}) / 1M`);
  const sum = sums.join(' + ') || '0';
  const factor = typeof ratio === 'string' ? ratio : `${ratio.numerator}/${ratio.denominator}`;
  return factor === '1/1' ? sum : `[${sum}] × ${factor}`;
}
