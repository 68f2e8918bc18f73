/** Accounts and the caller of an exchange. */

import { defineContextKey, defineService, type Endpoint } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import type { Orm } from './database.ts';
import type { Money, Ratio } from './money.ts';
import type { Limits } from './plans.ts';

/** The authenticated caller. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string;
  /** The project that the key is in; absent: none. Of a known key up to a minute old. */
  readonly project?: string;
  /** By whom and in which project its calls are summed up; absent: neither. Of a known key up to a minute old. */
  readonly attribution?: Attribution;
  /** What the call is for, by name: those of its key, and those of its request. At most 8; absent: none. */
  readonly tags?: ReadonlyMap<string, string>;
  /** Name of the account's plan. */
  readonly plan: string;
  /** When that plan ends and the default plan takes its place, in wall-clock milliseconds; absent: it does not. */
  readonly planEndsAt?: number | undefined;
  /** Models this key may call; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  /** Models that keys of its project may call; absent: all. */
  readonly projectModels?: ReadonlySet<string>;
  /** It administers its account below `/v1/organization/`, and calls nothing else; absent: it is for calls. */
  readonly access?: 'organization';
  /** Price ratio of the account, on top of plan and model; absent: 1. */
  readonly multiplier?: Ratio;
  /** Limits of the key alone, beside those of the plan; absent: none. */
  readonly keyLimits?: Limits;
  /** Spending limits of the key; absent: none. */
  readonly cap?: KeyCap;
  /** The call is a step of a run, which is held and charged within it; absent: it is no step, or of a run without a budget. */
  readonly budget?: SharedBudget;
  /** Orders of images are answered with the images where the request does not say otherwise. */
  readonly waitsForImages?: true;
  /** `none`: nothing of its calls may be kept; absent: what the operator's settings say. */
  readonly retention?: 'none';
  /** Regions in which its calls may be processed, by its key and project; absent: anywhere. */
  readonly regions?: ReadonlySet<string>;
}

/** Ids that stay with a call whatever becomes of its key. */
export interface Attribution {
  /** The person that the key belongs to; absent: it is a service's. */
  readonly person?: string | undefined;
  readonly project?: string | undefined;
}

/** Tags as they are logged and stored, in the order of their names: `env=prod,team=search`. */
export function tagsText(tags: NonNullable<Caller['tags']>): string {
  return [...tags]
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(',');
}

/** Spending limits of a key per calendar period of the account's time zone; `ever`: in total. */
export interface KeyCap {
  readonly amount: Money;
  readonly every: 'day' | 'week' | 'month' | 'ever';
}

/** Money that several calls share, such as the budget of one run. */
export interface SharedBudget {
  /** Whether this much more may be held. */
  covers(amount: Money): boolean;
  hold(amount: Money): void;
  /** A call has ended that held and cost so much. */
  end(held: Money, cost: Money): void;
  /** Why no more is held. */
  refusal(): GatewayError;
}

/** How orders of images are answered: with the task that makes them, or with the images. */
export const imageAnswers = ['task', 'wait'] as const;
export type ImageAnswer = (typeof imageAnswers)[number];

/** The account and the key of the request. Set by `auth`. */
export const caller = defineContextKey<Caller>('caller');

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  /** Its own price ratio as decimal text; null or absent: 1. */
  readonly multiplier?: string | null;
  readonly createdAt: Date;
}

export interface Accounts {
  create(name: string, plan: string): Promise<Account>;
  /** By id or by name; undefined when there is none. */
  find(nameOrId: string): Promise<Account | undefined>;
  list(): Promise<Account[]>;
  /** Puts an account on a plan until `endsAt`, in the transaction of `orm`. The caller announces the account. */
  setPlan(orm: Orm, accountId: string, plan: string, endsAt: number | undefined): Promise<void>;
  /** Creates a key; `key` is returned only here. */
  createKey(
    accountId: string,
    options: { name: string; models?: readonly string[]; expiresAt?: Date },
  ): Promise<{ id: string; key: string; prefix: string }>;
}

/** Accounts and their keys. Provided by `auth`. */
export const accounts = defineService<Accounts>('accounts');

/** Finds callers outside a chain; `prepare` of a direct request sets them. */
export interface Keyring {
  /** By the credential of a request's head; known keys are answered without a promise. Throws or rejects as a request would. */
  authenticate(request: ClientRequest): Caller | Promise<Caller>;
  /**
   * By a key's id, for work that outlives its request: rejects once the key is revoked or expired or its account disabled. `headers`: those of
   * that request which the work keeps, for its tags.
   */
  callerOf(keyId: string, remoteAddress: string, headers?: Readonly<Record<string, string>>): Promise<Caller>;
}

export const keyring = defineService<Keyring>('keyring');

/** Where keys are expected. */
export interface KeyRules {
  /** `bearer`, `query` (`?key=`), or the name of a header. */
  carriers(): readonly string[];
  needsKey(endpoint: Endpoint): boolean;
}

export const keyRules = defineService<KeyRules>('key rules');
