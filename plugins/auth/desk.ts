/** The account desk: what people see of accounts and keys, and what they change of them. */
import type { Clock } from '../../core/contract.ts';
import type { AccountDesk, AccountView, KeyView } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { one, parseRatio } from '../../core/money.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../../core/paging.ts';
import type { PriceFloor } from '../../core/vocabulary.ts';
import { type AccountBook, checkExpiry, noAccount } from './accounts.ts';
import type { DeskStore, ShownKey } from './desk-store.ts';
import { invalid, rowOfTerms, termsOfRow, validName } from './key-terms.ts';
import { type AccountRow, isUuid } from './store.ts';

/** Keys of one account that are not revoked; people make them as they like. */
const mostKeys = 1_000;

export interface DeskParts {
  readonly store: DeskStore;
  readonly book: AccountBook;
  readonly clock: Clock;
  /** Asked for when it is needed: it stands below. */
  readonly floor: () => PriceFloor | undefined;
}

export function openDesk({ store, book, clock, floor }: DeskParts): AccountDesk {
  const existing = async (accountId: string): Promise<AccountRow> => {
    const found = await store.account(accountId);
    if (found === undefined) throw noAccount(accountId);
    return found;
  };
  return {
    async search(filter, ask) {
      const limit = rowsFor(ask);
      const rows = await store.accountsBehind(filter, valuesIn(ask, 'name')?.name, limit);
      return pageOf(rows, ask, ({ name }) => cursorFor([name]), accountView);
    },

    async find(accountId) {
      const row = await store.account(accountId);
      return row === undefined ? undefined : accountView(row);
    },

    async rename(accountId, text) {
      const { id } = await existing(accountId);
      const name = validName(text, 'name');
      if (isUuid(name)) throw invalid('name', 'An account cannot be named like an id.');
      if (!(await store.rename(id, name)))
        throw new GatewayError('conflict', `An account named "${name}" exists already.`, { field: 'name' });
    },

    async setDisabled(accountId, disabled) {
      await book.setDisabled((await existing(accountId)).id, disabled);
    },

    async setMultiplier(accountId, multiplier) {
      const { id } = await existing(accountId);
      await book.setMultiplier(id, multiplier === undefined ? undefined : checkedRatio(multiplier, floor()));
    },

    async keys(accountId, ask) {
      const limit = rowsFor(ask);
      if (accountId !== undefined && !isUuid(accountId)) return { rows: [], next: undefined };
      const rows = await store.keysBehind(accountId, keyCursor(valuesIn(ask, 'at', 'id')), limit);
      return pageOf(rows, ask, ({ createdAt, id }) => cursorFor([createdAt.toISOString(), id]), keyView);
    },

    async createKey(accountId, terms) {
      const { id } = await existing(accountId);
      if ((await store.liveKeys(id)) >= mostKeys)
        throw new GatewayError('conflict', `An account has at most ${mostKeys} keys; revoke one first.`, {
          field: 'key',
        });
      return book.makeKey(id, terms);
    },

    ...keyChanges(store, book, clock),
  };
}

function keyChanges(store: DeskStore, book: AccountBook, clock: Clock): Pick<AccountDesk, 'updateKey' | 'revokeKey'> {
  const owned = async (accountId: string, keyId: string) => {
    const found = await store.key(accountId, keyId);
    if (found === undefined) throw new GatewayError('not_found', 'There is no such key.', { field: 'key' });
    return found;
  };
  return {
    async updateKey(accountId, keyId, terms) {
      const before = await owned(accountId, keyId);
      if (before.revokedAt !== null)
        throw new GatewayError('conflict', 'This key is revoked; make another one.', { field: 'key' });
      const row = rowOfTerms(terms);
      // Whoever changes the name of a key that has expired need not let it live again.
      if (row.expiresAt?.getTime() !== before.expiresAt?.getTime()) checkExpiry(row.expiresAt, clock.now());
      await store.changeKey(before.id, before.hash, row);
      return keyView({ ...before, ...row });
    },

    async revokeKey(accountId, keyId) {
      const { id } = await owned(accountId, keyId);
      await book.revokeKey(id);
      return keyView(await owned(accountId, keyId));
    },
  };
}

/** Decimal text of a ratio at which nothing is sold below its cost; undefined: 1. Throws invalid_request. */
function checkedRatio(text: string, floor: PriceFloor | undefined): string | undefined {
  let ratio = one;
  try {
    ratio = parseRatio(text);
  } catch (error) {
    throw invalid('multiplier', `${(error as Error).message}.`);
  }
  const losses = floor?.losses(ratio) ?? [];
  if (losses.length > 0) {
    const more = losses.length > 1 ? ` (and ${losses.length - 1} more)` : '';
    throw invalid('multiplier', `With this ratio ${losses[0]}${more}.`);
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
  const { id, name, plan, disabled, createdAt, planEndsAt, multiplier } = row;
  return {
    id,
    name,
    plan,
    disabled,
    createdAt: createdAt.getTime(),
    planEndsAt: planEndsAt?.getTime(),
    multiplier: multiplier ?? undefined,
  };
}

function keyView(row: ShownKey): KeyView {
  const { id, accountId, prefix, createdAt, lastUsedAt, revokedAt } = row;
  return {
    ...termsOfRow(row),
    id,
    accountId,
    prefix,
    createdAt: createdAt.getTime(),
    lastUsedAt: lastUsedAt?.getTime(),
    revokedAt: revokedAt?.getTime(),
  };
}
