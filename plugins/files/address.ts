/** Addresses of files: signed, expiring, and on an origin that nobody else chose. Pure. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { Random } from '../../core/contract.ts';
import { isPublicAddress } from '../../core/public-address.ts';

const idFormat = /^file_[0-9a-f]{32}$/;
/** Seconds since 1970 in the one way to write them. */
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
 * When the address expires (wall-clock milliseconds); undefined when any part of it is not as it was signed, or it has
 * expired. Takes the same time whatever is wrong with a signature.
 */
export function checkedExpiry(
  key: KeyObject,
  schema: string,
  asked: { readonly fileId: string; readonly expires: string; readonly signature: string },
  now: number,
): number | undefined {
  const { fileId, expires, signature } = asked;
  if (!idFormat.test(fileId) || !secondsFormat.test(expires)) return undefined;
  // Compared as text: two texts may stand for the same bytes in base64.
  const expected = Buffer.from(signatureOf(key, schema, fileId, expires));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const expiresAt = Number(expires) * 1000;
  return now < expiresAt ? expiresAt : undefined;
}

/** The schema is signed too: gateways may be configured with one secret. */
function signatureOf(key: KeyObject, schema: string, fileId: string, expires: string): string {
  return createHmac('sha256', key).update(`file address 1\n${schema}\n${fileId}\n${expires}`).digest('base64url');
}

/**
 * What addresses begin with where no origin is configured. A Host header is the client's own word and may be another's by
 * way of a cache, so it counts only where it leads to this machine or network; else the address listened at stands.
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
