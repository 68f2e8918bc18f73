/** Account administration: views and changes of accounts and keys. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { AccountAdmin, AccountView, KeyView, ReplacedSecret } from '../common/domain/admin/accounts.ts';
import { isUuid } from '../common/domain/database.ts';
import type { PriceFloor } from '../common/domain/models.ts';
import { one, parseRatio } from '../common/domain/money.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import type { AccountAdminStore, KeyDetails } from './account-queries.ts';
import { type AccountService, checkExpiry, noAccount } from './accounts.ts';
import { rowOfTerms, termsOfRow, validName } from './key-terms.ts';
import type { AccountRow } from './store.ts';

/** Limit of active keys per account, as users create them freely. */
const mostKeys = 1_000;
/** Sums of a project are asked for by the ids of its keys. */
const mostInProjects = 10_000;

/** By such a name the account is found that was made for a person, so no other may take it. */
const endsLikePersons = / [0-9a-f]{13}$/;

export interface AccountAdminOptions {
  readonly store: AccountAdminStore;
  readonly accountService: AccountService;
  readonly clock: Clock;
  /** Resolved on use: a plugin below provides it. */
  readonly floor: () => PriceFloor | undefined;
}

export function openAccountAdmin({ store, accountService, clock, floor }: AccountAdminOptions): AccountAdmin {
  const existing = async (accountId: string): Promise<AccountRow> => {
    const found = await store.account(accountId);
    if (found === undefined) throw noAccount(accountId);
    return found;
  };
  return {
    async search(filter, page) {
      const limit = rowsFor(page);
      const rows = await store.accountsAfter(filter, valuesIn(page, 'name')?.name, limit);
      return pageOf(rows, page, ({ name }) => cursorFor([name]), accountView);
    },

    async find(accountId) {
      const row = await store.account(accountId);
      return row === undefined ? undefined : accountView(row);
    },

    async rename(accountId, text) {
      const { id, name: before } = await existing(accountId);
      const name = validName(text, 'name');
      if (name === before) return;
      if (isUuid(name) || endsLikePersons.test(name)) throw invalid('An account cannot be named like an id.', 'name');
      if (!(await store.rename(id, name)))
        throw new GatewayError('conflict', `An account named "${name}" exists already.`, { field: 'name' });
    },

    async setDisabled(accountId, disabled) {
      await accountService.setDisabled((await existing(accountId)).id, disabled);
    },

    async setMultiplier(accountId, multiplier) {
      const { id } = await existing(accountId);
      await accountService.setMultiplier(id, multiplier === undefined ? undefined : checkedRatio(multiplier, floor()));
    },

    async setRetention(accountId, retention) {
      await accountService.setRetention((await existing(accountId)).id, retention);
    },

    async expiringKeys(withinMs, rows) {
      const now = clock.now();
      const found = await store.keysExpiring(new Date(now), new Date(now + withinMs), rows);
      return found.map(({ prefix, expiresAt }) => ({ prefix, expiresAt: expiresAt!.getTime() }));
    },

    async createKey(accountId, terms, person) {
      const { id } = await existing(accountId);
      if ((await store.countActiveKeys(id)) >= mostKeys)
        throw new GatewayError('conflict', `An account has at most ${mostKeys} keys; revoke one first.`, {
          field: 'key',
        });
      return accountService.makeKey(id, terms, person);
    },

    keys: keyLists(store, clock),
    ...keyProjects(store),
    ...keyChanges(store, accountService, clock),
  };
}

function keyLists(store: AccountAdminStore, clock: Clock): AccountAdmin['keys'] {
  return async (accountId, page, person) => {
    const limit = rowsFor(page);
    if (accountId !== undefined && !isUuid(accountId)) return { rows: [], next: undefined };
    const rows = await store.keysAfter({ accountId, person }, keyCursor(valuesIn(page, 'at', 'id')), limit);
    const rotated = rows.flatMap(({ id, rotatedAt }) => (rotatedAt === null ? [] : [id]));
    const replaced = await store.replacedSecrets(rotated, new Date(clock.now()));
    const place = ({ createdAt, id }: KeyDetails) => cursorFor([createdAt.toISOString(), id]);
    return pageOf(rows, page, place, (row) => keyView(row, replaced.get(row.id)));
  };
}

function keyProjects(store: AccountAdminStore): Pick<AccountAdmin, 'projects' | 'projectNames' | 'namesOf'> {
  return {
    async projects(accountId) {
      const [keys, named] = await Promise.all([
        store.keysInProjects(accountId, mostInProjects + 1),
        store.projectsNamed(accountId, mostInProjects + 1),
      ]);
      if (Math.max(keys.length, named.length) > mostInProjects)
        throw invalid(
          `There are more than ${mostInProjects} projects, or keys in them; choose an account.`,
          'accountId',
        );
      const [ids, keyIds] = [Map.groupBy(named, ({ name }) => name), Map.groupBy(keys, ({ project }) => project)];
      // A key may name a project that begins with its first call.
      const names = [...new Set([...ids.keys(), ...keyIds.keys()])].sort();
      const idsIn = (rows: readonly { readonly id: string }[] = []) => rows.map(({ id }) => id);
      return names.map((project) => ({ project, ids: idsIn(ids.get(project)), keyIds: idsIn(keyIds.get(project)) }));
    },

    projectNames: (ids) => store.projectNames(ids),

    namesOf: (keyIds) => store.namesOf(keyIds),
  };
}

function keyChanges(
  store: AccountAdminStore,
  accountService: AccountService,
  clock: Clock,
): Pick<AccountAdmin, 'key' | 'keyIdsOf' | 'updateKey' | 'rotateKey' | 'setProject' | 'revokeKey'> {
  const owned = async (accountId: string, keyId: string) => {
    const found = await store.key(accountId, keyId);
    if (found === undefined) throw new GatewayError('not_found', 'There is no such key.', { field: 'key' });
    return found;
  };
  const viewOf = async (row: KeyDetails): Promise<KeyView> => {
    const { id, rotatedAt } = row;
    const replaced = rotatedAt === null ? undefined : await store.replacedSecrets([id], new Date(clock.now()));
    return keyView(row, replaced?.get(id));
  };
  return {
    key: async (accountId, keyId) => viewOf(await owned(accountId, keyId)),
    keyIdsOf: (accountId, person) => store.keyIdsOf(accountId, person, mostKeys),

    async updateKey(accountId, keyId, terms) {
      const before = await owned(accountId, keyId);
      if (before.revokedAt !== null)
        throw new GatewayError('conflict', 'This key is revoked; make another one.', { field: 'key' });
      const row = rowOfTerms(terms);
      // A name change of an expired key does not require a new expiry.
      if (row.expiresAt?.getTime() !== before.expiresAt?.getTime()) checkExpiry(row.expiresAt, clock.now());
      await store.changeKey(before.id, before.hash, row);
      return viewOf({ ...before, ...row });
    },

    async rotateKey(accountId, keyId, overlapMs) {
      const { id } = await owned(accountId, keyId);
      return accountService.rotateKey(id, overlapMs);
    },

    async setProject(accountId, keyId, project) {
      const { id } = await owned(accountId, keyId);
      await accountService.setProject(id, project);
      return viewOf(await owned(accountId, keyId));
    },

    async revokeKey(accountId, keyId) {
      const { id } = await owned(accountId, keyId);
      await accountService.revokeKey(id);
      return viewOf(await owned(accountId, keyId));
    },
  };
}

/** The ratio as decimal text, if nothing is sold below its cost at it; undefined: 1. Throws invalid_request. */
function checkedRatio(text: string, floor: PriceFloor | undefined): string | undefined {
  let ratio = one;
  try {
    ratio = parseRatio(text);
  } catch (error) {
    throw invalid(`${(error as Error).message}.`, 'multiplier');
  }
  const losses = floor?.losses(ratio) ?? [];
  if (losses.length > 0) {
    const more = losses.length > 1 ? ` (and ${losses.length - 1} more)` : '';
    throw invalid(`With this ratio ${losses[0]}${more}.`, 'multiplier');
  }
  return ratio.numerator === ratio.denominator ? undefined : text.trim();
}

function keyCursor(cursor: { readonly at: string; readonly id: string } | undefined) {
  if (cursor === undefined) return undefined;
  const at = new Date(cursor.at);
  if (Number.isNaN(at.getTime()) || !isUuid(cursor.id)) throw noSuchPage();
  return { at, id: cursor.id };
}

function accountView(row: AccountRow): AccountView {
  const { id, name, plan, disabled, createdAt, planEndsAt, multiplier, retention } = row;
  return {
    id,
    name,
    plan,
    disabled,
    createdAt: createdAt.getTime(),
    planEndsAt: planEndsAt?.getTime(),
    multiplier: multiplier ?? undefined,
    retention: retention ?? undefined,
  };
}

function keyView(row: KeyDetails, replaced: readonly ReplacedSecret[] = []): KeyView {
  const { id, accountId, prefix, createdAt, lastUsedAt, revokedAt, rotatedAt, person, access } = row;
  return {
    ...termsOfRow(row),
    id,
    accountId,
    prefix,
    createdAt: createdAt.getTime(),
    lastUsedAt: lastUsedAt?.getTime(),
    revokedAt: revokedAt?.getTime(),
    rotatedAt: rotatedAt?.getTime(),
    // A revoked key has none that works.
    replaced: revokedAt === null ? replaced : [],
    person: person ?? undefined,
    ...(access === 'organization' ? { access } : {}),
  };
}
