/** Configuration types of amounts and ratios. */

import { z } from '../../../core/contract/schema.ts';
import { type Money, money, parseRatio, parseUsd, type Ratio } from './money.ts';

function exact<T>(parse: (text: string) => T) {
  return z.union([z.number(), z.string()]).transform((value, context): T => {
    try {
      return parse(String(value));
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message });
      return z.NEVER;
    }
  });
}

/** USD as decimal text, exact to a nano-dollar. */
export const usd = () =>
  exact((text): Money => {
    const amount = parseUsd(text);
    if (amount < 0n) throw new RangeError(`"${text}" is below zero`);
    return money(amount);
  });

/** A positive exact ratio such as `2` or `1.6`. */
export const ratio = () => exact((text): Ratio => parseRatio(text));
