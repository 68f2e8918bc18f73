/** Accounts and their keys: the service that other plugins and the commands use. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock, Random } from '../../core/contract/host-tools.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { Account, Accounts } from '../common/domain/accounts.ts';
import type { KeyTerms, ReplacedSecret, RotatedKey } from '../common/domain/admin/accounts.ts';
import { isUuid } from '../common/domain/database.ts';
import { displayPrefix, makeKey, noSecretMark } from './key.ts';
import { rowOfTerms, validName, validProject } from './key-terms.ts';
import type { Peppers } from './peppers.ts';
import type { AccountRow, FoundKey, KeyRow, Store } from './store.ts';

const mostOverlapMs = 30 * 86_400_000;

interface RevokedKey {
  readonly id: string;
  readonly prefix: string;
  readonly revokedAt: Date;
}

interface KeyInProject {
  readonly id: string;
  readonly prefix: string;
  readonly project: string | null;
}

interface ListedKey extends KeyRow {
  /** Earlier secrets that still work. */
  readonly replaced: readonly ReplacedSecret[];
}

/** Methods for the commands, beyond the service. */
export interface AccountService extends Accounts {
  find(nameOrId: string): Promise<AccountRow | undefined>;
  list(): Promise<AccountRow[]>;
  setDisabled(accountId: string, disabled: boolean): Promise<void>;
  /** The account's own price ratio, as decimal text; undefined: 1. Takes effect within a second. */
  setMultiplier(accountId: string, multiplier: string | undefined): Promise<void>;
  /** undefined: what the settings say. Takes effect as the ratio does. */
  setRetention(accountId: string, retention: 'none' | undefined): Promise<void>;
  /** Creates a key with all possible terms, of a person; absent: a service's. */
  makeKey(accountId: string, terms: KeyTerms, person?: string): Promise<{ id: string; key: string; prefix: string }>;
  listKeys(accountId: string | undefined): Promise<ListedKey[]>;
  /** Moves a key, named by its id or display prefix, into a project; undefined: out of all. */
  setProject(idOrPrefix: string, project: string | undefined): Promise<KeyInProject>;
  /** By id, display prefix or name; `not_found`, or `conflict` if several match. Its earlier secret works for so long. */
  rotateKey(named: string, overlapMs: number): Promise<RotatedKey>;
  /** As `rotateKey` finds it. */
  revokeKey(named: string): Promise<RevokedKey>;
}

export interface AccountDependencies {
  readonly store: Store;
  readonly peppers: Peppers;
  readonly clock: Clock;
  readonly random: Random;
}

export function openAccounts({ store, peppers, clock, random }: AccountDependencies): AccountService {
  const today = () => new Date(clock.now());
  const issueKey = issuing({ store, peppers, clock, random });
  const rotate = rotating({ store, peppers, clock, random });
  return {
    async create(name, plan): Promise<Account> {
      const row = { name: validName(name, 'name'), plan, createdAt: today() };
      // A name in the form of an id could be mistaken for another account's id.
      if (isUuid(row.name)) throw invalid('An account cannot be named like an id.', 'name');
      const inserted = await store.insertAccount(row);
      if (inserted !== undefined) return inserted;
      throw new GatewayError('conflict', `An account named "${row.name}" exists already.`, { field: 'name' });
    },

    find: (nameOrId) => store.findAccount(nameOrId),
    list: () => store.listAccounts(),

    async setDisabled(accountId, disabled) {
      await store.setDisabled(accountId, disabled);
    },

    async setMultiplier(accountId, multiplier) {
      await store.setMultiplier(accountId, multiplier ?? null);
    },

    async setRetention(accountId, retention) {
      await store.setRetention(accountId, retention ?? null);
    },

    createKey: (accountId, { name, models, expiresAt }) =>
      issueKey(accountId, { name, models, expiresAt: expiresAt?.getTime() }),
    makeKey: issueKey,

    setPlan: (orm, accountId, plan, endsAt) =>
      store.setPlan(orm, accountId, plan, endsAt === undefined ? null : new Date(endsAt)),

    async listKeys(accountId) {
      const rows = await store.listKeys(accountId);
      const rotated = rows.flatMap(({ id, rotatedAt, revokedAt }) => (rotatedAt && !revokedAt ? [id] : []));
      const replaced = await store.replacedSecrets(rotated, today());
      return rows.map((row) => ({ ...row, replaced: replaced.get(row.id) ?? [] }));
    },

    async setProject(idOrPrefix, text) {
      const project = validProject(text);
      return store.setProject(await keyNamed(store, idOrPrefix), project);
    },

    rotateKey: async (named, overlapMs) => rotate(await keyNamed(store, named), overlapMs),

    async revokeKey(named) {
      const { id, hash } = await keyNamed(store, named);
      const { prefix, revokedAt } = await store.revokeKey(id, hash, today());
      return { id, prefix, revokedAt };
    },
  };
}

function issuing({ store, peppers, clock, random }: AccountDependencies): AccountService['makeKey'] {
  return async (accountId, terms, person) => {
    const row = rowOfTerms(terms);
    checkExpiry(row.expiresAt, clock.now());
    if ((await store.findAccount(accountId)) === undefined) throw noAccount(accountId);
    const key = makeKey(random);
    const prefix = displayPrefix(key);
    const [hash] = peppers.hashesOf(key);
    const made = {
      ...row,
      accountId,
      prefix,
      hash,
      createdAt: new Date(clock.now()),
      person: person ?? null,
      access: accessOf(terms),
    };
    const id = await store.insertKey(made, peppers.digestsOf(key));
    return { id, key, prefix };
  };
}

/** Its id, its terms and what it has spent stay. */
function rotating({ store, peppers, clock, random }: AccountDependencies) {
  return async ({ id, hash }: FoundKey, overlapMs: number): Promise<RotatedKey> => {
    if (!Number.isSafeInteger(overlapMs) || overlapMs < 0 || overlapMs > mostOverlapMs)
      throw invalid('An earlier secret of a key works for at most 30 days.', 'overlap');
    if (hash.startsWith(noSecretMark))
      throw new GatewayError('conflict', 'This key has no secret: its workloads send tokens.', { field: 'key' });
    const key = makeKey(random);
    const prefix = displayPrefix(key);
    const made = { hash: peppers.hashesOf(key)[0], prefix, digests: peppers.digestsOf(key) };
    const at = clock.now();
    await store.rotateKey({ id, hash, made, at: new Date(at), endsAt: new Date(at + overlapMs) });
    return { id, key, prefix, overlapEndsAt: overlapMs === 0 ? undefined : at + overlapMs };
  };
}

/** Throws invalid_request. */
function accessOf({ access }: KeyTerms): string | null {
  if (access === undefined || access === 'organization') return access ?? null;
  throw invalid('A key is for calls, or with "organization" for the administration of its account.', 'access');
}

async function keyNamed(store: Store, named: string): Promise<FoundKey> {
  const [found, ...others] = await store.findKeys(named);
  if (found === undefined) throw new GatewayError('not_found', `There is no key "${named}".`, { field: 'key' });
  if (others.length === 0) return found;
  throw new GatewayError('conflict', `Several keys are called "${named}"; name one by its id.`, { field: 'key' });
}

export const noAccount = (nameOrId: string) =>
  new GatewayError('not_found', `There is no account "${nameOrId}".`, { field: 'account' });

export function checkExpiry(expiresAt: Date | null, now: number): void {
  if (expiresAt !== null && expiresAt.getTime() <= now) throw invalid('A key cannot expire in the past.', 'expiresAt');
}
