/** The words of upstreams: vendors, their keys, how much they take at once, and what keeps requests together. Types alone. */
import { defineFact, defineService } from './contract.ts';
import type { Traits } from './traits.ts';
import type { Secret, UpstreamTraits } from './vocabulary.ts';

/** A configured vendor. */
export interface Provider {
  readonly name: string;
  /** Protocol to base URL. Reading the URL of a vendor inside the process throws while that does not run; the keys are always there. */
  readonly speaks: Readonly<Record<string, string>>;
  readonly traits: UpstreamTraits;
  /** Traits of single protocols, where they differ. */
  readonly protocolTraits?: Readonly<Record<string, UpstreamTraits>>;
  /** What is declared of its way to speak each protocol; for translated requests. */
  readonly dialect?: Readonly<Record<string, Traits>>;
  /** How many keys it has; absent: it is not known. */
  readonly keyCount?: number;
  /** How many requests it takes at once; absent: no bound is set. */
  readonly gate?: UpstreamGate | undefined;
}

/** Places at an upstream that takes only so many requests at once, and those who wait for one. */
export interface UpstreamGate {
  /** Takes a place, if one is free and nobody waits. */
  tryEnter(): boolean;
  /**
   * Waits for a place, first come first served. false: as many wait as may, none came free in time, or the signal aborted.
   */
  enter(signal: AbortSignal): Promise<boolean>;
  /** Gives a place back: once for each that was taken. */
  leave(): void;
  /** When a place may be free for somebody who would come now. */
  readonly retryAfterMs: number;
}

/** What a key is wanted for, where it matters which one serves. */
export interface KeyWish {
  /** The one that served before; taken if it can be used. */
  readonly credential?: string | undefined;
  /** Names the session: each process chooses the same of the usable keys for it. */
  readonly session?: number | undefined;
}

/** How the first of several targets is chosen: in the listed order and by weight, or the one that answers soonest. */
export type Choosing = 'listed' | 'fastest';

/** What a request goes on with, as far as the request itself tells; so that it goes where its prompt was read before. */
export interface Conversation {
  /** The client's own name of it: a cache key, a session; undefined: it says none. */
  readonly name: string | undefined;
  /** How it began, bounded: the same in all of its requests. undefined: not told, or the answer has begun. */
  opening(): string | undefined;
  /**
   * Whether more than an answer comes of it: something is kept at the upstream, or tools run there. Asking twice would leave
   * two of it. Absent: nobody can tell.
   */
  leavesTraces?(): boolean;
}
export const conversation = defineFact<Conversation>('conversation');

export interface Providers {
  /** undefined when it is not configured or has no key. */
  find(name: string): Provider | undefined;
  list(): readonly Provider[];
  /**
   * The next usable key for this model whose credential is not in `except`. There is none: `retryAfterMs` tells when the
   * first of the resting ones wakes, 0 when none rests. `wish`: which one it should be, if it can.
   */
  takeKey(
    provider: string,
    model: string,
    except?: ReadonlySet<string>,
    wish?: KeyWish,
  ): { key: Secret; credential: string } | { retryAfterMs: number };
  /**
   * The provider's key of this credential, whoever's turn it is; undefined when there is none of that name. `restsMs`: how
   * long it still rests for this model (without a model: for all); 0 when it is usable. `disabled`: an operator has taken it,
   * or its provider, out of use: nothing new may be begun with it.
   */
  keyNamed(
    provider: string,
    credential: string,
    model?: string,
  ): { readonly key: Secret; readonly restsMs: number; readonly disabled?: true } | undefined;
  /** Rests a key: for one model (429), or for all of them (401, 403) when `model` is undefined. */
  rest(credential: string, model: string | undefined, forMs: number, reason: string): void;
  /** Whether an operator has taken the whole provider out of use: it is found, but gives no key. */
  isDisabled?(provider: string): boolean;
}
export const providers = defineService<Providers>('providers');
