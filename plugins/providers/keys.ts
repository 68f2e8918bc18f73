/** The keys of one provider: used in turn, rested when the vendor says so, out of use when the operator does. */
import type { Clock, Log } from '../../core/contract.ts';
import type { UpstreamView } from '../../core/desk.ts';
import { belonging, seedOf } from '../../core/rendezvous.ts';
import { secret } from '../../core/secret.ts';
import type { KeyWish, Providers, Secret } from '../../core/vocabulary.ts';
import { digestOf } from './switches.ts';

/** A key remembers at most this many resting models; a catalogue is far smaller. */
const restingModelsLimit = 1_000;

interface Key {
  readonly key: Secret;
  /** `openai#1`. */
  readonly credential: string;
  /** Names it for good. */
  readonly digest: string;
  /** Of the digest, so that every process gives it the same sessions. */
  readonly seed: number;
  /** Monotonic milliseconds until which the key rests for every model. */
  restsUntil: number;
  /** The same for single models. */
  readonly modelRestsUntil: Map<string, number>;
  /** Why it was put to rest last. */
  reason: string | undefined;
  /** An operator has taken it out of use. */
  isDisabled: boolean;
}

type NamedKey = NonNullable<ReturnType<Providers['keyNamed']>>;

/** A key as operators see it. */
export type KeyState = UpstreamView['keys'][number];

export class KeyRing {
  readonly #provider: string;
  readonly #keys: readonly Key[];
  readonly #clock: Clock;
  readonly #log: Log;
  /** Keys that were ever in it: no two have one number. */
  readonly #numbered: number;
  /** Index of the key whose turn it is. */
  #turn = 0;
  #isDisabled = false;

  /** `earlier`: the ring whose place it takes. Keys that stay keep their names and their rests. */
  constructor(provider: string, keys: readonly string[], clock: Clock, log: Log, earlier?: KeyRing) {
    this.#provider = provider;
    this.#clock = clock;
    this.#log = log;
    let numbered = earlier === undefined ? 0 : earlier.#numbered;
    const staying = new Map((earlier === undefined ? [] : earlier.#keys).map((key) => [key.key.reveal(), key]));
    this.#keys = keys.map((text) => {
      const stays = staying.get(text);
      // Each stays once: a key that is written twice takes two turns, which rest apart.
      if (stays !== undefined && staying.delete(text)) return stays;
      numbered += 1;
      const digest = digestOf(provider, text);
      return {
        key: secret(text),
        credential: `${provider}#${numbered}`,
        digest,
        seed: seedOf(digest),
        restsUntil: Number.NEGATIVE_INFINITY,
        modelRestsUntil: new Map(),
        reason: undefined,
        isDisabled: false,
      };
    });
    this.#numbered = numbered;
  }

  /** The ring that takes this one's place. */
  changed(keys: readonly string[]): KeyRing {
    return new KeyRing(this.#provider, keys, this.#clock, this.#log, this);
  }

  get credentials(): readonly string[] {
    return this.#keys.map((key) => key.credential);
  }

  /** An operator has taken the whole provider out of use. */
  get isDisabled(): boolean {
    return this.#isDisabled;
  }

  /** Takes out of use what is named: the provider, or keys of it by their digests. All else is in use. */
  obey(off: ReadonlySet<string>): void {
    this.#isDisabled = off.has(this.#provider);
    for (const key of this.#keys) key.isDisabled = off.has(key.digest);
  }

  /** What names a key for good; undefined: there is none of this credential. */
  digestOf(credential: string): string | undefined {
    return this.#keys.find((key) => key.credential === credential)?.digest;
  }

  /** Ends all rests. */
  wake(): void {
    for (const key of this.#keys) {
      key.restsUntil = Number.NEGATIVE_INFINITY;
      key.modelRestsUntil.clear();
    }
  }

  states(): KeyState[] {
    const now = this.#clock.monotonic();
    return this.#keys.map(({ credential, isDisabled, restsUntil, modelRestsUntil, reason }) => ({
      credential,
      disabled: isDisabled,
      restsMs: Math.max(0, restsUntil - now),
      modelRests: [...modelRestsUntil]
        .filter(([, until]) => until > now)
        .map(([model, until]) => ({ model, restsMs: until - now })),
      reason,
    }));
  }

  /**
   * A key that does not rest for this model and is not in `except`: the one that is wished for, else the next in turn. There
   * is none: when the first resting one wakes (0: none rests).
   */
  take(
    model: string,
    except?: ReadonlySet<string>,
    wish?: KeyWish,
  ): { key: Secret; credential: string } | { retryAfterMs: number } {
    if (this.#isDisabled) return { retryAfterMs: 0 };
    const now = this.#clock.monotonic();
    const wished = wish === undefined ? undefined : this.#wished(model, except, wish, now);
    if (wished !== undefined) return wished;
    let soonest = Number.POSITIVE_INFINITY;
    for (let step = 0; step < this.#keys.length; step++) {
      const index = (this.#turn + step) % this.#keys.length;
      const key = this.#keys[index]!;
      if (key.isDisabled) continue;
      const wakes = wakesAt(key, model);
      if (wakes > now) soonest = Math.min(soonest, wakes);
      else if (except === undefined || !except.has(key.credential)) {
        this.#turn = (index + 1) % this.#keys.length;
        return key;
      }
    }
    return { retryAfterMs: soonest === Number.POSITIVE_INFINITY ? 0 : soonest - now };
  }

  /** Of the usable keys the one that served before, else the one that the session belongs to; undefined: it is anyone's turn. */
  #wished(
    model: string,
    except: ReadonlySet<string> | undefined,
    { credential, session }: KeyWish,
    now: number,
  ): Key | undefined {
    let nearest: Key | undefined;
    let highest = 0;
    for (const key of this.#keys) {
      if (key.isDisabled || wakesAt(key, model) > now || except?.has(key.credential) === true) continue;
      if (key.credential === credential) return key;
      const score = session === undefined ? 0 : belonging(session, key.seed);
      if (score <= highest) continue;
      highest = score;
      nearest = key;
    }
    return nearest;
  }

  /** One key by its credential, and for how long it still rests for this model, or for all. */
  named(credential: string, model: string | undefined): NamedKey | undefined {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined) return undefined;
    const wakes = model === undefined ? key.restsUntil : wakesAt(key, model);
    const restsMs = Math.max(0, wakes - this.#clock.monotonic());
    return { key: key.key, restsMs, ...(this.#isDisabled || key.isDisabled ? { disabled: true } : {}) };
  }

  /** Rests a key for one model, or for all of them. A rest is never shortened by a later, shorter one. */
  rest(credential: string, model: string | undefined, forMs: number, reason: string): void {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined || !(forMs > 0)) return;
    const now = this.#clock.monotonic();
    const fields = { credential, model, forMs, reason };
    key.reason = reason;
    if (model === undefined) {
      if (key.restsUntil <= now) this.#log.warn(fields, 'an upstream key rests for all models');
      key.restsUntil = Math.max(key.restsUntil, now + forMs);
      return;
    }
    const until = key.modelRestsUntil.get(model) ?? Number.NEGATIVE_INFINITY;
    if (until <= now) this.#log.info(fields, 'an upstream key rests for one model');
    if (key.modelRestsUntil.size >= restingModelsLimit) forgetRested(key.modelRestsUntil, now);
    key.modelRestsUntil.set(model, Math.max(until, now + forMs));
  }
}

/** Monotonic milliseconds until which a key rests for this model. */
function wakesAt(key: Key, model: string): number {
  const ofModel = key.modelRestsUntil.size === 0 ? undefined : key.modelRestsUntil.get(model);
  return ofModel === undefined ? key.restsUntil : Math.max(key.restsUntil, ofModel);
}

/** Drops what has woken; if that is not enough, the oldest entry. */
function forgetRested(modelRestsUntil: Map<string, number>, now: number): void {
  for (const [model, until] of modelRestsUntil) if (until <= now) modelRestsUntil.delete(model);
  if (modelRestsUntil.size < restingModelsLimit) return;
  for (const model of modelRestsUntil.keys()) {
    modelRestsUntil.delete(model);
    return;
  }
}
