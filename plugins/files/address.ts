/** Addresses of files: signed, expiring, and on a trusted origin. Pure. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { Random } from '../../core/contract/host-tools.ts';
import { isPublicAddress } from '../../core/tools/public-address.ts';

const idFormat = /^file_[0-9a-f]{32}$/;
/** Seconds since 1970, in canonical form. */
const secondsFormat = /^[1-9]\d{0,11}$/;

/** 128 random bits. */
export function newFileId(random: Random): string {
  return `file_${random.bytes(16).toString('hex')}`;
}

export function isFileId(text: string): boolean {
  return idFormat.test(text);
}

/** Path and query of a file until `expiresAt` (wall-clock milliseconds, rounded up to seconds). */
export function signedPath(key: KeyObject, schema: string, fileId: string, expiresAt: number): string {
  const expires = String(Math.ceil(expiresAt / 1000));
  return `/v1/files/${fileId}/content?expires=${expires}&signature=${signatureOf(key, schema, fileId, expires)}`;
}

/**
 * When the address expires (wall-clock milliseconds); undefined if its signature does not match or it has expired.
 * Takes constant time for all signatures.
 */
export function checkedExpiry(
  key: KeyObject,
  schema: string,
  link: { readonly fileId: string; readonly expires: string; readonly signature: string },
  now: number,
): number | undefined {
  const { fileId, expires, signature } = link;
  if (!idFormat.test(fileId) || !secondsFormat.test(expires)) return undefined;
  // Compared as text: two texts may decode to the same bytes in base64.
  const expected = Buffer.from(signatureOf(key, schema, fileId, expires));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const expiresAt = Number(expires) * 1000;
  return now < expiresAt ? expiresAt : undefined;
}

/** The schema is signed too, as several gateways may share a secret. */
function signatureOf(key: KeyObject, schema: string, fileId: string, expires: string): string {
  return createHmac('sha256', key).update(`file address 1\n${schema}\n${fileId}\n${expires}`).digest('base64url');
}

/**
 * The origin of addresses if none is configured. A client, or an attacker through a cache, controls the Host header, so
 * it counts only if it names this machine or a private network; otherwise the listening address is used.
 */
export function originFor(host: string | undefined, listening: string): string {
  const url = host === undefined ? null : URL.parse(`http://${host}`);
  if (url === null || url.href !== `http://${url.host}/` || url.host !== host?.toLowerCase()) return listening;
  return isLocal(url.hostname) ? url.origin : listening;
}

function isLocal(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true;
  const address = hostname.replace(/^\[|\]$/g, '');
  return isIP(address) !== 0 && !isPublicAddress(address);
}
