/** The format of API keys: create, recognise without a database, display and hash. Pure. */
import { createHmac, hash, type KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Random } from '../../core/contract/host-tools.ts';

/** By what a key is found. */
export interface Digest {
  readonly digest: string;
  readonly secret: string;
}

/**
 * `sk-gw-`, 43 characters with 256 random bits, 6 characters with their CRC-32; base 62, so that a double click selects
 * all of it.
 */
const marker = 'sk-gw-';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const bodyLength = 43;
const checksumLength = 6;
const checkedLength = marker.length + bodyLength;
const shape = /^sk-gw-[0-9A-Za-z]{49}$/;

/** Keys that stand for workloads with tokens have it before what they have instead of a hash: no hash has a space, so no secret finds them. */
export const noSecretMark = 'jwt ';

export function makeKey(random: Random): string {
  const secret = BigInt(`0x${random.bytes(32).toString('hex')}`);
  const checked = marker + base62(secret, bodyLength);
  return checked + checksum(checked);
}

/** Whether the text has the format of a key. Does not say whether it is one, and costs no lookup. */
export function isWellFormed(text: string): boolean {
  return shape.test(text) && text.endsWith(checksum(text.slice(0, checkedLength)));
}

/** The prefix that may be shown and stored: enough to distinguish keys, and 208 secret bits too short to use. */
export function displayPrefix(key: string): string {
  return key.slice(0, marker.length + 8);
}

/** HMAC-SHA-256 in base64url. Without the pepper, a stolen table cannot be compared with guesses. */
export function hashKey(key: string, pepper: KeyObject): string {
  return createHmac('sha256', pepper).update(key).digest('base64url');
}

/** SHA-256 in base64url, for comparing keys in memory. */
export function fingerprintKey(key: string): string {
  return hash('sha256', key, 'base64url');
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let index = 0; index < checksumLength; index++) {
    digits = alphabet[rest % 62]! + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

function base62(value: bigint, length: number): string {
  let rest = value;
  let digits = '';
  for (let index = 0; index < length; index++) {
    digits = alphabet[Number(rest % 62n)]! + digits;
    rest /= 62n;
  }
  return digits;
}
