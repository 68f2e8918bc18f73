/**
 * Sealing of opaque state and summaries that clients carry for the gateway; only the same account can have them
 * opened.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Random } from '../../../core/contract/host-tools.ts';
import { isObject, tryParse } from '../../../core/json/json.ts';
import type { OpaqueState } from '../../common/canonical/prompt.ts';
import { shortHash } from '../../common/encoding/hash.ts';
import { isSealed, sealPrefix } from '../encoding/sealed-text.ts';
import { readOrMakeSecret } from './seal-secret.ts';

const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
/** Characters of a sealed text; no vendor's opaque state is nearly as long. */
const maxSealedLength = 16 * 2 ** 20;
/** Account keys in memory; others are derived again. */
const maxAccountKeys = 2000;
/** The purpose of a sealed text: a text sealed for one purpose does not open for another. */
const opaqueStatePurpose = 'keepsake';

/**
 * AES-256-GCM; `gw1.` and base64url of nonce, ciphertext and tag. Each account has its own key (HKDF of the secret);
 * account and purpose are authenticated as additional data.
 *
 * A holder of a sealed text without the secret can see its length and that this gateway made it, and can keep it, send
 * it again or omit it: a seal has no date and its account may use it any number of times. Without the secret it is
 * impossible to read it, change it, create one, or use it for another purpose or account. A holder of the secret can
 * do all of this. Without its secret an older seal is unreadable: clients lose the reasoning of running conversations
 * and their compacted history.
 */
export class Sealer {
  /** The first seals, all open. */
  #secrets: readonly Buffer[];
  readonly #random: Random;
  /** By account, in the order of the secrets. */
  readonly #keys = new LRUCache<string, readonly [Buffer, ...Buffer[]]>({ max: maxAccountKeys });

  constructor(secrets: readonly Buffer[], random: Random) {
    this.#secrets = secrets;
    this.#random = random;
  }

  /**
   * With the configured secrets, or with one that is created once and stored in `directory`. Several gateways that
   * serve the same accounts need the same configured ones. Throws when a secret is too short or the file cannot be read.
   */
  static async open(
    directory: string,
    configured: string | readonly string[] | undefined,
    random: Random,
  ): Promise<Sealer> {
    const secrets = [configured ?? []].flat();
    if (secrets.length === 0) return new Sealer([await readOrMakeSecret(directory, random)], random);
    if (secrets.some(({ length }) => length < 16))
      throw new Error('the secret for seals must have at least 16 characters');
    return new Sealer(
      secrets.map((secret) => Buffer.from(secret, 'utf8')),
      random,
    );
  }

  /** For commands and checks, which serve no requests: creates no file. */
  static idle(random: Random): Sealer {
    return new Sealer([random.bytes(keyBytes)], random);
  }

  /** Applies another list. */
  become(other: Sealer): void {
    if (other === this) return;
    this.#secrets = other.#secrets;
    this.#keys.clear();
  }

  seal(opaqueState: OpaqueState, accountId: string): string {
    return this.sealValue(opaqueStatePurpose, [opaqueState.maker, opaqueState.value], accountId);
  }

  /** undefined: not sealed by this gateway for this account. */
  open(text: string, accountId: string): OpaqueState | undefined {
    const value = this.openValue(opaqueStatePurpose, text, accountId);
    if (!Array.isArray(value)) return undefined;
    const [maker, opaqueValue] = value as unknown[];
    return typeof maker === 'string' && typeof opaqueValue === 'string' ? { maker, value: opaqueValue } : undefined;
  }

  /** Seals any JSON value, such as a summary. Opening needs the same `purpose`. Throws RangeError above 16 MB. */
  sealValue(purpose: string, value: unknown, accountId: string): string {
    const nonce = this.#random.bytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', this.#keysOf(accountId)[0], nonce);
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
    for (const key of this.#keysOf(accountId)) {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAAD(context(purpose, accountId));
      decipher.setAuthTag(sealed.subarray(-tagBytes));
      const opened = finished(decipher, sealed.subarray(nonceBytes, -tagBytes));
      if (opened === undefined) continue;
      const holder = tryParse(opened);
      return isObject(holder) ? holder['v'] : undefined;
    }
    return undefined;
  }

  /** 8 letters and digits by which the gateway recognises `text` for this account; they do not show it. By each secret, the first one for new ones. */
  marks(text: string, accountId: string): [string, ...string[]] {
    const mark = (key: Buffer) => shortHash(createHmac('sha256', key).update(text).digest('base64'), 8);
    const [first, ...others] = this.#keysOf(accountId);
    return [mark(first), ...others.map(mark)];
  }

  #keysOf(accountId: string): readonly [Buffer, ...Buffer[]] {
    let keys = this.#keys.get(accountId);
    if (keys === undefined) {
      // One key for each account keeps the number of seals under it far below the limit of random nonces (2^32).
      keys = this.#secrets.map((secret) =>
        Buffer.from(hkdfSync('sha256', secret, 'model gateway seal', `gw1 ${accountId}`, keyBytes)),
      ) as [Buffer, ...Buffer[]];
      this.#keys.set(accountId, keys);
    }
    return keys;
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
