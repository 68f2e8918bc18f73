/** Redeem codes: creation, parsing of typed text, and the stored hash and prefix. Pure. */
import { createHash } from 'node:crypto';
import type { Random } from '../../core/contract/host-tools.ts';

/** Crockford's base 32: no letter that reads like a digit. https://www.crockford.com/base32.html */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const groups = 5;
const groupChars = 4;
/** 100 random bits, so codes cannot be guessed. */
const codeChars = groups * groupChars;

/** A new code: `7K3M-9QXT-…`, five groups of four. */
export function makeCode(random: Random): string {
  const chars = Array.from(random.bytes(codeChars), (byte) => alphabet[byte % alphabet.length]!).join('');
  return chars.match(/.{4}/g)!.join('-');
}

/** Parses a typed code: case, spaces and dashes do not matter, O is 0, I and L are 1. undefined: not a code. */
export function readCode(typed: string): string | undefined {
  const chars = typed.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1');
  return chars.length === codeChars && /^[0-9A-HJKMNP-TV-Z]+$/.test(chars) ? chars : undefined;
}

/** The stored form of a code. A plain digest is enough for random text. */
export function hashCode(code: string): string {
  return createHash('sha256')
    .update(readCode(code) ?? code)
    .digest('hex');
}

/** Long enough to identify a code, too short to redeem it. */
export function prefixOf(code: string): string {
  return code.slice(0, groupChars);
}
