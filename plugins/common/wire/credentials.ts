/**
 * Vendor credentials: the extension point, and what a scheme consists of. With a `FixedScheme` the key travels unchanged; with a
 * `ComputedScheme` the headers are computed from the final request, such as a signature, or a token that has to be fetched.
 */
import { defineExtensionPoint } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Headers } from '../../../core/contract/message.ts';
import type { z } from '../../../core/contract/schema.ts';
import type { Secret } from '../../../core/contract/secret.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import type { ComputedAuth, FinalRequest, KeyForm, Target } from '../domain/upstreams.ts';

interface Scheme<Settings> {
  /** The scheme: `auth: { scheme: NAME, … }` of a provider. */
  readonly name: string;
  /** The other members of `auth`; strict, each with a sentence. */
  readonly config: z.ZodType<Settings>;
}

/** A scheme by which the key travels unchanged. */
export interface FixedScheme<Settings> extends Scheme<Settings> {
  form(settings: Settings): KeyForm;
}

/** A scheme by which headers are computed from the final request: a signature, or a token that is fetched. */
export interface ComputedScheme<Settings> extends Scheme<Settings> {
  /** It finds its secret elsewhere, so a provider may leave out `keys`; the key is then the empty text. */
  readonly needsNoKey?: true;
  /** The credential of one key; called when it is first used. */
  open(settings: Settings, key: Secret, tools: CredentialTools): Credential;
}

interface CredentialTools {
  readonly clock: Clock;
  /** For the credential's own requests, over the same network as calls with this key. */
  readonly fetch: typeof fetch;
}

export interface Credential {
  /** The headers to add. A failure ends the attempt before anything is sent, and the key is not used for a while. */
  authorize(request: FinalRequest): Headers | Promise<Headers>;
  /** The vendor answered 401 to this request: whether new headers can be had, with which it is then sent once more. */
  refused?(request: FinalRequest): boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: each scheme has settings of its own.
export type CredentialScheme = FixedScheme<any> | ComputedScheme<any>;

/** The ways in which requests to vendors are authorized. */
export const vendorCredentials = defineExtensionPoint<CredentialScheme>('vendor credentials');

/** The address with the key in its query. */
export function withKey(url: string, name: string, key: Secret): string {
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(key.reveal())}`;
}

/** Address and headers of a request that is not sent by the core. Throws CredentialErrors. */
export async function authorized(
  request: FinalRequest,
  auth: KeyForm | ComputedAuth,
  target: Pick<Target, 'key' | 'credential' | 'network'>,
): Promise<FinalRequest> {
  const { url, headers } = request;
  if ('query' in auth) return { ...request, url: withKey(url, auth.query, target.key) };
  const added =
    'header' in auth
      ? { [auth.header.toLowerCase()]: auth.value.replace('{key}', () => target.key.reveal()) }
      : await auth.authorize(target, request);
  return { ...request, headers: { ...headers, ...added } };
}

/** A credential could not be computed or fetched: nothing was sent. The message is for operators and contains no secret. */
export class CredentialError extends UpstreamError {
  constructor(message: string, cause: unknown) {
    super('connect', message, { cause });
  }
}

/** Something that ends, such as a token. */
export interface Perishable<T> {
  readonly value: T;
  /** Wall-clock milliseconds; undefined: it does not end. */
  readonly endsAt: number | undefined;
}

export interface RefreshOptions<T> {
  /** Fetches a new one; must stop when the signal aborts. */
  readonly load: (signal: AbortSignal) => Promise<Perishable<T>>;
  readonly clock: Clock;
  /** How long before its end it is replaced while it is still in use. */
  readonly aheadMs?: number;
  /** Longest time of a fetch. */
  readonly timeoutMs?: number;
}

/** The time until the next try: after a failure ahead of the end, and of a value that is refused. */
const pauseMs = 15_000;

/**
 * A value that is fetched when it is first needed, kept, and replaced ahead of its end: by one fetch for all that wait, and
 * without a wait while the old one is valid. A failed fetch fails for all that wait for it; the next call tries again.
 */
export class Refreshed<T> {
  readonly #options: RefreshOptions<T>;
  #current: Perishable<T> | undefined;
  /** Monotonic; of the last value that was refused and forgotten. */
  #refusedAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<T> | undefined;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: RefreshOptions<T>) {
    this.#options = options;
  }

  get(): T | Promise<T> {
    const { clock, aheadMs = 300_000 } = this.#options;
    const current = this.#current;
    const leftMs = current === undefined ? 0 : (current.endsAt ?? Number.POSITIVE_INFINITY) - clock.now();
    if (current === undefined || leftMs <= 0) return this.#load();
    if (leftMs <= aheadMs && clock.monotonic() >= this.#pausedUntil) this.#load().catch(() => {});
    return current.value;
  }

  /**
   * The vendor refused this value: it is forgotten, unless a newer one is there already. False where it took the place of one
   * that was refused a moment ago: another one would be refused too.
   */
  refuse(value: T): boolean {
    if (this.#current !== undefined && this.#current.value !== value) return true;
    const now = this.#options.clock.monotonic();
    if (now - this.#refusedAt < pauseMs) return false;
    this.#refusedAt = now;
    this.#current = undefined;
    return true;
  }

  #load(): Promise<T> {
    this.#loading ??= this.#fetch().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #fetch(): Promise<T> {
    const { load, clock, timeoutMs = 10_000 } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      this.#current = await Promise.race([load(signal), rejection(signal)]);
      return this.#current.value;
    } catch (error) {
      this.#pausedUntil = clock.monotonic() + pauseMs;
      throw error;
    }
  }
}

/** The credential that sends a fetched token as a bearer's, with these further headers. */
export function bearerOf(tokens: Refreshed<string>, more: Headers = {}): Credential {
  const withToken = (token: string) => ({ ...more, authorization: `Bearer ${token}` });
  return {
    authorize() {
      const token = tokens.get();
      return typeof token === 'string' ? withToken(token) : token.then(withToken);
    },
    refused: ({ headers }) => tokens.refuse(headers['authorization']?.replace('Bearer ', '') ?? ''),
  };
}

/** A `load` that does not watch its signal is not waited for either. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('it took too long')), { once: true });
  });
}
