/** The public keys of one issuer: fetched, kept, and fetched again for a key that is not among them. */
import type { FlattenedJWSInput, JWTHeaderParameters } from 'jose';
import type { Host } from '../../../core/contract/contract.ts';
import { keysUnavailable } from '../refusals.ts';
import type { JwtIssuer } from './config.ts';

const freshForMs = 600_000;
/** While the issuer does not answer, its last keys are used for so long. */
const keptForMs = 86_400_000;
/** Tokens with unknown keys let keys be fetched so often at most. */
const leastBetweenMs = 30_000;
const mostBytes = 262_144;
const mostKeys = 100;
const timeoutMs = 2_000;
const kinds = ['RSA', 'EC', 'OKP'];

type Lookup = Awaited<ReturnType<typeof lookupIn>>;

export class KeySet {
  readonly #host: Pick<Host, 'fetch' | 'clock' | 'log'>;
  readonly #issuer: JwtIssuer;
  #lookup: Lookup | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;

  constructor(host: Pick<Host, 'fetch' | 'clock' | 'log'>, issuer: JwtIssuer) {
    this.#host = host;
    this.#issuer = issuer;
  }

  /** The key that a token names. Rejects with jose's error where there is none, and with `overloaded` where none are known. */
  async find(header: JWTHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const age = this.#host.clock.monotonic() - this.#fetchedAt;
    if (age > keptForMs) this.#lookup = undefined;
    if (age > freshForMs) await this.#load();
    const lookup = this.#lookup;
    if (lookup === undefined) throw keysUnavailable();
    try {
      return await lookup(header, token);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_JWKS_NO_MATCHING_KEY' || !(await this.#load())) throw error;
      return this.#lookup!(header, token);
    }
  }

  /** Whether keys were fetched. Never rejects, and asks the issuer at most every half minute. */
  async #load(): Promise<boolean> {
    const now = this.#host.clock.monotonic();
    if (this.#loading === undefined) {
      if (now - this.#triedAt < leastBetweenMs) return false;
      this.#triedAt = now;
      this.#loading = this.#fetch().finally(() => {
        this.#loading = undefined;
      });
    }
    try {
      await this.#loading;
      return true;
    } catch (error) {
      this.#host.log.warn(
        { error, issuer: this.#issuer.issuer },
        'the keys of an issuer of tokens could not be fetched',
      );
      return false;
    }
  }

  async #fetch(): Promise<void> {
    const { keys } = (await this.#json(this.#issuer.jwks ?? (await this.#discovered()))) as { keys?: unknown };
    if (!Array.isArray(keys)) throw new Error('the issuer has no list of keys');
    const usable = keys.slice(0, mostKeys).filter(isPublic);
    this.#lookup = await lookupIn(usable);
    this.#fetchedAt = this.#host.clock.monotonic();
  }

  async #discovered(): Promise<string> {
    const { issuer } = this.#issuer;
    const found = await this.#json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const { issuer: named, jwks_uri: address } = found as { issuer?: unknown; jwks_uri?: unknown };
    if (named !== issuer || typeof address !== 'string') throw new Error('the issuer describes another one');
    return address;
  }

  async #json(address: string): Promise<object> {
    const { allow_private: allowPrivate } = this.#issuer;
    const answer = await this.#host.fetch(address, { timeoutMs, maxBytes: mostBytes, allowPrivate });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`the issuer answered ${answer.status}`);
    return Object(JSON.parse(text)) as object;
  }
}

/** A shared secret among public keys would let anybody sign who reads them. */
const isPublic = (key: unknown): key is { kty: string } => {
  const { kty, d } = Object(key) as { kty?: unknown; d?: unknown };
  return d === undefined && kinds.some((kind) => kind === kty);
};

async function lookupIn(keys: { kty: string }[]) {
  const { createLocalJWKSet } = await import('jose');
  return createLocalJWKSet({ keys });
}
