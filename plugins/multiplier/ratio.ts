/** Exact arithmetic of ratios, without a division. Pure. */
import { isLess, type Ratio } from '../../core/money.ts';

/** Not reduced, as `timesRatio` would: `written` needs a power of ten below. */
export function product(one: Ratio, other: Ratio): Ratio {
  return { numerator: one.numerator * other.numerator, denominator: one.denominator * other.denominator };
}

export function lower(one: Ratio, other: Ratio): Ratio {
  return isLess(other, one) ? other : one;
}

/** As an operator would write it: `1.6`. Denominators are powers of ten, as configuration is read. */
export function written({ numerator, denominator }: Ratio): string {
  const decimals = denominator.toString().length - 1;
  const digits = numerator.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
