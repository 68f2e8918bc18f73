/** The known set as people read it: amounts, counts and what each grant has left, by rules of their own. */
import type { Figures } from './figures.ts';
import { type Person, undated } from './play.ts';

/** Cents from a dollar on, four digits below; what is left out is cut. `exact`: all digits. */
export function shown(amount: bigint, exact = false): string {
  const size = amount < 0n ? -amount : amount;
  const [units, decimals] = [size / 1_000_000_000n, (size % 1_000_000_000n).toString().padStart(9, '0')];
  const zeros = /^0*/.exec(decimals)![0].length;
  const length = exact ? 9 : zeros + 4;
  const digits = units > 0n && !exact ? decimals.slice(0, 2) : decimals.slice(0, length).replace(/0+$/, '');
  return `${amount < 0n ? '−' : ''}$${units.toLocaleString('en-US')}.${digits.padEnd(2, '0')}`;
}

export const counted = (count: number) => count.toLocaleString('en-US');

export const share = (part: number, whole: number) => `${Math.round((part / whole) * 1_000) / 10}%`;

export interface Lot {
  readonly name: string;
  readonly amount: bigint;
  readonly expires: number;
  left: bigint;
}

/** A person's money, as it is spent: what expires first, then the oldest. Plans and debits take money that does not expire. */
export function lotsOf({ known, calls }: Figures, { accountId }: Person): Lot[] {
  const lots: Lot[] = [];
  const charges = calls.map(({ at, account, cost }) => ({
    at,
    account,
    name: 'call',
    amount: -cost,
    expires: undated,
  }));
  const moves = [...charges, ...known.moves].filter(({ account }) => account === accountId);
  for (const { at, name, amount, expires } of moves.sort((one, other) => one.at - other.at)) {
    if (amount > 0n) lots.push({ name, amount, expires, left: amount });
    lots.sort((one, other) => one.expires - other.expires);
    let due = amount < 0n ? -amount : 0n;
    for (const lot of lots.filter((lot) => lot.expires > at && (name === 'call' || lot.expires === undated))) {
      const part = lot.left < due ? lot.left : due;
      lot.left -= part;
      due -= part;
    }
  }
  return lots.filter(({ expires, left }) => expires > known.now && left > 0n);
}
