/** Upstreams: providers, their keys, concurrency limits, and session affinity. Types alone. */

import {
  type DrainBounds,
  defineContextKey,
  defineService,
  type UpstreamRequest,
} from '../../../core/contract/contract.ts';
import type { UpstreamNetwork } from '../../../core/contract/exchange.ts';
import type { Headers } from '../../../core/contract/message.ts';
import type { Secret } from '../../../core/contract/secret.ts';

import type { Traits } from './traits.ts';

/** A configured vendor. */
export interface Provider {
  readonly name: string;
  /** The vendor, by preset or name, if the addresses are its own; absent: a stand-in, a local server or another one without TLS. */
  readonly vendor?: string;
  /** Protocol to base URL. Reading the URL of a vendor inside the process throws while that does not run; the keys are always there. */
  readonly speaks: Readonly<Record<string, string>>;
  readonly traits: UpstreamTraits;
  /** Traits of single protocols, where they differ. */
  readonly protocolTraits?: Readonly<Record<string, UpstreamTraits>>;
  /** Declared traits of the target in each protocol, for translated requests. */
  readonly dialect?: Readonly<Record<string, Traits>>;
  /** Address of its list of models, `none` if it has none; absent: below the base URL. */
  readonly modelsUrl?: string | undefined;
  /** How many keys it has; absent: it is not known. */
  readonly keyCount?: number;
  /** How many requests it takes at once; absent: no bound is set. */
  readonly gate?: UpstreamGate | undefined;
  /** It keeps nothing of what it is sent, by the operator's contract with it. */
  readonly zdr?: true;
  /** Where it processes what it is sent; absent: it is not known. */
  readonly regions?: readonly string[] | undefined;
}

/** Concurrency slots of an upstream, and the queue for them. */
export interface UpstreamGate {
  /** Acquires a slot if one is free and no request waits. */
  tryAcquire(): boolean;
  /**
   * Waits for a slot, first in first out. false: the queue is full, the wait timed out, or the signal aborted.
   */
  acquire(signal: AbortSignal): Promise<boolean>;
  /** Releases a slot; once for each that was acquired. */
  release(): void;
  /** When a slot may be free for a new request. */
  readonly retryAfterMs: number;
}

/** A preference for one of the keys. */
export interface KeyPreference {
  /** The one that served before; taken if it can be used. */
  readonly credential?: string | undefined;
  /** Names the session: each process chooses the same of the usable keys for it. */
  readonly session?: number | undefined;
}

/** How the first of several targets is chosen: in the listed order and by weight, or the one that answers soonest. */
export type TargetStrategy = 'ordered' | 'fastest';

export interface Providers {
  /** undefined when it is not configured or has no key. */
  find(name: string): Provider | undefined;
  list(): readonly Provider[];
  /** The protocols of all providers in the file, also of those without a key; absent: unknown. */
  configured?(): ReadonlyMap<string, readonly string[]>;
  /**
   * The next usable key for this model with a credential that is not in `except`. If there is none, `retryAfterMs`: until the
   * first cooldown ends, 0 when no key is in cooldown. `wish`: the preferred key.
   */
  acquireKey(
    provider: string,
    model: string,
    except?: ReadonlySet<string>,
    wish?: KeyPreference,
  ): { key: Secret; credential: string; network?: UpstreamNetwork | undefined } | { retryAfterMs: number };
  /**
   * The provider's key of this credential; undefined if there is none. `restsMs`: its remaining cooldown for this model
   * (without a model: for all); 0 when it is usable. `disabled`: an operator has disabled it or its provider: it must not be
   * used for new requests.
   */
  findKey(
    provider: string,
    credential: string,
    model?: string,
  ):
    | {
        readonly key: Secret;
        readonly restsMs: number;
        readonly disabled?: true;
        readonly network?: UpstreamNetwork | undefined;
      }
    | undefined;
  /** Sets a key's cooldown: for one model (429), or for all of them (401, 403) when `model` is undefined. */
  /** `about`: members of the log line, of the request or task that was refused. */
  coolDown(credential: string, model: string | undefined, forMs: number, reason: string, about?: object): void;
  /** Whether an operator has disabled the whole provider: it is found, but has no usable key. */
  isDisabled?(provider: string): boolean;
}
export const providers = defineService<Providers>('providers');

/** The target of an attempt. Set by `route` before each `next()`. */
export interface Target {
  readonly provider: string;
  /** The upstream's name of the model. */
  readonly model: string;
  /** Protocol that will be spoken with the upstream. */
  readonly protocol: string;
  /** What a client of that vendor would be configured with, without a trailing slash. */
  readonly baseUrl: string;
  /** The upstream key; prints as `***`. */
  readonly key: Secret;
  /** Identifies the key without revealing it: `openai#1`. */
  readonly credential: string;
  readonly upstream: UpstreamTraits;
  /** The provider's dialect of this protocol and the model's traits, merged. */
  readonly traits: Traits;
  /** Headers of the model's target over those of the provider, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How the upstream is reached with this key; absent: directly. */
  readonly network?: UpstreamNetwork | undefined;
}

/** Where the running attempt is sent. Set by `route`, again for each attempt. */
export const target = defineContextKey<Target>('target');

/** The form of a key that travels unchanged: `{key}` in a header's value, or a member of the query. */
export type KeyForm = { readonly header: string; readonly value: string } | { readonly query: string };

/** The request as it is sent, but for these headers; the body is not changed any more. */
export type FinalRequest = Pick<UpstreamRequest, 'method' | 'url' | 'headers' | 'body'>;

/** The headers of a computed credential. */
export interface ComputedAuth {
  authorize(target: Pick<Target, 'key' | 'credential' | 'network'>, request: FinalRequest): Headers | Promise<Headers>;
  /** The vendor answered 401: whether new headers can be had. */
  refused?(target: Pick<Target, 'key'>, request: FinalRequest): boolean;
}

/** The settings of a provider, apart from keys and addresses. */
export interface UpstreamTraits {
  /** How requests are authorized; absent: in the protocol's own header. */
  readonly auth: KeyForm | ComputedAuth | undefined;
  /** Headers sent with each request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Top-level request members that the vendor does not take, by protocol: removed. */
  readonly dropFields: Readonly<Record<string, readonly string[]>>;
  /** true: ask for usage in chat streams by `stream_options.include_usage`. */
  readonly streamUsageOption: boolean;
  /** true: it gets a digest of the session as `prompt_cache_key`. */
  readonly sessionKey?: true;
  /** Marks for its prompt cache in requests of the messages protocol; absent: relayed as they are, and added to translated requests. */
  readonly cacheMarks?: 'auto' | 'client' | 'off';
  readonly connectTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Its answers are read on within these bounds when a client disconnects; absent: they are aborted. */
  readonly drain?: DrainBounds | undefined;
  /** The same, but only answers that cost little beside their prompt. */
  readonly cheapDrain?: DrainBounds | undefined;
  /** Absent: none. */
  readonly uncheckedIds?: UncheckedIds;
}

/** Protocols that a plugin speaks with vendors. */
interface SpokenProtocols {
  /** The path of the endpoint that is called most, by the protocol's name. */
  paths(): ReadonlyMap<string, string>;
  /** The gateway's own endpoint for clients of a protocol, by its name. */
  endpoints?(): ReadonlyMap<string, string>;
}

/** Which protocols the gateway can speak with an upstream for a client of another. */
export interface Translations extends SpokenProtocols {
  /** Whether a call in the protocol `from` can be made of an upstream that speaks `to`; true where both are the same. */
  can(from: string, to: string): boolean;
  /** Whether such a call needs no translation: `to` is `from`, or `from` at addresses of its own. */
  relays?(from: string, to: string): boolean;
  /** Whether a request in this protocol gets one answer, and cannot ask for several. */
  answersOnce?(to: string): boolean;
}

/** For how long the opening frames of streams are held back, as an error in them may still be followed by another attempt. */
export const openings = defineService<{ readonly heldMs: number }>('openings of streams');

export const translations = defineService<Translations>('translations');

/** Protocols of images and videos. */
export const mediaProtocols = defineService<SpokenProtocols>('media protocols');
/** Protocols of embeddings and other endpoints with one request and one answer. */
export const endpointProtocols = defineService<SpokenProtocols>('endpoint protocols');
/** Protocols of relayed sessions over WebSocket. */
export const sessionProtocols = defineService<SpokenProtocols>('session protocols');

/** Addresses of vendors that run inside this process: base URLs that begin with `NAME:` resolve here. */
export interface LocalUpstreams {
  readonly names: readonly string[];
  /** `http://127.0.0.1:PORT`. */
  origin(name: string): string | undefined;
}

export const localUpstreams = defineService<LocalUpstreams>('local upstreams');

/** Which ids of files, containers and the like go to a provider although its vendor has not issued them to the account. */
interface UncheckedIds {
  /** All of them. */
  readonly all: boolean;
  /** Ids that every account may use. */
  readonly shared: ReadonlySet<string>;
}
