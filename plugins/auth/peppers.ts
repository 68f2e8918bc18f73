/** The secrets that keys are hashed with: the first for new keys, all of them to find keys; and what a change of them leaves to do. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Host } from '../../core/contract/contract.ts';
import type { RotatedSecret } from '../../core/contract/secret.ts';
import { type Digest, hashKey } from './key.ts';
import type { Store } from './store.ts';

interface Pepper {
  readonly key: KeyObject;
  /** Names the secret without showing it. */
  readonly mark: string;
}

const madeName = 'pepper';
const originalName = 'pepper fingerprint';

export class Peppers {
  #all: readonly Pepper[];
  /** Keys that were made before have no digests beside their hash. */
  #isFirst: boolean;

  constructor(secrets: readonly string[], original?: string) {
    this.#all = [...new Set(secrets)].map(pepperOf);
    this.#isFirst = this.#all.length === 1 && (original ?? this.first) === this.first;
  }

  /** Applies another list. */
  become(other: Peppers): void {
    this.#all = other.#all;
    this.#isFirst = other.#isFirst;
  }

  /** The mark of the secret for new keys. */
  get first(): string {
    return this.#all[0]!.mark;
  }

  get marks(): readonly string[] {
    return this.#all.map(({ mark }) => mark);
  }

  /** Its hash first. */
  hashesOf(key: string): [string, ...string[]] {
    return this.#all.map((pepper) => hashKey(key, pepper.key)) as [string, ...string[]];
  }

  /** By which a new key is found beside its hash: by processes with any of the secrets as their only one. */
  digestsOf(key: string): Digest[] {
    if (this.#isFirst) return [];
    return this.#all.map((pepper) => ({ digest: hashKey(key, pepper.key), secret: pepper.mark }));
  }
}

function pepperOf(secret: string): Pepper {
  const key = createSecretKey(Buffer.from(secret, 'utf8'));
  return { key, mark: createHmac('sha256', key).update('fingerprint').digest('base64url') };
}

/** For dry runs, which must not use the database and hash no key. */
export const unusedPeppers = new Peppers(['']);

/**
 * Throws if keys were made with another secret: they would be refused, and an error at the start is clearer. Commands go on where only some
 * would be.
 */
export async function loadPeppers(
  store: Store,
  configured: readonly string[],
  { mode, random }: Pick<Host, 'mode' | 'random'>,
): Promise<Peppers> {
  const made =
    configured.length === 0
      ? await store.getOrSetSetting(madeName, random.bytes(32).toString('base64url'))
      : await store.findSetting(madeName);
  const secrets = [...configured, ...(made === undefined ? [] : [made])];
  const original = await store.getOrSetSetting(originalName, new Peppers(secrets).first);
  const peppers = new Peppers(secrets, original);
  if (peppers.marks.includes(original)) return peppers;
  const { all, left } = await store.countKeys(peppers.marks, false);
  if (left === all)
    throw new Error(
      'auth.secret is not the one that the keys in this database were made with; set it back to that one',
    );
  if (left > 0 && mode === 'serve')
    throw new Error(
      `auth.secret lacks the one that ${left} keys still need: put it back at the end of the list, or give these keys up with "secrets rotate --give-up"`,
    );
  return peppers;
}

interface Changing {
  load(list: readonly string[]): Promise<Peppers>;
  changed(): void;
}

/**
 * Gets ready for another list; what it returns takes that up. The database is asked for another list alone: other changes apply while it
 * is away.
 */
export function changing(peppers: Peppers, configured: readonly string[], { load, changed }: Changing) {
  let running = configured;
  return async (list: readonly string[]): Promise<() => void> => {
    if (isDeepStrictEqual(list, running)) return () => undefined;
    const next = await load(list);
    return () => {
      running = list;
      peppers.become(next);
      changed();
    };
  };
}

export function rotatedKeys(store: Store, peppers: Peppers, configured: readonly string[]): RotatedSecret {
  return {
    setting: 'auth.secret',
    uses: 'hashes of API keys',
    secrets: peppers.marks.length,
    async rotate(givesUp) {
      const original = await store.findSetting(originalName);
      const count = () => store.countKeys([peppers.first], peppers.first === original);
      const { all, left } = await count();
      if (left > 0 && givesUp) await store.revokeLeft([peppers.first], peppers.first === original);
      if (left === 0 || givesUp) {
        await store.setSetting(originalName, peppers.first);
        if (configured.length > 0) await store.removeSetting(madeName);
      }
      const isDone = left === 0 || givesUp;
      return {
        done: all - left,
        left: givesUp ? 0 : left,
        advice: isDone
          ? 'the others can be removed'
          : 'a key is hashed with the first secret when it is used next; keep the others until none is left, or revoke the rest with --give-up',
      };
    },
  };
}
