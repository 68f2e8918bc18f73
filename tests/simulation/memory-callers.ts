/** The tables of accounts and of their API keys in memory: the meaning of the auth plugin's statements. */
import type { AccountAdminStore } from '../../plugins/auth/account-queries.ts';
import type { Stores } from '../../plugins/auth/index.ts';
import type { AccountRow, NewKey, Store, ValidKey } from '../../plugins/auth/store.ts';
import type { DatabaseLink } from './database.ts';

export interface StoredKey extends NewKey {
  readonly id: string;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly rotatedAt: null;
}

/** A row that is written is another one in its place. */
export class CallerTable {
  readonly accounts = new Map<string, AccountRow>();
  /** By id, in the order in which they came. */
  readonly keys = new Map<string, StoredKey>();
  /** Called for each key that is made, changed or revoked. */
  onWrite: (key: StoredKey) => void = () => {};
  /** Called for what is announced in the transaction of a change: whose hash it is. */
  onAnnounce: (hash: string) => void = () => {};
  readonly #ids = new Map<string, string>();
  readonly #settings = new Map<string, string>();

  insertKey(row: NewKey): string {
    if (this.#ids.has(row.hash)) throw new Error('duplicate key: keys_hash_key');
    if (!this.accounts.has(row.accountId)) throw new Error('violates foreign key constraint "keys_account_id_fkey"');
    const id = `00000000-0000-4000-b000-${(this.keys.size + 1).toString(16).padStart(12, '0')}`;
    this.#ids.set(row.hash, id);
    this.#put({ ...row, id, revokedAt: null, lastUsedAt: null, rotatedAt: null });
    return id;
  }

  findValidKey(hash: string): ValidKey | undefined {
    const key = this.keys.get(this.#ids.get(hash) ?? '');
    if (key === undefined || key.revokedAt !== null) return undefined;
    const {
      id: keyId,
      accountId,
      models,
      expiresAt,
      addresses,
      limits,
      capAmount,
      capEvery,
      images,
      person,
      project,
      tags,
      regions,
    } = key;
    const { plan, planEndsAt, disabled, multiplier, retention } = this.accounts.get(accountId)!;
    const account = { accountId, plan, planEndsAt, disabled, multiplier, retention };
    return {
      ...account,
      hash,
      keyId,
      models,
      expiresAt,
      addresses,
      limits,
      capAmount,
      capEvery,
      images,
      project,
      projectId: null,
      projectModels: null,
      projectRegions: null,
      projectArchivedAt: null,
      person,
      access: null,
      tags,
      regions,
      replacedDigest: null,
      replacedEndsAt: null,
    };
  }

  findKeys(idOrPrefix: string): StoredKey[] {
    return Array.from(this.keys.values()).filter(({ id, prefix }) => id === idOrPrefix || prefix === idOrPrefix);
  }

  /** A second revocation keeps the first one's time. */
  revokeKey(id: string, hash: string, at: Date): { prefix: string; revokedAt: Date } {
    const key = this.keys.get(id)!;
    this.onAnnounce(hash);
    if (key.revokedAt === null) this.#put({ ...key, revokedAt: at });
    return { prefix: key.prefix, revokedAt: key.revokedAt ?? at };
  }

  changeKey(id: string, hash: string, terms: Parameters<AccountAdminStore['changeKey']>[2]): void {
    const key = this.keys.get(id);
    this.onAnnounce(hash);
    if (key !== undefined) this.#put({ ...key, ...terms });
  }

  /** An older time never overwrites a newer one. */
  touchKeys(uses: Parameters<Store['touchKeys']>[0]): void {
    for (const [id, atMs] of uses) {
      const key = this.keys.get(id);
      if (key !== undefined && atMs > (key.lastUsedAt?.getTime() ?? 0))
        this.keys.set(id, { ...key, lastUsedAt: new Date(atMs) });
    }
  }

  /** The first writer wins. */
  settle(name: string, value: string): string {
    if (!this.#settings.has(name)) this.#settings.set(name, value);
    return this.#settings.get(name)!;
  }

  setting(name: string): string | undefined {
    return this.#settings.get(name);
  }

  #put(key: StoredKey): void {
    this.keys.set(key.id, key);
    this.onWrite(key);
  }
}

/** One process's way to the tables. The one that asks for more than is asked here finds nothing to call. */
export function memoryStores(table: CallerTable, link: Pick<DatabaseLink, 'send'>): Stores {
  const send = <T>(name: string, run: () => T) => link.send(name, async () => run());
  const store: Partial<Store> = {
    findAccount: (id) => send('find an account', () => table.accounts.get(id)),
    insertKey: (row) => send('make an API key', () => table.insertKey(row)),
    findValidKey: (hash) => send('look an API key up', () => table.findValidKey(hash)),
    findKeys: (idOrPrefix) => send('find an API key', () => table.findKeys(idOrPrefix)),
    revokeKey: (id, hash, at) => send('revoke an API key', () => table.revokeKey(id, hash, at)),
    touchKeys: (uses) => send('note uses', () => table.touchKeys(uses)),
    findSetting: (name) => send('settle', () => table.setting(name)),
    getOrSetSetting: (name, value) => send('settle', () => table.settle(name, value)),
  };
  const admin: Partial<AccountAdminStore> = {
    account: (id) => send('find an account', () => table.accounts.get(id)),
    countActiveKeys: (accountId) =>
      send('count API keys', () => {
        const keys = Array.from(table.keys.values());
        return keys.filter((key) => key.accountId === accountId && key.revokedAt === null).length;
      }),
    key: (accountId, id) =>
      send('find an API key', () => {
        const key = table.keys.get(id);
        return key?.accountId === accountId ? { ...key } : undefined;
      }),
    changeKey: (id, hash, terms) => send('change an API key', () => table.changeKey(id, hash, terms)),
  };
  return { store: store as Store, admin: admin as AccountAdminStore };
}
