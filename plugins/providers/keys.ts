/** The keys of one provider: used in turn, rested when the vendor says so. */
import type { Clock, Log } from '../../core/contract.ts';
import { secret } from '../../core/secret.ts';
import type { Secret } from '../../core/vocabulary.ts';

/** A key remembers at most this many resting models; a catalogue is far smaller. */
const restingModelsLimit = 1_000;

interface Key {
  readonly key: Secret;
  /** `openai#1`. */
  readonly credential: string;
  /** Monotonic milliseconds until which the key rests for every model. */
  restsUntil: number;
  /** The same for single models. */
  readonly modelRestsUntil: Map<string, number>;
}

export class KeyRing {
  readonly #provider: string;
  readonly #keys: readonly Key[];
  readonly #clock: Clock;
  readonly #log: Log;
  /** Keys that were ever in it: no two have one number. */
  readonly #numbered: number;
  /** Index of the key whose turn it is. */
  #turn = 0;

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
      return {
        key: secret(text),
        credential: `${provider}#${numbered}`,
        restsUntil: Number.NEGATIVE_INFINITY,
        modelRestsUntil: new Map(),
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

  /** The next key that does not rest for this model and is not in `except`; else when the first resting one wakes (0: none rests). */
  take(model: string, except?: ReadonlySet<string>): { key: Secret; credential: string } | { retryAfterMs: number } {
    const now = this.#clock.monotonic();
    let soonest = Number.POSITIVE_INFINITY;
    for (let step = 0; step < this.#keys.length; step++) {
      const index = (this.#turn + step) % this.#keys.length;
      const key = this.#keys[index]!;
      const wakesAt = Math.max(key.restsUntil, key.modelRestsUntil.get(model) ?? Number.NEGATIVE_INFINITY);
      if (wakesAt > now) soonest = Math.min(soonest, wakesAt);
      else if (except === undefined || !except.has(key.credential)) {
        this.#turn = (index + 1) % this.#keys.length;
        return key;
      }
    }
    return { retryAfterMs: soonest === Number.POSITIVE_INFINITY ? 0 : soonest - now };
  }

  /** One key by its credential, and for how long it still rests for this model, or for all. */
  named(credential: string, model: string | undefined): { key: Secret; restsMs: number } | undefined {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined) return undefined;
    const ofModel = model === undefined ? undefined : key.modelRestsUntil.get(model);
    const wakesAt = Math.max(key.restsUntil, ofModel ?? Number.NEGATIVE_INFINITY);
    return { key: key.key, restsMs: Math.max(0, wakesAt - this.#clock.monotonic()) };
  }

  /** Rests a key for one model, or for all of them. A rest is never shortened by a later, shorter one. */
  rest(credential: string, model: string | undefined, forMs: number, reason: string): void {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined || !(forMs > 0)) return;
    const now = this.#clock.monotonic();
    const fields = { credential, model, forMs, reason };
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

/** Drops what has woken; if that is not enough, the oldest entry. */
function forgetRested(modelRestsUntil: Map<string, number>, now: number): void {
  for (const [model, until] of modelRestsUntil) if (until <= now) modelRestsUntil.delete(model);
  if (modelRestsUntil.size < restingModelsLimit) return;
  for (const model of modelRestsUntil.keys()) {
    modelRestsUntil.delete(model);
    return;
  }
}
