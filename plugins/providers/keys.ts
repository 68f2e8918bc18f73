/** The keys of one provider: used in turn, in cooldown when the vendor asks for it, disabled by an operator. */

import type { UpstreamNetwork } from '../../core/contract/exchange.ts';
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import { type Secret, secret } from '../../core/contract/secret.ts';
import type { UpstreamView } from '../common/domain/admin/upstreams.ts';
import type { KeyPreference, Providers } from '../common/domain/upstreams.ts';
import { affinity, seedOf } from '../common/kit/rendezvous.ts';
import { digestOf } from './switches.ts';

/** Limit of models in cooldown per key; a catalogue is far smaller. */
const coolingModelsLimit = 1_000;

interface Key {
  readonly key: Secret;
  /** `openai#1`. */
  readonly credential: string;
  /** A stable name. */
  readonly digest: string;
  /** Made from the digest, so that every process assigns the same sessions to the key. */
  readonly seed: number;
  /** Monotonic time until which the key cools down for every model. */
  cooldownUntil: number;
  /** The same for single models. */
  readonly modelCooldownUntil: Map<string, number>;
  /** Reason of the last cooldown. */
  reason: string | undefined;
  /** Disabled by an operator. */
  isDisabled: boolean;
}

/** `network`: how the vendor is reached with this key; absent: directly. */
interface AcquiredKey {
  readonly key: Secret;
  readonly credential: string;
  readonly network?: UpstreamNetwork | undefined;
}

type NamedKey = NonNullable<ReturnType<Providers['findKey']>>;

/** A key as operators see it. */
export type KeyState = UpstreamView['keys'][number];

export class KeyRing {
  readonly #provider: string;
  readonly #keys: readonly Key[];
  readonly #clock: Clock;
  readonly #log: Log;
  /** Count of all keys ever added, so that numbers are unique. */
  readonly #numbered: number;
  /** Index of the next key in turn. */
  #turn = 0;
  /** Whether an operator has disabled the whole provider. */
  isDisabled = false;

  /** By credential; of keys that reach the vendor directly, and of those alone, there is none. */
  readonly #networks: ReadonlyMap<string, UpstreamNetwork> | undefined;

  /**
   * `earlier`: the ring that this one replaces. Keys that stay keep their names and cooldowns. `networks`: by the place of the
   * key.
   */
  constructor(
    provider: string,
    keys: readonly string[],
    clock: Clock,
    log: Log,
    earlier?: KeyRing,
    networks?: readonly (UpstreamNetwork | undefined)[],
  ) {
    this.#provider = provider;
    this.#clock = clock;
    this.#log = log;
    let numbered = earlier === undefined ? 0 : earlier.#numbered;
    const staying = new Map((earlier === undefined ? [] : earlier.#keys).map((key) => [key.key.reveal(), key]));
    this.#keys = keys.map((text) => {
      const stays = staying.get(text);
      // A key that is configured twice counts as two keys with their own cooldowns.
      if (stays !== undefined && staying.delete(text)) return stays;
      numbered += 1;
      const digest = digestOf(provider, text);
      return {
        key: secret(text),
        credential: `${provider}#${numbered}`,
        digest,
        seed: seedOf(digest),
        cooldownUntil: Number.NEGATIVE_INFINITY,
        modelCooldownUntil: new Map(),
        reason: undefined,
        isDisabled: false,
      };
    });
    this.#numbered = numbered;
    this.#networks = networks && networksByCredential(this.#keys, networks);
  }

  /** The ring that replaces this one. */
  withKeys(keys: readonly string[], networks?: readonly (UpstreamNetwork | undefined)[]): KeyRing {
    return new KeyRing(this.#provider, keys, this.#clock, this.#log, this, networks);
  }

  get credentials(): readonly string[] {
    return this.#keys.map((key) => key.credential);
  }

  /** The name of the key with this text. */
  credentialOf(text: string): string | undefined {
    return this.#keys.find((key) => key.key.reveal() === text)?.credential;
  }

  /** Disables the provider or its keys, by name or digest; enables all others. */
  applyDisabled(off: ReadonlySet<string>): void {
    this.isDisabled = off.has(this.#provider);
    for (const key of this.#keys) key.isDisabled = off.has(key.digest);
  }

  /** The stable name of a key; undefined: no such credential. */
  digestOf(credential: string): string | undefined {
    return this.#keys.find((key) => key.credential === credential)?.digest;
  }

  /** Ends all cooldowns. */
  clearCooldown(): void {
    for (const key of this.#keys) {
      key.cooldownUntil = Number.NEGATIVE_INFINITY;
      key.modelCooldownUntil.clear();
    }
  }

  states(): KeyState[] {
    const now = this.#clock.monotonic();
    return this.#keys.map(
      ({ credential, isDisabled, cooldownUntil: keyCooldownUntil, modelCooldownUntil: modelCooldowns, reason }) => ({
        credential,
        disabled: isDisabled,
        restsMs: Math.max(0, keyCooldownUntil - now),
        modelRests: [...modelCooldowns]
          .filter(([, until]) => until > now)
          .map(([model, until]) => ({ model, restsMs: until - now })),
        reason,
      }),
    );
  }

  /**
   * A key that is not cooling down for this model and not in `except`: the preferred one, otherwise the next in turn.
   * If there is none: the time until the first cooldown ends (0: no key cools down).
   */
  take(
    model: string,
    except?: ReadonlySet<string>,
    preference?: KeyPreference,
  ): AcquiredKey | { retryAfterMs: number } {
    const taken = this.#take(model, except, preference);
    if (this.#networks === undefined || !('key' in taken)) return taken;
    return { key: taken.key, credential: taken.credential, network: this.#networks.get(taken.credential) };
  }

  #take(
    model: string,
    except: ReadonlySet<string> | undefined,
    preference: KeyPreference | undefined,
  ): Key | { retryAfterMs: number } {
    if (this.isDisabled) return { retryAfterMs: 0 };
    const now = this.#clock.monotonic();
    const preferred = preference === undefined ? undefined : this.#preferred(model, except, preference, now);
    if (preferred !== undefined) return preferred;
    let soonest = Number.POSITIVE_INFINITY;
    for (let step = 0; step < this.#keys.length; step++) {
      const index = (this.#turn + step) % this.#keys.length;
      const key = this.#keys[index]!;
      if (key.isDisabled) continue;
      const cooldownEndsAt = cooldownEnd(key, model);
      if (cooldownEndsAt > now) soonest = Math.min(soonest, cooldownEndsAt);
      else if (except === undefined || !except.has(key.credential)) {
        this.#turn = (index + 1) % this.#keys.length;
        return key;
      }
    }
    return { retryAfterMs: soonest === Number.POSITIVE_INFINITY ? 0 : soonest - now };
  }

  /** Among usable keys the preferred credential, otherwise the key of the session; undefined: no preference. */
  #preferred(
    model: string,
    except: ReadonlySet<string> | undefined,
    { credential, session }: KeyPreference,
    now: number,
  ): Key | undefined {
    let nearest: Key | undefined;
    let highest = 0;
    for (const key of this.#keys) {
      if (key.isDisabled || cooldownEnd(key, model) > now || except?.has(key.credential) === true) continue;
      if (key.credential === credential) return key;
      const score = session === undefined ? 0 : affinity(session, key.seed);
      if (score <= highest) continue;
      highest = score;
      nearest = key;
    }
    return nearest;
  }

  /** One key by its credential, and its remaining cooldown for this model, or for all. */
  findKey(credential: string, model: string | undefined): NamedKey | undefined {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined) return undefined;
    const cooldownEndsAt = model === undefined ? key.cooldownUntil : cooldownEnd(key, model);
    const restsMs = Math.max(0, cooldownEndsAt - this.#clock.monotonic());
    const network = this.#networks?.get(credential);
    return {
      key: key.key,
      restsMs,
      ...(this.isDisabled || key.isDisabled ? { disabled: true } : {}),
      ...(network === undefined ? {} : { network }),
    };
  }

  /** Starts a cooldown of a key for one model, or for all. A later, shorter cooldown does not end it earlier. */
  coolDown(credential: string, model: string | undefined, forMs: number, reason: string, about: object = {}): void {
    const key = this.#keys.find((candidate) => candidate.credential === credential);
    if (key === undefined || !(forMs > 0)) return;
    const now = this.#clock.monotonic();
    const fields = { ...about, credential, model, forMs, reason };
    key.reason = reason;
    if (model === undefined) {
      if (key.cooldownUntil <= now) this.#log.warn(fields, 'an upstream key cools down for all models');
      key.cooldownUntil = Math.max(key.cooldownUntil, now + forMs);
      return;
    }
    const until = key.modelCooldownUntil.get(model) ?? Number.NEGATIVE_INFINITY;
    if (until <= now) this.#log.info(fields, 'an upstream key cools down for one model');
    if (key.modelCooldownUntil.size >= coolingModelsLimit) dropEndedCooldowns(key.modelCooldownUntil, now);
    key.modelCooldownUntil.set(model, Math.max(until, now + forMs));
  }
}

function networksByCredential(
  keys: readonly Key[],
  networks: readonly (UpstreamNetwork | undefined)[],
): Map<string, UpstreamNetwork> {
  const found = new Map<string, UpstreamNetwork>();
  keys.forEach(({ credential }, index) => {
    const network = networks[index];
    if (network !== undefined) found.set(credential, network);
  });
  return found;
}

/** Monotonic time until which a key cools down for this model. */
function cooldownEnd(key: Key, model: string): number {
  const ofModel = key.modelCooldownUntil.size === 0 ? undefined : key.modelCooldownUntil.get(model);
  return ofModel === undefined ? key.cooldownUntil : Math.max(key.cooldownUntil, ofModel);
}

/** Drops ended cooldowns; if there are none, the oldest entry. */
function dropEndedCooldowns(modelCooldowns: Map<string, number>, now: number): void {
  for (const [model, until] of modelCooldowns) if (until <= now) modelCooldowns.delete(model);
  if (modelCooldowns.size < coolingModelsLimit) return;
  for (const model of modelCooldowns.keys()) {
    modelCooldowns.delete(model);
    return;
  }
}
