/** Short texts that stand for long ones: the same for the same text, on every machine and at every time. Pure. */
import { createHash } from 'node:crypto';

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `length` letters and digits (at most 40) that follow from `text`; for 9 of them, 13 quadrillion possibilities. */
export function shortHash(text: string, length: number): string {
  let number = BigInt(`0x${createHash('sha256').update(text, 'utf16le').digest('hex')}`);
  let hash = '';
  while (hash.length < length) {
    hash += letters[Number(number % 62n)];
    number /= 62n;
  }
  return hash;
}
