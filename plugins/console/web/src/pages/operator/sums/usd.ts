/** Sums of USD texts on the operator's pages: exact, by the core's own arithmetic. Pure. */
import { formatUsd, parseUsd } from '../../../../../../common/domain/money.ts';

/** `left - right`, as text. */
export function minus(left: string, right: string): string {
  return formatUsd(parseUsd(left) - parseUsd(right));
}

export function sum(amounts: readonly string[]): string {
  return formatUsd(amounts.reduce((total, amount) => total + parseUsd(amount), 0n));
}

/** `part` of `whole` in tenths of a percent, rounded down: `"3"` of `"40"` is 7.5. undefined: of nothing. */
export function percentOf(part: string, whole: string): number | undefined {
  const [top, bottom] = [parseUsd(part), parseUsd(whole)];
  return bottom === 0n ? undefined : Number((top * 1_000n) / bottom) / 10;
}

export function isNegative(amount: string): boolean {
  return parseUsd(amount) < 0n;
}

/** For charts alone, where a pixel is coarser than a nano-dollar. */
export function approximate(amount: string): number {
  return Number(amount);
}

/** Two amounts for the share by which one has changed. */
export function usdChange(now: string | null | undefined, before: string | null | undefined) {
  const figure = (amount: string | null | undefined) => (amount ? approximate(amount) : undefined);
  return [figure(now), figure(before)] as const;
}

/** Whether a text is an amount above zero that the gateway takes: at most nine decimals. */
export function isAmount(text: string): boolean {
  return /^\d{1,12}(\.\d{1,9})?$/.test(text.trim()) && !/^[0.]+$/.test(text.trim());
}

/** Whether a text is a positive ratio with at most six decimals. */
export function isRatio(text: string): boolean {
  return /^\d{1,6}(\.\d{1,6})?$/.test(text.trim()) && !/^[0.]+$/.test(text.trim());
}

export function isNothing(amount: string): boolean {
  return parseUsd(amount) === 0n;
}

/** `3/2` as `1.5`; a ratio without short decimals stays a fraction. */
export function plainRatio(text: string): string {
  const [top = '', bottom = '1'] = text.split('/');
  if (!/^\d+$/.test(top) || !/^\d+$/.test(bottom) || Number(bottom) === 0) return text;
  const millionths = BigInt(top) * 1_000_000n;
  if (millionths % BigInt(bottom) !== 0n) return text;
  const digits = (millionths / BigInt(bottom)).toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
}
