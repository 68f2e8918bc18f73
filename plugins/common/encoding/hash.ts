/** Short deterministic identifiers for longer texts. Pure. */
import { hash } from 'node:crypto';

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Digits that are taken from the number at once: 62^8 is exact in a double. */
const digitsAtOnce = 8;
const step = 62n ** BigInt(digitsAtOnce);

/** `length` letters and digits (at most 40), derived from `text`; 9 of them have 13 quadrillion possibilities. */
export function shortHash(text: string, length: number): string {
  let number = BigInt(`0x${hash('sha256', Buffer.from(text, 'utf16le'), 'hex')}`);
  let short = '';
  while (short.length < length) {
    let digits = Number(number % step);
    number /= step;
    for (let count = 0; count < digitsAtOnce && short.length < length; count++) {
      short += letters[digits % 62];
      digits = Math.floor(digits / 62);
    }
  }
  return short;
}
