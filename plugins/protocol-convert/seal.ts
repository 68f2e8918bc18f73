/** Seals what clients carry for the gateway: vendors' keepsakes and summaries that only their account can have opened. */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Random } from '../../core/contract.ts';
import type { Keepsake } from './canon.ts';
import { isObject, tryParse } from './json.ts';
import { readOrMakeSecret } from './seal-secret.ts';

/** What every sealed text begins with. */
export const sealPrefix = 'gw1.';
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
/** Characters of a sealed text; no vendor's keepsake comes near. */
const maxSealedLength = 16 * 2 ** 20;
/** Keys of accounts that are kept at hand; others are derived again. */
const maxAccountKeys = 2000;
/** What a sealed text is for: one kind cannot be passed off as another. */
const keepsakePurpose = 'keepsake';

/** Whether the text looks sealed, by this gateway or another: it must not go to a vendor. */
export function isSealed(text: string): boolean {
  return text.startsWith(sealPrefix);
}

/**
 * AES-256-GCM; `gw1.` and base64url of nonce, ciphertext and tag. Each account has a key of its own (HKDF of the secret),
 * and account and purpose are authenticated beside it.
 *
 * Whoever holds a sealed text without the secret can see how long it is, that this gateway made it, and can keep it, send
 * it again or leave it out: a seal has no date and may be used any number of times by its account. They cannot read it,
 * change a bit of it, make one, use it for another purpose or under another account. Whoever has the secret can do all of
 * this; a new secret makes every older seal unreadable, which costs clients the reasoning of running conversations and
 * their compacted history.
 */
export class Sealer {
  readonly #secret: Buffer;
  readonly #random: Random;
  readonly #keys = new LRUCache<string, Buffer>({ max: maxAccountKeys });

  constructor(secret: Buffer, random: Random) {
    this.#secret = secret;
    this.#random = random;
  }

  /**
   * With the configured secret, or with one that is made once and kept in `directory`. Several gateways that serve the
   * same accounts need the same configured secret. Throws when the secret is too short or its file cannot be read.
   */
  static async open(directory: string, configured: string | undefined, random: Random): Promise<Sealer> {
    if (configured === undefined) return new Sealer(await readOrMakeSecret(directory, random), random);
    if (configured.length < 16) throw new Error('the secret for seals must have at least 16 characters');
    return new Sealer(Buffer.from(configured, 'utf8'), random);
  }

  /** For commands and checks, which answer nobody: no file is made. */
  static idle(random: Random): Sealer {
    return new Sealer(random.bytes(keyBytes), random);
  }

  seal(keepsake: Keepsake, accountId: string): string {
    return this.sealValue(keepsakePurpose, [keepsake.maker, keepsake.value], accountId);
  }

  /** undefined: not sealed by this gateway for this account. */
  open(text: string, accountId: string): Keepsake | undefined {
    const value = this.openValue(keepsakePurpose, text, accountId);
    if (!Array.isArray(value)) return undefined;
    const [maker, words] = value as unknown[];
    return typeof maker === 'string' && typeof words === 'string' ? { maker, value: words } : undefined;
  }

  /** Seals anything that JSON can word, such as a summary. `purpose` must be the same to open it. Throws RangeError above 16 MB. */
  sealValue(purpose: string, value: unknown, accountId: string): string {
    const nonce = this.#random.bytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', this.#keyOf(accountId), nonce);
    cipher.setAAD(context(purpose, accountId));
    const sealed = Buffer.concat([
      nonce,
      cipher.update(JSON.stringify({ v: value }), 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    const text = sealPrefix + sealed.toString('base64url');
    if (text.length > maxSealedLength) throw new RangeError('too much to seal');
    return text;
  }

  /** undefined: not sealed by this gateway for this account and purpose. */
  openValue(purpose: string, text: string, accountId: string): unknown {
    if (!isSealed(text) || text.length > maxSealedLength) return undefined;
    const sealed = Buffer.from(text.slice(sealPrefix.length), 'base64url');
    if (sealed.length < nonceBytes + tagBytes) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#keyOf(accountId), sealed.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(context(purpose, accountId));
    decipher.setAuthTag(sealed.subarray(-tagBytes));
    const opened = finished(decipher, sealed.subarray(nonceBytes, -tagBytes));
    const holder = opened === undefined ? undefined : tryParse(opened);
    return isObject(holder) ? holder['v'] : undefined;
  }

  #keyOf(accountId: string): Buffer {
    let key = this.#keys.get(accountId);
    if (key === undefined) {
      // A key for each account keeps the seals under one key far below what random nonces allow (2^32).
      key = Buffer.from(hkdfSync('sha256', this.#secret, 'model gateway seal', `gw1 ${accountId}`, keyBytes));
      this.#keys.set(accountId, key);
    }
    return key;
  }
}

function context(purpose: string, accountId: string): Buffer {
  return Buffer.from(JSON.stringify([sealPrefix, purpose, accountId]), 'utf8');
}

function finished(decipher: ReturnType<typeof createDecipheriv>, content: Buffer): string | undefined {
  try {
    return Buffer.concat([decipher.update(content), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
