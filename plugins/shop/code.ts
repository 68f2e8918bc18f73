/** What a redeem code looks like, how it is read from what people type, and what is kept of it. Pure. */
import { createHash } from 'node:crypto';
import type { Random } from '../../core/contract.ts';

/** Crockford's base 32: no letter that reads like a digit. https://www.crockford.com/base32.html */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const groups = 5;
const groupChars = 4;
/** 100 random bits: nobody finds one by trying. */
const codeChars = groups * groupChars;

/** A new code: `7K3M-9QXT-…`, five groups of four. */
export function makeCode(random: Random): string {
  const chars = Array.from(random.bytes(codeChars), (byte) => alphabet[byte % alphabet.length]!).join('');
  return chars.match(/.{4}/g)!.join('-');
}

/** Reads a code as typed: case, spaces and dashes do not matter, O is 0, I and L are 1. undefined: it cannot be one. */
export function readCode(typed: string): string | undefined {
  const chars = typed.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1');
  return chars.length === codeChars && /^[0-9A-HJKMNP-TV-Z]+$/.test(chars) ? chars : undefined;
}

/** What is kept in a code's place. A plain digest will do: there is no dictionary of random texts. */
export function hashCode(code: string): string {
  return createHash('sha256')
    .update(readCode(code) ?? code)
    .digest('hex');
}

/** Enough to tell a code by, and too little to redeem it. */
export function prefixOf(code: string): string {
  return code.slice(0, groupChars);
}
