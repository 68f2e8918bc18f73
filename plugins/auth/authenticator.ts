/** The one way from a request to its caller: syntax, cache, database, in this order. */
import type { KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ClientRequest, Clock, Log } from '../../core/contract.ts';
import type { GatewayError } from '../../core/errors.ts';
import { parseRatio } from '../../core/money.ts';
import type { Caller, Database } from '../../core/vocabulary.ts';
import { AddressList } from './addresses.ts';
import { type Carrier, presentedKeys } from './carriers.ts';
import { Failures } from './failures.ts';
import { fingerprintKey, hashKey, isWellFormed } from './key.ts';
import { capOf } from './key-terms.ts';
import {
  conflictingKeys,
  disabledAccount,
  invalidKey,
  keysUnavailable,
  missingKey,
  tooManyFailures,
  wrongAddress,
} from './refusals.ts';
import type { Store, ValidKey } from './store.ts';

/** What may change while requests come. */
export interface AdmissionRules {
  readonly carriers: readonly Carrier[];
  readonly failuresPerMinute: number;
}

export interface AuthenticatorOptions extends AdmissionRules {
  readonly cacheSize: number;
}

export interface AuthenticatorParts {
  readonly database: Database;
  readonly store: Store;
  readonly pepper: KeyObject;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each use. */
  readonly onUse: (keyId: string, atMs: number) => void;
}

interface Known {
  readonly caller: Caller;
  /** As the database has it, and as announcements name the key. */
  readonly hash: string;
  readonly expiresAtMs: number;
  readonly disabled: boolean;
  /** Where it may be used from; undefined: anywhere. */
  readonly addresses: AddressList | undefined;
  /** Monotonic time at which the database was last asked. */
  checkedAtMs: number;
}

/** A hash that is no key is not asked for again this soon. */
const unknownForMs = 5_000;
const maxUnknown = 1_000;
/** A cached key is asked for again this often, beside the request: an announcement that was lost is made good. */
const recheckMs = 60_000;
/** Lookups that may run at once; more is overload, not work. */
const maxLoads = 1_000;

export class Authenticator {
  #carriers: readonly Carrier[];
  readonly #parts: AuthenticatorParts;
  readonly #failures: Failures;
  /** By fingerprint: a plain digest costs a fifth of the keyed hash, and never leaves memory. A hit costs no I/O. */
  readonly #known: LRUCache<string, Known>;
  /** Hash to the monotonic time until which it is taken for no key. Apart from the known: guesses must not push keys out. */
  readonly #unknown = new LRUCache<string, number>({ max: maxUnknown });
  readonly #loads = new Map<string, Promise<Known | undefined>>();
  /** Counts announcements: what was loaded while one came in may be older than it, and is not kept. */
  #changes = 0;

  constructor(options: AuthenticatorOptions, parts: AuthenticatorParts) {
    this.#carriers = options.carriers;
    this.#parts = parts;
    this.#failures = new Failures(options.failuresPerMinute, parts.clock);
    this.#known = new LRUCache({ max: options.cacheSize });
    parts.database.onChange('key', (hash) => this.#forgetKey(hash));
    parts.database.onChange('account', (accountId) => this.#forgetAccount(accountId));
  }

  /** Goes by other rules from now on; what is known and who has failed stays. */
  follow({ carriers, failuresPerMinute }: AdmissionRules): void {
    this.#carriers = carriers;
    this.#failures.perMinute = failuresPerMinute;
  }

  /** Who sent this request. Known keys are answered without a promise. Throws or rejects with a GatewayError. */
  authenticate(request: ClientRequest): Caller | Promise<Caller> {
    const presented = presentedKeys(request, this.#carriers);
    if (presented.length === 0) throw this.#failed(request, missingKey(this.#carriers));
    if (presented.length > 1) throw this.#failed(request, conflictingKeys());
    const key = presented[0]!;
    const fingerprint = fingerprintKey(key);
    const known = this.#known.get(fingerprint);
    if (known === undefined) return this.#authenticateUnknown(key, fingerprint, request);
    this.#recheck(fingerprint, known);
    return this.#admit(known, request);
  }

  async #authenticateUnknown(key: string, fingerprint: string, request: ClientRequest): Promise<Caller> {
    if (!isWellFormed(key)) throw this.#failed(request, invalidKey());
    const hash = hashKey(key, this.#parts.pepper);
    const unknownUntil = this.#unknown.get(hash);
    if (unknownUntil !== undefined && this.#parts.clock.monotonic() < unknownUntil)
      throw this.#failed(request, invalidKey());
    const known = await (this.#loads.get(hash) ?? this.#lookUp(fingerprint, hash, request));
    if (known === undefined) throw this.#failed(request, invalidKey());
    return this.#admit(known, request);
  }

  #admit(known: Known, request: ClientRequest): Caller {
    const now = this.#parts.clock.now();
    if (known.expiresAtMs <= now) throw this.#failed(request, invalidKey());
    if (known.addresses?.has(request.remoteAddress) === false) throw wrongAddress();
    if (known.disabled) throw disabledAccount();
    this.#parts.onUse(known.caller.keyId, now);
    return known.caller;
  }

  /** The refusal of a failed attempt: its own, or that there were too many. */
  #failed(request: ClientRequest, refusal: GatewayError): GatewayError {
    const { remoteAddress } = request;
    const retryAfterMs = this.#failures.retryAfterMs(remoteAddress);
    if (retryAfterMs > 0) return tooManyFailures(retryAfterMs);
    if (this.#failures.note(remoteAddress))
      this.#parts.log.warn({ remoteAddress }, 'too many failed attempts to authenticate; refusing more for a minute');
    return refusal;
  }

  #lookUp(fingerprint: string, hash: string, request: ClientRequest): Promise<Known | undefined> {
    if (!this.#parts.database.healthy()) throw keysUnavailable();
    const done = this.#failures.beginLookup(request.remoteAddress);
    if (done === undefined) throw tooManyFailures(this.#failures.retryAfterMs(request.remoteAddress));
    return this.#load(fingerprint, hash).finally(done);
  }

  /** Asks the database; everybody who waits for the same hash waits for the same statement. */
  #load(fingerprint: string, hash: string): Promise<Known | undefined> {
    if (this.#loads.size >= maxLoads) return Promise.reject(keysUnavailable());
    const load = this.#fetch(fingerprint, hash).finally(() => this.#loads.delete(hash));
    this.#loads.set(hash, load);
    return load;
  }

  async #fetch(fingerprint: string, hash: string): Promise<Known | undefined> {
    const { store, clock } = this.#parts;
    const changesBefore = this.#changes;
    const row = await store.findValidKey(hash).catch((error: unknown) => {
      throw keysUnavailable(error);
    });
    const known = row === undefined ? undefined : toKnown(row, hash, clock.monotonic());
    if (known === undefined) this.#known.delete(fingerprint);
    if (changesBefore !== this.#changes) return known;
    if (known === undefined) this.#unknown.set(hash, clock.monotonic() + unknownForMs);
    else this.#known.set(fingerprint, known);
    return known;
  }

  #recheck(fingerprint: string, known: Known): void {
    const now = this.#parts.clock.monotonic();
    if (now - known.checkedAtMs < recheckMs || !this.#parts.database.healthy()) return;
    known.checkedAtMs = now;
    if (this.#loads.has(known.hash)) return;
    this.#load(fingerprint, known.hash).catch((error: unknown) => {
      this.#parts.log.warn({ error, keyId: known.caller.keyId }, 'a cached key could not be checked again; it goes on');
    });
  }

  #forgetKey(hash: string): void {
    this.#changes += 1;
    this.#forget((known) => known.hash === hash);
    this.#unknown.delete(hash);
  }

  #forgetAccount(accountId: string): void {
    this.#changes += 1;
    this.#forget((known) => known.caller.accountId === accountId);
  }

  #forget(matches: (known: Known) => boolean): void {
    for (const [fingerprint, known] of this.#known.entries()) if (matches(known)) this.#known.delete(fingerprint);
  }
}

function toKnown(row: ValidKey, hash: string, checkedAtMs: number): Known {
  const cap = capOf(row);
  return {
    hash,
    caller: {
      accountId: row.accountId,
      keyId: row.keyId,
      plan: row.plan,
      planEndsAt: row.planEndsAt?.getTime(),
      models: row.models === null ? undefined : new Set(row.models),
      ...(row.multiplier === null ? {} : { multiplier: parseRatio(row.multiplier) }),
      ...(row.limits === null ? {} : { keyLimits: row.limits }),
      ...(cap === undefined ? {} : { cap }),
    },
    addresses: row.addresses === null ? undefined : new AddressList(row.addresses),
    expiresAtMs: row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    disabled: row.disabled,
    checkedAtMs,
  };
}
