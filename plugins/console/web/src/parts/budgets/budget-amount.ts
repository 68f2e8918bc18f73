/** Amounts of budgets as decimal text, compared exactly. */

/** An amount above zero with at most nine decimals. */
export const isAmount = (text: string): boolean => /^\d{1,12}(\.\d{1,9})?$/.test(text) && /[1-9]/.test(text);

/** In whole nano-dollars. */
export function nanoOf(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** What is left of it, not below zero. */
export function leftOf({ spent, ceiling }: { readonly spent: string; readonly ceiling: string }): string {
  const left = nanoOf(ceiling) - nanoOf(spent);
  if (left <= 0n) return '0.00';
  const digits = left.toString().padStart(10, '0');
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`;
}
