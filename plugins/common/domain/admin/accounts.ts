/** The console's contract: the service that lists and changes accounts and API keys. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { ImageAnswer, KeyCap } from '../accounts.ts';
import type { Limits } from '../plans.ts';
import type { Page, PageRequest } from './pages.ts';

export interface AccountView {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly planEndsAt: number | undefined;
  readonly multiplier: string | undefined;
  readonly disabled: boolean;
  /** `none`: nothing of its calls is kept; undefined: what the settings say. */
  readonly retention: 'none' | undefined;
  readonly createdAt: number;
}

/** Permissions of a key; absent members: no limit. */
export interface KeyTerms {
  readonly name: string;
  /** The keys with one name are a project; undefined: in none. */
  readonly project?: string | undefined;
  readonly models?: readonly string[] | undefined;
  readonly expiresAt?: number | undefined;
  /** Addresses and CIDR ranges it may be used from. */
  readonly addresses?: readonly string[] | undefined;
  /** Limits of the key, beside those of the plan. */
  readonly limits?: Limits | undefined;
  /** Spending limits per calendar period of the account's time zone; `ever`: in total. */
  readonly cap?: KeyCap | undefined;
  /** undefined: `task`. */
  readonly images?: ImageAnswer | undefined;
  /** `organization`: it administers its account, and calls nothing. Never changed. */
  readonly access?: 'organization' | undefined;
  /** `team=search`: on each of its calls; `env`: requests may say its value. At most 8. */
  readonly tags?: readonly string[] | undefined;
  /** Regions in which its calls may be processed; undefined: anywhere that its plan and project allow. */
  readonly regions?: readonly string[] | undefined;
}

/** A secret that works beside the one of its key. */
export interface ReplacedSecret {
  /** Its first characters. */
  readonly prefix: string;
  readonly endsAt: number;
}

export interface RotatedKey {
  readonly id: string;
  /** Returned only here. */
  readonly key: string;
  readonly prefix: string;
  /** Until when the secret before works; undefined: it has ended. */
  readonly overlapEndsAt: number | undefined;
}

/** Instead of a project's name: the keys that are in none. */
export const noProject = '-';

export interface Project {
  readonly project: string;
  /** The ids of projects with this name, one of each account: calls keep these. */
  readonly ids: readonly string[];
  /** The keys that are in them now. */
  readonly keyIds: readonly string[];
}

/** These keys, or any other and requests without a key. */
export interface KeySet {
  readonly ids: readonly string[];
  readonly not?: true | undefined;
}

export interface KeyView extends KeyTerms {
  readonly id: string;
  readonly accountId: string;
  /** Its first characters. */
  readonly prefix: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
  readonly revokedAt: number | undefined;
  /** When it got its secret, where that is not the first one. */
  readonly rotatedAt?: number | undefined;
  /** Earlier secrets that still work, those that end first before the others. */
  readonly replaced: readonly ReplacedSecret[];
  /** To whom its calls are attributed; undefined: it is a service's. */
  readonly person?: string | undefined;
}

export interface KeyNames {
  readonly name: string;
  readonly project: string | undefined;
}

/** Accounts and keys. Throws `not_found` for a key of another account. */
export interface AccountAdmin {
  /** `text`: part of a name, or an id; with it, those of `ids` are found besides. Ordered by name. */
  search(
    filter: {
      readonly text?: string | undefined;
      readonly ids?: readonly string[] | undefined;
      readonly plan?: string | undefined;
      readonly disabled?: boolean | undefined;
    },
    page: PageRequest,
  ): Promise<Page<AccountView>>;
  find(accountId: string): Promise<AccountView | undefined>;
  rename(accountId: string, name: string): Promise<void>;
  setDisabled(accountId: string, disabled: boolean): Promise<void>;
  /** Decimal text; undefined: 1. */
  setMultiplier(accountId: string, multiplier: string | undefined): Promise<void>;
  /** undefined: what the settings say. */
  setRetention(accountId: string, retention: 'none' | undefined): Promise<void>;
  /** `person`: only those that are attributed to them. */
  keys(accountId: string | undefined, page: PageRequest, person?: string): Promise<Page<KeyView>>;
  /** Throws `not_found`. */
  key(accountId: string, keyId: string): Promise<KeyView>;
  /** The newest thousand keys that are attributed to a person, revoked ones too. */
  keyIdsOf(accountId: string, person: string): Promise<readonly string[]>;
  /** Keys of all accounts that expire within the time, soonest first. */
  expiringKeys(
    withinMs: number,
    most: number,
  ): Promise<readonly { readonly prefix: string; readonly expiresAt: number }[]>;
  /** `key` is returned only here. `person`: its calls are attributed to them; absent: it is a service's. */
  createKey(
    accountId: string,
    terms: KeyTerms,
    person?: string,
  ): Promise<{ readonly id: string; readonly key: string; readonly prefix: string }>;
  updateKey(accountId: string, keyId: string, terms: KeyTerms): Promise<KeyView>;
  /** Gives it another secret; the one before works for so long, at most 30 days. 0: that and all before it end at once. */
  rotateKey(accountId: string, keyId: string, overlapMs: number): Promise<RotatedKey>;
  /** undefined: out of its project. Also of a key that is revoked, since what it has spent stays. */
  setProject(accountId: string, keyId: string, project: string | undefined): Promise<KeyView>;
  revokeKey(accountId: string, keyId: string): Promise<KeyView>;
  /**
   * Projects of one account, or of all, by name; revoked keys are in it. Throws invalid_request if more than 10,000 keys are in
   * projects.
   */
  projects(accountId: string | undefined): Promise<readonly Project[]>;
  /** The names of these projects. */
  projectNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What these keys are called, by their ids, also revoked ones; at most 500. */
  namesOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyNames>>;
}

export const accountAdmin = defineService<AccountAdmin>('account admin');
