/** The API's view of people, tokens and the audit log. Types alone. */
import type { Page, PageRequest, Span } from '../common/domain/admin/pages.ts';
import type { MemberRole } from '../common/domain/organizations/rights.ts';
import type { Actor, Role, TokenRole } from './actor.ts';

export interface PersonView {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly blocked: boolean;
  readonly emailVerified: boolean;
  readonly twoFactor: boolean;
  /** undefined: has not used the gateway yet. */
  readonly accountId: string | undefined;
  readonly createdAt: number;
  /** When they signed in last. */
  readonly seenAt: number | undefined;
}

/** A link for signing up or for a new password: path and query, returned only if no mail was sent. */
export interface Handover {
  readonly mailed: boolean;
  readonly link: string | undefined;
}

/** An account, and what a person is in it. */
export interface Membership {
  readonly accountId: string;
  readonly role: MemberRole;
}

export type Owner = Pick<PersonView, 'id' | 'name' | 'email'>;

export interface People {
  /** By session cookie or bearer token; undefined: not signed in, or blocked. */
  identify(headers: Headers): Promise<Actor | undefined>;
  find(personId: string): Promise<PersonView | undefined>;
  /** Whether a person has a password, and whether they may sign in by their provider alone. */
  waysIn(person: PersonView): Promise<{ readonly password: boolean; readonly providerOnly: boolean }>;
  /** Part of a name or mail address; newest first. */
  search(
    filter: { readonly text?: string | undefined; readonly role?: Role | undefined },
    page: PageRequest,
  ): Promise<Page<PersonView>>;
  /** The owners of these accounts, by account; accounts without an owner are absent. */
  ownersOf(accountIds: readonly string[]): Promise<ReadonlyMap<string, Owner>>;
  /** When these people signed in last, by person; absent: no session of theirs is kept. */
  seenOf(people: readonly string[]): Promise<ReadonlyMap<string, number>>;
  rename(personId: string, name: string): Promise<void>;
  setRole(personId: string, role: Role): Promise<void>;
  /** Ends their sessions too. */
  setBlocked(personId: string, blocked: boolean): Promise<void>;
  /** Their mail address counts as verified. */
  confirm(personId: string): Promise<void>;
  /** Forgets by which identities at providers they sign in, and ends their sessions. */
  release(personId: string): Promise<void>;
  /** A person with a role, and the link by which they set a password. `conflict`: the address is taken. */
  create(wanted: { readonly email: string; readonly name: string; readonly role: Role }): Promise<{
    readonly person: PersonView;
    readonly handover: Handover;
  }>;
  /** A link by which the person sets a new password. */
  reset(personId: string): Promise<Handover>;
  /** A link by which one person may sign up, once. */
  invite(email: string): Promise<Handover>;
  /** The account that was made for a person, made when there is none yet. */
  accountOf(personId: string): Promise<string>;
  /**
   * The account that they have chosen, where they still are its member, and else their own, or another one of theirs. Throws `forbidden`
   * where they are in none any more, or not in the one that their session is for alone.
   */
  membershipOf(actor: Pick<Actor, 'id' | 'named' | 'chosen' | 'company'>): Promise<Membership>;
  /** Chooses the account in the session of these headers. Whether they are its member is asked with each request. */
  choose(headers: Headers, accountId: string): Promise<void>;
  firstOperatorMissing(): Promise<boolean>;
  /** Makes the first operator; `forbidden` for a token that is unknown, used or old. */
  makeFirstOperator(wanted: {
    readonly token: string;
    readonly email: string;
    readonly password: string;
    readonly name: string;
  }): Promise<void>;
}

export interface TokenView {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly role: TokenRole;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
  readonly lastUsedAt: number | undefined;
}
export interface Tokens {
  list(): Promise<readonly TokenView[]>;
  /** `token` is returned only here. */
  create(wanted: {
    readonly name: string;
    readonly role: TokenRole;
    readonly expiresAt: number | undefined;
    readonly createdBy: string;
  }): Promise<{ readonly view: TokenView; readonly token: string }>;
  /** `not_found` where there is none. */
  revoke(tokenId: string): Promise<void>;
}

export interface AuditRow {
  readonly id: string;
  readonly at: number;
  readonly actor: string;
  readonly role: Role;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | undefined;
  readonly address: string;
  /** `begun` until it is known; `done`, or the code of the error. */
  readonly result: string;
  /** undefined, as the next: a row of before this was kept. */
  readonly actorKind: Actor['kind'] | undefined;
  readonly actorId: string | undefined;
  /** Empty: it changed no single value, or the row is older than these. */
  readonly changes: readonly AuditChange[];
}
/** One value that an action set. Texts as the API has them; null: there was none, or there is none now. */
export interface AuditChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}
interface AuditFilter {
  readonly accountId?: string | undefined;
  /** Without rows of operators and auditors who are none of these people. */
  readonly people?: readonly string[] | undefined;
  readonly from?: Span['from'] | undefined;
  readonly until?: Span['until'] | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
}
export interface Audit {
  /** Records the beginning of a change. Resolves with the function that records its outcome, and the row's id. */
  begin(row: {
    readonly actor: Actor;
    readonly action: string;
    readonly subject: string;
    readonly reason: string | undefined;
    readonly address: string;
    readonly changes?: readonly AuditChange[] | undefined;
    /** The account that it is made in: its owners and admins see it too. */
    readonly accountId?: string | undefined;
  }): Promise<((result: string) => Promise<void>) & { readonly id: string }>;
  list(filter: AuditFilter, page: PageRequest): Promise<Page<AuditRow>>;
}

/** A program on some machine that asks for a key; `address`: where it asked from. */
interface AskedKey {
  readonly program: string;
  readonly machine: string;
  readonly address: string;
}
/** A program that has led a person's browser here: where that goes back to, and what the program must prove. */
export interface Visit {
  readonly clientId: string;
  readonly redirectUri: string;
  /** SHA-256 of the program's own secret, as base64url. */
  readonly challenge: string;
  /** What the program wants back; undefined: nothing. */
  readonly state: string | undefined;
}
/** A request that has its answer. `visit`: the browser goes back to it, with `code` where a key was granted. */
export interface AnsweredRequest {
  readonly visit?: Visit;
  readonly code?: string;
}
/** What has become of it: `early` where the program asks sooner than it may, `unknown` where the code is of none or used up. */
export type TakenKey =
  | { readonly state: 'waiting' | 'early' | 'denied' | 'expired' | 'unknown' }
  | {
      readonly state: 'granted';
      readonly program: string;
      readonly machine: string;
      readonly personId: string;
      /** undefined: granted by an earlier version, in the account that was made for the person. */
      readonly accountId: string | undefined;
      readonly terms: string;
      /** What the program must prove. */
      readonly visit?: Visit;
    };
interface WaitingRequest extends AskedKey {
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly visit?: Visit;
}
export interface KeyRequests {
  /** `deviceCode` is the program's own; a person sees `userCode`. With `visit` the program gets its code by the browser. */
  make(
    asked: AskedKey,
    visit?: Visit,
  ): Promise<{
    readonly deviceCode: string;
    readonly userCode: string;
    readonly lastsMs: number;
    readonly intervalMs: number;
  }>;
  /** One that waits, by the code that a person has entered. */
  find(code: string): Promise<WaitingRequest | undefined>;
  /** undefined: it waits no more. `terms`: of the key, as JSON. */
  grant(
    code: string,
    by: { readonly personId: string; readonly accountId: string },
    terms: string,
  ): Promise<AnsweredRequest | undefined>;
  deny(code: string, personId: string): Promise<AnsweredRequest | undefined>;
  /** The program's question, by its own code or by that of a visit; what it was granted, it gets once. */
  take(code: string, by: 'device' | 'visit'): Promise<TakenKey>;
  prune(): Promise<void>;
}

/** Filters of a page under a name. */
export interface View {
  readonly name: string;
  /** The page's address behind the question mark. */
  readonly query: string;
}
export interface Views {
  /** By name. */
  list(personId: string, page: string): Promise<readonly View[]>;
  /** Replaces one of the same name; `conflict`: the person has as many as there may be. */
  save(personId: string, page: string, view: View): Promise<void>;
  remove(personId: string, page: string, name: string): Promise<void>;
}
