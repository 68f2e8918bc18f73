/** The secret that all keys of a gateway are hashed with: from the configuration, or made once and kept in the database. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Random } from '../../core/contract.ts';
import type { Store } from './store.ts';

/** For dry runs, which must not touch the database and hash no key. */
export const unusedPepper = createSecretKey(Buffer.alloc(32));

/**
 * The pepper of this gateway. Throws when `configured` is another one than the keys were hashed with: every key would
 * be refused, and a gateway that does not start says so better.
 */
export async function loadPepper(store: Store, configured: string, random: Random): Promise<KeyObject> {
  const secret = configured !== '' ? configured : await store.settle('pepper', random.bytes(32).toString('base64url'));
  const pepper = createSecretKey(Buffer.from(secret, 'utf8'));
  const fingerprint = createHmac('sha256', pepper).update('fingerprint').digest('base64url');
  if ((await store.settle('pepper fingerprint', fingerprint)) !== fingerprint)
    throw new Error(
      'auth.secret is not the one that the keys in this database were made with; set it back to that one',
    );
  return pepper;
}
