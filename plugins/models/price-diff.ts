/** The differences between two versions of a price, as lines. Pure. */
import { formatUsd } from '../common/domain/money.ts';
import type { MediaTable, PriceVersion } from '../common/domain/prices.ts';
import { type Price, usageClasses } from '../common/domain/usage.ts';

/** `  input 2.50 → 2.75`, `+ >272k input 5.00`, `- priority ×2/1`; empty when nothing changes. */
export function diffPrices(before: PriceVersion | undefined, after: PriceVersion): string[] {
  const [old, young] = [flat(before), flat(after)];
  const lines: string[] = [];
  for (const [name, amount] of young) {
    const was = old.get(name);
    if (was === undefined) lines.push(`+ ${name} ${amount}`);
    else if (was !== amount) lines.push(`  ${name} ${was} → ${amount}`);
  }
  for (const [name, amount] of old) if (!young.has(name)) lines.push(`- ${name} ${amount}`);
  return lines;
}

function flat(version: PriceVersion | undefined): Map<string, string> {
  const rows = new Map<string, string>();
  if (version === undefined) return rows;
  addClasses(rows, '', version.base);
  for (const { name, above, price, times, service } of version.tiers) {
    // Levels are compared by their number: `200k` equals `200000`.
    const level = above === undefined ? name : `>${above}`;
    const label = service === undefined || service === level ? `${level} ` : `${service} ${level} `;
    addClasses(rows, label, price ?? {});
    if (times !== undefined) rows.set(label.trimEnd(), `× ${times.numerator}/${times.denominator}`);
  }
  addTable(rows, 'image', version.image);
  addTable(rows, 'second', version.second);
  return rows;
}

function addClasses(rows: Map<string, string>, label: string, price: Price): void {
  for (const name of usageClasses) {
    const amount = price[name];
    if (amount !== undefined) rows.set(label + name, formatUsd(amount));
  }
}

function addTable(rows: Map<string, string>, name: string, table: MediaTable | undefined): void {
  for (const { words, amount } of table?.entries ?? []) rows.set(`${name} ${words.join(' ')}`, formatUsd(amount));
  if (table?.otherwise !== undefined) rows.set(`${name} default`, formatUsd(table.otherwise));
}
