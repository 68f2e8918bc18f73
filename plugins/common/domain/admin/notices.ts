/** Notices to clients: their kinds, what observes a crossing, who sends it, and what each account has chosen. */
import { defineExtensionPoint, defineService } from '../../../../core/contract/contract.ts';
import type { KeyCap } from '../accounts.ts';
import type { Money } from '../money.ts';

export const noticeLanguages = ['en', 'de', 'ja', 'zh'] as const;
export type NoticeLanguage = (typeof noticeLanguages)[number];
export const noticeChannels = ['mail', 'webhook'] as const;
export type NoticeChannel = (typeof noticeChannels)[number];

/** What a threshold is: USD, a share from 0 to 1, days; `none`: there is none, each change is a crossing. */
export type NoticeUnit = 'usd' | 'share' | 'days' | 'none';

/** Texts and decimal amounts: what a message says, and what the `data` of a webhook has. */
export type NoticeFields = Readonly<Record<string, string>>;

export interface NoticeKind {
  /** As in the section of a gateway file and the API: `low_balance`. */
  readonly name: string;
  readonly title: Readonly<Record<NoticeLanguage, string>>;
  readonly unit: NoticeUnit;
  /** Which side of the threshold is a crossing. */
  readonly beyond: 'below' | 'above';
  /** In billionths of the unit; 0 where there is none. */
  readonly threshold: bigint;
  /** How it is sent where neither operator nor client has chosen. */
  readonly channels: readonly NoticeChannel[];
  /**
   * `silent`: a subject that is beyond the threshold when it is first seen has not crossed it, such as the balance of a new account. `sent`: it has,
   * since it began on the other side.
   */
  readonly first: 'silent' | 'sent';
  /** The lines of a message, one for each crossing. */
  line(fields: NoticeFields, language: NoticeLanguage): string;
}

/** Kinds of notices. Owned by `notices`. */
export const noticeKinds = defineExtensionPoint<NoticeKind>("notices' kinds");

/** A value that may lie beyond an account's threshold: it is compared as `value / of`, exactly. */
export interface NoticeObservation {
  readonly kind: string;
  /** What is observed: a key's id, a window; empty where an account has one. */
  readonly subject: string;
  /** A new one begins on the good side: the start of a window, the end of a plan, a price. */
  readonly period: string;
  readonly value: bigint;
  readonly of: bigint;
  readonly fields: NoticeFields;
}

/** Sends a notice for each crossing, once in a fleet; a value that has come back can cross again. */
export interface NoticeSender {
  observe(accountId: string, seen: readonly NoticeObservation[]): Promise<void>;
}
export const noticeSender = defineService<NoticeSender>('notice sender');

export interface NoticeChoice {
  readonly kind: string;
  readonly channels: readonly NoticeChannel[];
  /** Decimal text; undefined: that of the gateway. */
  readonly threshold: string | undefined;
}
export interface NoticeKindView {
  readonly kind: string;
  readonly title: string;
  readonly unit: NoticeUnit;
  readonly channels: readonly NoticeChannel[];
  /** Decimal text; undefined: it has none. */
  readonly threshold: string | undefined;
  /** That of the gateway. */
  readonly usual: string | undefined;
}
export interface SentNotice {
  readonly kind: string;
  readonly channel: NoticeChannel;
  readonly title: string;
  readonly at: number;
  readonly sentAt: number | undefined;
  /** Why it was not taken the last time. */
  readonly fault: string | undefined;
  /** It is sent again. */
  readonly waits: boolean;
}
export interface NoticeSettings {
  readonly kinds: readonly NoticeKindView[];
  readonly mail: boolean;
  readonly webhook: { readonly url: string; readonly secret: string } | undefined;
  readonly last: readonly SentNotice[];
}
export interface NoticeChange {
  readonly choices?: readonly NoticeChoice[] | undefined;
  /** null: none any more. */
  readonly url?: string | null | undefined;
  /** Makes another secret; the one before signs too, until the next one is made. */
  readonly newSecret?: boolean | undefined;
  readonly language: NoticeLanguage;
}
/** What an account has chosen. Throws invalid_request, with the field, for a choice that cannot be. */
export interface NoticeAdmin {
  settings(accountId: string, language: NoticeLanguage): Promise<NoticeSettings>;
  change(accountId: string, change: NoticeChange): Promise<void>;
  /** Sends a test by this channel now. `fault` undefined: it was taken. */
  test(
    accountId: string,
    channel: NoticeChannel,
    language: NoticeLanguage,
  ): Promise<{ readonly fault: string | undefined }>;
}
export const noticeAdmin = defineService<NoticeAdmin>('notices');

/** The people of accounts. Provided by what knows people. */
export interface AccountPeople {
  /** Confirmed addresses of people who may sign in, by account. */
  mailsOf(accountIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
}
export const accountPeople = defineService<AccountPeople>('people of accounts');

export interface CappedKey {
  readonly accountId: string;
  readonly keyId: string;
  readonly name: string;
  readonly cap: KeyCap;
}
interface Ending {
  readonly accountId: string;
  readonly endsAt: number;
}
export interface OldKey {
  readonly accountId: string;
  readonly keyId: string;
  readonly name: string;
  readonly prefix: string;
  /** When it got its secret. */
  readonly since: number;
}
/** What accounts have that comes to an end, or has a ceiling. Provided by `auth`. */
export interface AccountEnds {
  /** Keys of these accounts that are not revoked and have a spend cap. */
  cappedKeys(accountIds: readonly string[]): Promise<readonly CappedKey[]>;
  /** Keys that expire, and plans that end, within the time: in the order of their accounts behind `after`, at most so many. */
  endingKeys(
    withinMs: number,
    after: string,
    most: number,
  ): Promise<readonly (Ending & { readonly keyId: string; readonly name: string; readonly prefix: string })[]>;
  /** Keys with a secret of at least this age, as the others. */
  oldKeys(leastMs: number, after: string, most: number): Promise<readonly OldKey[]>;
  endingPlans(withinMs: number, after: string, most: number): Promise<readonly (Ending & { readonly plan: string })[]>;
  /** Accounts that are not disabled, or all that have a ratio of their own: in the order of their ids behind `after`, at most so many. */
  standing(after: string, most: number, only?: 'own ratio'): Promise<readonly StandingAccount[]>;
}
export interface StandingAccount {
  readonly accountId: string;
  readonly plan: string;
  readonly planEndsAt: number | undefined;
  /** Decimal text; undefined: 1. */
  readonly multiplier: string | undefined;
}
export const accountEnds = defineService<AccountEnds>('ends of accounts');

/** Accounts with new movements of money. Provided by `billing`. */
export interface MovedAccounts {
  /** The number of the last movement. */
  latest(): Promise<bigint>;
  /** The accounts of at most `rows` movements behind `after`, and the number of the last of these. */
  behind(
    after: bigint,
    rows: number,
  ): Promise<{ readonly accountIds: readonly string[]; readonly upTo: bigint; readonly isFull: boolean }>;
  balances(accountIds: readonly string[]): Promise<ReadonlyMap<string, Money>>;
  /** Which of these models accounts have called since, within a quarter of an hour; accounts without one are absent. */
  used(
    accountIds: readonly string[],
    models: readonly string[],
    since: number,
  ): Promise<ReadonlyMap<string, ReadonlySet<string>>>;
}
export const movedAccounts = defineService<MovedAccounts>('moved accounts');
