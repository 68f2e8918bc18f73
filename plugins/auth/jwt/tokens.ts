/** Calls with tokens of another system: what a token says is checked against the issuers of `auth.jwt`, and stands for a key of its account. */

import type { JWTPayload } from 'jose';
import { LRUCache } from 'lru-cache';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { keysUnavailable } from '../refusals.ts';
import type { JwtIssuer } from './config.ts';
import { KeySet } from './key-set.ts';
import type { Workload } from './workloads.ts';

const shape = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;
const longest = 8_192;
/** A key that its issuer has taken back stops verifying tokens within this time, beside that for which its keys are fresh. */
const verifiedForMs = 300_000;
const mostChecks = 1_000;

interface Verified {
  readonly keyId: string;
  /** Wall clock. */
  readonly endsAt: number;
  /** Monotonic. */
  readonly until: number;
}

export interface TokensParts {
  readonly host: Pick<Host, 'fetch' | 'clock' | 'log'>;
  readonly size: number;
  /** The id of the key that stands for a workload. Rejects with the refusal. */
  keyOf(workload: Workload): Promise<string>;
}

export class Tokens {
  readonly #parts: TokensParts;
  readonly #verified: LRUCache<string, Verified>;
  readonly #checks = new Map<string, Promise<string>>();
  #issuers: readonly JwtIssuer[] = [];
  #sets = new Map<JwtIssuer, KeySet>();

  constructor(parts: TokensParts, issuers: readonly JwtIssuer[]) {
    this.#parts = parts;
    this.#verified = new LRUCache({ max: parts.size });
    this.applyConfig(issuers);
  }

  /** Issuers that stay the same keep their keys. */
  applyConfig(issuers: readonly JwtIssuer[]): void {
    if (JSON.stringify(issuers) === JSON.stringify(this.#issuers)) return;
    const before = new Map([...this.#sets].map(([issuer, set]) => [JSON.stringify(issuer), set]));
    this.#sets = new Map(
      issuers.map((issuer) => [issuer, before.get(JSON.stringify(issuer)) ?? new KeySet(this.#parts.host, issuer)]),
    );
    this.#issuers = issuers;
    this.#verified.clear();
    this.#checks.clear();
  }

  mayBe(text: string): boolean {
    return this.#issuers.length > 0 && text.length <= longest && shape.test(text);
  }

  /** The key of a token that was verified; undefined: it is to be checked. */
  known(fingerprint: string): string | undefined {
    const verified = this.#verified.get(fingerprint);
    const { clock } = this.#parts.host;
    if (verified === undefined || verified.endsAt <= clock.now() || verified.until <= clock.monotonic())
      return undefined;
    return verified.keyId;
  }

  /** Rejects with the refusal. Equal tokens share a check. */
  check(token: string, fingerprint: string): Promise<string> {
    const running = this.#checks.get(fingerprint);
    if (running !== undefined) return running;
    if (this.#checks.size >= mostChecks) return Promise.reject(keysUnavailable());
    const check = this.#check(token, fingerprint).finally(() => {
      if (this.#checks.get(fingerprint) === check) this.#checks.delete(fingerprint);
    });
    this.#checks.set(fingerprint, check);
    return check;
  }

  async #check(token: string, fingerprint: string): Promise<string> {
    const issuers = this.#issuers;
    const said = payloadOf(token);
    const ofIssuer = issuers.filter(({ issuer }) => issuer === said.iss);
    if (ofIssuer.length === 0) throw refused('is of an issuer that this gateway does not know');
    const forUs = ofIssuer.filter(({ audience }) => [said.aud].flat().includes(audience));
    if (forUs.length === 0) throw refused('is for another audience');
    const wanted = forUs.find(({ require }) => hasClaims(said, require));
    if (wanted === undefined) throw refused('lacks a claim that its issuer must set for this gateway');
    const payload = await this.#verifiedBy(token, wanted);
    const keyId = await this.#parts.keyOf(workloadOf(payload, wanted));
    const { clock } = this.#parts.host;
    const endsAt = payload.exp! * 1_000 + wanted.leeway;
    if (issuers === this.#issuers)
      this.#verified.set(fingerprint, { keyId, endsAt, until: clock.monotonic() + verifiedForMs });
    return keyId;
  }

  async #verifiedBy(token: string, issuer: JwtIssuer): Promise<JWTPayload> {
    const { jwtVerify } = await import('jose');
    const { clock } = this.#parts.host;
    try {
      const set = this.#sets.get(issuer)!;
      const { payload } = await jwtVerify(token, (header, jws) => set.find(header, jws), {
        algorithms: [...issuer.algorithms],
        issuer: issuer.issuer,
        audience: issuer.audience,
        clockTolerance: issuer.leeway / 1_000,
        currentDate: new Date(clock.now()),
        requiredClaims: ['exp'],
      });
      if (payload.iat !== undefined && payload.iat * 1_000 > clock.now() + issuer.leeway)
        throw refused('is not valid yet');
      return payload;
    } catch (error) {
      throw error instanceof GatewayError ? error : refused(reasonOf(error), error);
    }
  }
}

function payloadOf(token: string): JWTPayload {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString('utf8'));
    if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) return payload as JWTPayload;
  } catch {
    // Falls through to the common error.
  }
  throw refused('is not one');
}

const claimOf = (payload: JWTPayload, name: string): unknown =>
  Object.hasOwn(payload, name) ? payload[name] : undefined;

function hasClaims(payload: JWTPayload, require: JwtIssuer['require']): boolean {
  return Object.entries(require).every(([name, wanted]) =>
    [wanted].flat().some((one) => one === claimOf(payload, name)),
  );
}

function workloadOf(payload: JWTPayload, { issuer, audience, account, project, person, models }: JwtIssuer): Workload {
  const textOf = (from: string | { readonly claim: string }): string => {
    if (typeof from === 'string') return from;
    const said = claimOf(payload, from.claim);
    if (typeof said === 'string' && said !== '' && said.length <= 200) return said;
    throw refused('lacks a claim that its issuer must set for this gateway');
  };
  return {
    ...{ issuer, audience, account: textOf(account) },
    project: project === undefined ? undefined : textOf(project),
    person: person === undefined ? undefined : textOf(person),
    models: models === undefined || Array.isArray(models) ? models : listOf(claimOf(payload, models.claim)),
  };
}

/** A claim that should narrow what may be called narrows, or is refused. */
function listOf(said: unknown): readonly string[] {
  const list = typeof said === 'string' ? [said] : said;
  if (Array.isArray(list) && list.length > 0 && list.length <= 100 && list.every(isName)) return list;
  throw refused('lacks a claim that its issuer must set for this gateway');
}
const isName = (one: unknown): one is string => typeof one === 'string' && one !== '' && one.length <= 200;

/** By jose's codes. */
function reasonOf(error: unknown): string {
  const { code, claim } = Object(error) as { code?: unknown; claim?: unknown };
  if (code === 'ERR_JWT_EXPIRED') return 'has expired';
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED' && claim === 'nbf') return 'is not valid yet';
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED' && claim === 'exp') return 'has no end';
  if (code === 'ERR_JOSE_ALG_NOT_ALLOWED') return 'is signed in a way that is not allowed';
  return 'has a signature that cannot be verified';
}

const refused = (what: string, cause?: unknown) =>
  new GatewayError('unauthenticated', `The token ${what}.`, {
    code: 'invalid_jwt',
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    cause,
  });
