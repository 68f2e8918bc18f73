/** Seals secrets by AES-256-GCM with a key of the gateway's own; name and version are authenticated with the text. Pure. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';

export interface SealingKey {
  /** Names the key in the database; it says nothing about it. */
  readonly id: string;
  readonly cipher: Buffer;
  readonly print: Buffer;
}

/** What is sealed belongs to this row alone. */
export interface SealedPlace {
  readonly name: string;
  readonly version: number;
}

export const leastKeyCharacters = 32;
/** What an operator does about secrets that cannot be opened. */
export const howToOpen = 'set GATEWAY_SECRETS_KEY, or put back secrets.key in the data directory, as it was';
const algorithm = 'aes-256-gcm';
export const nonceBytes = 12;
const tagBytes = 16;

export function sealingKey(text: string): SealingKey {
  const derived = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', text, '', `model-gateway vendor secrets: ${purpose}`, bytes));
  return { id: derived('id', 6).toString('base64url'), cipher: derived('cipher', 32), print: derived('print', 32) };
}

/** `nonce`: never twice with one key. */
export function seal(key: SealingKey, text: string, place: SealedPlace, nonce: Buffer): string {
  const cipher = createCipheriv(algorithm, key.cipher, nonce, { authTagLength: tagBytes });
  cipher.setAAD(bytesOf(place));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url');
}

/** undefined: it was sealed with another key, for another place, or is damaged. */
export function unseal(key: SealingKey, sealed: string, place: SealedPlace): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < nonceBytes + tagBytes) return undefined;
  try {
    const nonce = bytes.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, key.cipher, nonce, { authTagLength: tagBytes });
    decipher.setAAD(bytesOf(place));
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

/** Differs for different secrets; only the holder of the key can test a guess by it. */
export function fingerprintOf(key: SealingKey, text: string): string {
  return createHmac('sha256', key.print).update(text).digest('hex').slice(0, 12);
}

const bytesOf = ({ name, version }: SealedPlace) => Buffer.from(JSON.stringify([name, version]));
