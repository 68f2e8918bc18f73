/** Authenticates a request: checks the key's syntax, then the cache, then the database. */
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import type { ClientRequest, Headers } from '../../core/contract/message.ts';
import type { Caller } from '../common/domain/accounts.ts';
import type { Database } from '../common/domain/database.ts';
import { within } from '../common/kit/waits/within.ts';
import { type CachedKey, toCachedKey } from './cached-key.ts';
import { type Carrier, carriersIn, presentedKeys } from './carriers.ts';
import { Failures } from './failures.ts';
import type { Tokens } from './jwt/tokens.ts';
import { fingerprintKey, isWellFormed } from './key.ts';
import type { LastUsed } from './last-used.ts';
import type { Peppers } from './peppers.ts';
import {
  conflictingKeys,
  disabledAccount,
  invalidKey,
  keysUnavailable,
  missingKey,
  organizationKey,
  projectArchived,
  tooManyFailures,
  wrongAddress,
} from './refusals.ts';
import type { Store } from './store.ts';
import { taggedCaller, tagsHeader } from './tags.ts';

/** The settings that can change while the gateway runs. */
export interface AdmissionRules {
  readonly carriers: readonly Carrier[];
  readonly failuresPerMinute: number;
}

export interface AuthenticatorOptions extends AdmissionRules {
  readonly cacheSize: number;
}

export interface AuthenticatorDependencies {
  readonly database: Database;
  readonly store: Store;
  readonly peppers: Peppers;
  readonly clock: Clock;
  readonly log: Log;
  /** Notes each use of a key. */
  readonly lastUsed: Pick<LastUsed, 'note'>;
  /** Called for a key that was found by another hash than its first one. */
  /** Tokens of other systems. */
  readonly tokens: Pick<Tokens, 'mayBe' | 'known' | 'check'>;
  readonly onOldHash: (keyId: string, digest: string, of: string) => void;
}

/** What keys of an organization may ask. */
const organizationPaths = '/v1/organization/';
/** How long a hash that is no key is not looked up again. */
const unknownForMs = 5_000;
const maxUnknown = 1_000;
/** How often a cached key is checked again in the background, in case an announcement was lost. */
const recheckMs = 60_000;
/**
 * How long a key is used as it was when its account has changed and the database gives no answer. Money that moves is announced
 * as a change of its account too, so most changes leave the key as it was. At least as long as outages are bridged.
 */
const leastUnreadForMs = 60_000;
/** Keys of changed accounts that are read again at once, so that few are left to be read when the database goes away. */
const rereadAtOnce = 50;
/** How long a request waits for a lookup, which goes on: a later request finds what it has read. */
const longestLookupMs = 5_000;
/** Concurrent lookups; beyond it requests are refused as overload. */
const maxLoads = 1_000;

export class Authenticator {
  #carriers: readonly Carrier[];
  readonly #dependencies: AuthenticatorDependencies;
  readonly #failures: Failures;
  /** By fingerprint: a plain digest costs a fifth of the keyed hash, and never leaves memory. A hit costs no I/O. */
  readonly #cachedKeys: LRUCache<string, CachedKey>;
  /** Keys that are used by their id. */
  readonly #cachedIds: LRUCache<string, CachedKey>;
  /** Hash to the monotonic time until which it counts as no key. A separate cache, so that guesses do not evict keys. */
  readonly #unknownHashes = new LRUCache<string, number>({ max: maxUnknown });
  /** Fingerprints of cached keys that were read before their account changed. */
  readonly #changed = new Set<string>();
  readonly #loads = new Map<string, Promise<CachedKey | undefined>>();
  /** Counts announcements: a row that was loaded during one may be stale, and is not cached. */
  #changes = 0;

  /** Fingerprints of cached keys that were not used since the list of secrets changed. */
  readonly #unhashed = new Set<string>();

  constructor(options: AuthenticatorOptions, dependencies: AuthenticatorDependencies) {
    this.#carriers = options.carriers;
    this.#dependencies = dependencies;
    this.#failures = new Failures(options.failuresPerMinute, dependencies.clock);
    this.#cachedKeys = new LRUCache({ max: options.cacheSize });
    this.#cachedIds = new LRUCache({ max: options.cacheSize });
    dependencies.database.onChange('key', (hash) => this.#forgetKey(hash));
    dependencies.database.onChange('account', (accountId) => this.#noteChange(accountId));
  }

  /** Applies changed settings; the cache and the failure counts stay. */
  applyConfig({ carriers, failuresPerMinute }: AdmissionRules): void {
    this.#carriers = carriers;
    this.#failures.perMinute = failuresPerMinute;
  }

  /** The list of secrets is another one: cached keys get a hash by its first when they are used next. */
  secretsChanged(): void {
    this.#unknownHashes.clear();
    for (const fingerprint of this.#cachedKeys.keys()) this.#unhashed.add(fingerprint);
  }

  #hashAgain(key: string, cachedKey: CachedKey): void {
    this.#noteHash(cachedKey, this.#dependencies.peppers.hashesOf(key)[0]);
  }

  /** Not of a replaced secret: it would find its key beyond its end. */
  #noteHash({ caller, hash, foundBy }: CachedKey, wanted: string): void {
    if (wanted !== hash && foundBy === hash) this.#dependencies.onOldHash(caller.keyId, wanted, hash);
  }

  /** The caller of this request. Cached keys are answered without a promise. Throws or rejects with a GatewayError. */
  authenticate(request: ClientRequest): Caller | Promise<Caller> {
    const presented = presentedKeys(request, this.#carriers);
    if (presented.length === 0) {
      this.#failed(request, missingKey(this.#carriers));
      // No key can be guessed by sending none: the client gets the reason, however often it was refused.
      throw missingKey(this.#carriers);
    }
    if (presented.length > 1) throw this.#failed(request, conflictingKeys(carriersIn(request, this.#carriers)));
    const key = presented[0]!;
    const fingerprint = fingerprintKey(key);
    const cachedKey = this.#cachedKeys.get(fingerprint);
    if (cachedKey === undefined) return this.#authenticateUnknown(key, fingerprint, request);
    if (this.#unhashed.size > 0 && this.#unhashed.delete(fingerprint)) this.#hashAgain(key, cachedKey);
    if (cachedKey.changedAtMs !== undefined) return this.#authenticateChanged(cachedKey, fingerprint, request);
    const { clock } = this.#dependencies;
    if (clock.monotonic() - cachedKey.checkedAtMs >= recheckMs)
      this.#recheck(cachedKey, () => this.#load(fingerprint, cachedKey.foundBy));
    return this.#admit(cachedKey, request);
  }

  async #authenticateChanged(cachedKey: CachedKey, fingerprint: string, request: ClientRequest): Promise<Caller> {
    const load = () => this.#load(fingerprint, cachedKey.foundBy);
    const current = await this.#readAgain(cachedKey, load, () => this.#cachedKeys.has(fingerprint));
    if (current === undefined) throw this.#failed(request, invalidKey());
    return this.#admit(current, request);
  }

  async #authenticateUnknown(key: string, fingerprint: string, request: ClientRequest): Promise<Caller> {
    if (!isWellFormed(key)) return this.#authenticateToken(key, fingerprint, request);
    const [hash, ...others] = this.#dependencies.peppers.hashesOf(key);
    const unknownUntil = this.#unknownHashes.get(hash);
    if (unknownUntil !== undefined && this.#dependencies.clock.monotonic() < unknownUntil)
      throw this.#failed(request, invalidKey());
    const cachedKey = await soon(this.#loads.get(hash) ?? this.#lookUp(fingerprint, hash, others, request));
    if (cachedKey === undefined) throw this.#failed(request, invalidKey());
    return this.#admit(cachedKey, request);
  }

  async #authenticateToken(token: string, fingerprint: string, request: ClientRequest): Promise<Caller> {
    const { tokens } = this.#dependencies;
    if (!tokens.mayBe(token)) throw this.#failed(request, invalidKey());
    const keyId = tokens.known(fingerprint) ?? (await this.#checkToken(token, fingerprint, request));
    return this.callerOf(keyId, request.remoteAddress, request.headers);
  }

  async #checkToken(token: string, fingerprint: string, request: ClientRequest): Promise<string> {
    const done = this.#failures.beginLookup(request.remoteAddress);
    if (done === undefined) throw tooManyFailures(this.#failures.retryAfterMs(request.remoteAddress));
    try {
      const check = this.#dependencies.tokens.check(token, fingerprint);
      return await within(longestLookupMs, check, keysUnavailable);
    } catch (error) {
      if (error instanceof GatewayError && error.kind === 'unauthenticated') throw this.#failed(request, error);
      throw error;
    } finally {
      done();
    }
  }

  /** The caller of a key by its id. Rejects with a GatewayError. */
  async callerOf(keyId: string, remoteAddress: string, headers: Readonly<Headers> = {}): Promise<Caller> {
    const { clock } = this.#dependencies;
    const load = () => this.#fetchById(keyId);
    let cachedKey = this.#cachedIds.get(keyId);
    if (cachedKey === undefined) cachedKey = await soon(load());
    else if (cachedKey.changedAtMs !== undefined)
      cachedKey = await this.#readAgain(cachedKey, load, () => this.#cachedIds.has(keyId));
    else if (clock.monotonic() - cachedKey.checkedAtMs >= recheckMs) this.#recheck(cachedKey, load);
    if (cachedKey === undefined || cachedKey.expiresAtMs <= clock.now()) throw invalidKey();
    if (cachedKey.caller.access !== undefined) throw organizationKey();
    return this.#use(cachedKey, remoteAddress, headers);
  }

  /**
   * The key as the database has it now, undefined if it is none any more; as it was for some time while the database gives no
   * answer and the key has not been revoked meanwhile.
   */
  async #readAgain(
    cachedKey: CachedKey,
    load: () => Promise<CachedKey | undefined>,
    isKept: () => boolean,
  ): Promise<CachedKey | undefined> {
    try {
      if (!this.#dependencies.database.healthy()) throw keysUnavailable();
      return await soon(load());
    } catch (error) {
      const unreadMs = this.#dependencies.clock.monotonic() - (cachedKey.changedAtMs ?? 0);
      const longestMs = Math.max(leastUnreadForMs, this.#dependencies.database.bridgeMs ?? 0);
      if (unreadMs >= longestMs || !isKept()) throw error;
      return cachedKey;
    }
  }

  async #fetchById(keyId: string): Promise<CachedKey | undefined> {
    const { store, clock } = this.#dependencies;
    const changesBefore = this.#changes;
    const row = await store.findValidKeyById(keyId).catch((error: unknown) => {
      throw keysUnavailable(error);
    });
    const cachedKey = row === undefined ? undefined : toCachedKey(row, clock.monotonic());
    if (cachedKey === undefined) this.#cachedIds.delete(keyId);
    else if (changesBefore === this.#changes) this.#cachedIds.set(keyId, cachedKey);
    return cachedKey;
  }

  #admit(cachedKey: CachedKey, request: ClientRequest): Caller {
    const now = this.#dependencies.clock.now();
    if (cachedKey.expiresAtMs <= now) throw this.#failed(request, invalidKey());
    if (cachedKey.caller.access !== undefined && !request.path.startsWith(organizationPaths)) throw organizationKey();
    return this.#use(cachedKey, request.remoteAddress, request.headers);
  }

  #use(key: CachedKey, remoteAddress: string, headers: Readonly<Headers>): Caller {
    const { caller, addresses, disabled, archivedProject, tags } = key;
    if (addresses?.has(remoteAddress) === false) throw wrongAddress();
    if (disabled) throw disabledAccount();
    if (archivedProject !== undefined) throw projectArchived(archivedProject);
    const said = headers[tagsHeader];
    const tagged = said === undefined ? caller : taggedCaller(caller, tags, said);
    this.#dependencies.lastUsed.note(caller.keyId, this.#dependencies.clock.now());
    return tagged;
  }

  /** The error for a failed attempt: its own, or `tooManyFailures`. */
  #failed(request: ClientRequest, refusal: GatewayError): GatewayError {
    const { remoteAddress } = request;
    const retryAfterMs = this.#failures.retryAfterMs(remoteAddress);
    if (retryAfterMs > 0) return tooManyFailures(retryAfterMs);
    if (this.#failures.note(remoteAddress))
      this.#dependencies.log.warn(
        { remoteAddress },
        'too many failed attempts to authenticate; refusing more for a minute',
      );
    return refusal;
  }

  #lookUp(
    fingerprint: string,
    hash: string,
    others: readonly string[],
    request: ClientRequest,
  ): Promise<CachedKey | undefined> {
    if (!this.#dependencies.database.healthy()) throw keysUnavailable();
    const done = this.#failures.beginLookup(request.remoteAddress);
    if (done === undefined) throw tooManyFailures(this.#failures.retryAfterMs(request.remoteAddress));
    return this.#load(fingerprint, hash, others).finally(done);
  }

  /** Queries the database; concurrent requests for the same hash share one query. */
  #load(fingerprint: string, hash: string, others?: readonly string[]): Promise<CachedKey | undefined> {
    if (this.#loads.size >= maxLoads) return Promise.reject(keysUnavailable());
    const load = this.#fetch(fingerprint, hash, others).finally(() => this.#loads.delete(hash));
    this.#loads.set(hash, load);
    return load;
  }

  async #fetch(fingerprint: string, hash: string, others?: readonly string[]): Promise<CachedKey | undefined> {
    const { store, clock } = this.#dependencies;
    const changesBefore = this.#changes;
    const row = await store.findValidKey(hash, ...(others ?? [])).catch((error: unknown) => {
      throw keysUnavailable(error);
    });
    const cachedKey = row === undefined ? undefined : toCachedKey(row, clock.monotonic());
    if (cachedKey === undefined) this.#cachedKeys.delete(fingerprint);
    // A known key is looked up by its own hash, whichever secret has made it.
    else if (others !== undefined) this.#noteHash(cachedKey, hash);
    if (changesBefore !== this.#changes) return cachedKey;
    if (cachedKey === undefined) this.#unknownHashes.set(hash, clock.monotonic() + unknownForMs);
    else this.#cachedKeys.set(fingerprint, cachedKey);
    return cachedKey;
  }

  #recheck(cachedKey: CachedKey, load: () => Promise<CachedKey | undefined>): void {
    const { clock, database } = this.#dependencies;
    if (!database.healthy()) return;
    cachedKey.checkedAtMs = clock.monotonic();
    if (this.#loads.has(cachedKey.foundBy)) return;
    load().catch((error: unknown) => {
      this.#dependencies.log.warn(
        { error, account_id: cachedKey.caller.accountId, key_id: cachedKey.caller.keyId },
        'a cached key could not be checked again; it stays valid',
      );
    });
  }

  #forgetKey(hash: string): void {
    this.#changes += 1;
    for (const cache of [this.#cachedKeys, this.#cachedIds])
      for (const [name, cachedKey] of cache.entries()) if (cachedKey.hash === hash) cache.delete(name);
    this.#unknownHashes.delete(hash);
  }

  /** Reads some keys of changed accounts again; undefined: there are none. */
  readChanged(): Promise<void> | undefined {
    if (this.#changed.size === 0 || !this.#dependencies.database.healthy()) return undefined;
    const names = [...this.#changed].slice(0, rereadAtOnce);
    for (const name of names) this.#changed.delete(name);
    return this.#readAll(names);
  }

  async #readAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const cachedKey = this.#cachedKeys.peek(name);
      if (cachedKey?.changedAtMs !== undefined)
        await (this.#loads.get(cachedKey.foundBy) ?? this.#load(name, cachedKey.foundBy));
    }
  }

  #noteChange(accountId: string): void {
    this.#changes += 1;
    const now = this.#dependencies.clock.monotonic();
    for (const cache of [this.#cachedKeys, this.#cachedIds])
      for (const [name, cachedKey] of cache.entries()) {
        if (cachedKey.caller.accountId !== accountId) continue;
        cachedKey.changedAtMs ??= now;
        if (cache === this.#cachedKeys) this.#changed.add(name);
      }
  }
}

const soon = (lookup: Promise<CachedKey | undefined>) => within(longestLookupMs, lookup, keysUnavailable);
