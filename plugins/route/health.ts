/** Health of targets and their keys as observed in this process's traffic: moving averages and a breaker each, bounded. */
import type { Clock } from '../../core/contract/host-tools.ts';
import type { TargetView, UpstreamHealth } from '../common/domain/admin/upstreams.ts';
import type { ModelTarget } from '../common/domain/models.ts';
import { seedOf } from '../common/kit/rendezvous.ts';
import { Breaker } from './breaker.ts';

/** Targets remembered; the oldest is evicted first. Catalogues are far smaller. */
const maxTargets = 5_000;
/** Keys remembered, counted per model. */
const maxKeys = 10_000;

/** Weight of the latest measurement. */
const newestWeight = 1 / 8;

/** Moving averages; NaN: not measured yet. */
export class Figures {
  /** Until the first byte of streamed answers. */
  firstByteMs = Number.NaN;
  /** Until answers that are not streamed were complete. */
  wholeMs = Number.NaN;
  /** Share of attempts that were answered. */
  answered = 1;

  noteAnswer(tookMs: number, streamed: boolean): void {
    if (streamed) this.firstByteMs = movingAverage(this.firstByteMs, tookMs);
    else this.wholeMs = movingAverage(this.wholeMs, tookMs);
    this.answered += (1 - this.answered) * newestWeight;
  }

  noteFailure(): void {
    this.answered -= this.answered * newestWeight;
  }

  /** A request was given up after this time without an answer: a lower bound. */
  noteWait(waitedMs: number, streamed: boolean): void {
    if (streamed && waitedMs > this.firstByteMs) this.firstByteMs = movingAverage(this.firstByteMs, waitedMs);
    if (!streamed && waitedMs > this.wholeMs) this.wholeMs = movingAverage(this.wholeMs, waitedMs);
  }

  /** Expected time of a request; NaN: unknown. */
  expectedMs(streamed: boolean): number {
    const own = streamed ? this.firstByteMs : this.wholeMs;
    return Number.isNaN(own) ? (streamed ? this.wholeMs : this.firstByteMs) : own;
  }
}

function movingAverage(average: number, value: number): number {
  return Number.isNaN(average) ? value : average + (value - average) * newestWeight;
}

/** A provider's model. */
export class TargetHealth {
  readonly provider: string;
  readonly model: string;
  /** Seed of rendezvous hashing. */
  readonly seed: number;
  readonly breaker = new Breaker();
  readonly figures = new Figures();
  /** By credential, for providers with several keys. */
  readonly keys = new Map<string, Figures>();
  inFlight = 0;

  constructor(provider: string, model: string) {
    this.provider = provider;
    this.model = model;
    this.seed = seedOf(`${provider}/${model}`);
  }
}

/** A key's figures for one model. */
interface KeyHealth {
  readonly credential: string;
  readonly target: TargetHealth;
}

export class HealthRegistry implements Omit<UpstreamHealth, 'beginBackgroundCall'> {
  readonly #clock: Clock;
  readonly #providers = new Map<string, Map<string, TargetHealth>>();
  /** In order of first use. */
  readonly #targets = new Set<TargetHealth>();
  readonly #keys = new Set<KeyHealth>();
  /** Fast path: targets are the catalogue's own objects until it changes. */
  readonly #byTarget = new WeakMap<ModelTarget, TargetHealth>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Shared by all models that name this provider's model. */
  of(target: ModelTarget): TargetHealth {
    const known = this.#byTarget.get(target);
    if (known !== undefined) return known;
    const health = this.#models(target.provider).get(target.model) ?? this.#add(target);
    this.#byTarget.set(target, health);
    return health;
  }

  /** Figures of one key, for providers with several. */
  ofKey(target: TargetHealth, credential: string): Figures {
    const known = target.keys.get(credential);
    if (known !== undefined) return known;
    const [oldest] = this.#keys;
    if (oldest !== undefined && this.#keys.size >= maxKeys) {
      this.#keys.delete(oldest);
      oldest.target.keys.delete(oldest.credential);
    }
    const figures = new Figures();
    this.#keys.add({ credential, target });
    target.keys.set(credential, figures);
    return figures;
  }

  targets(provider: string): readonly TargetView[] {
    const now = this.#clock.monotonic();
    return [...(this.#providers.get(provider)?.values() ?? [])]
      .map(({ model, breaker, figures, inFlight, keys }) => ({
        model,
        circuit: breaker.state(now),
        opensForMs: breaker.opensForMs(now),
        inFlight,
        recent: breaker.count,
        failed: breaker.failedOf,
        ...timesOf(figures),
        keys: keysOf(keys),
      }))
      .sort((one, other) => (one.model < other.model ? -1 : 1));
  }

  reset(provider: string): void {
    const now = this.#clock.monotonic();
    for (const target of this.#providers.get(provider)?.values() ?? []) target.breaker.reset(now);
  }

  #models(provider: string): Map<string, TargetHealth> {
    let models = this.#providers.get(provider);
    if (models === undefined) {
      models = new Map();
      this.#providers.set(provider, models);
    }
    return models;
  }

  #add({ provider, model }: ModelTarget): TargetHealth {
    const [oldest] = this.#targets;
    if (oldest !== undefined && this.#targets.size >= maxTargets) this.#forget(oldest);
    const health = new TargetHealth(provider, model);
    this.#targets.add(health);
    this.#models(provider).set(model, health);
    return health;
  }

  #forget(target: TargetHealth): void {
    this.#targets.delete(target);
    const models = this.#models(target.provider);
    models.delete(target.model);
    if (models.size === 0) this.#providers.delete(target.provider);
  }
}

function keysOf(keys: ReadonlyMap<string, Figures>): TargetView['keys'] {
  return [...keys]
    .map(([credential, figures]) => ({ credential, answered: figures.answered, ...timesOf(figures) }))
    .sort((one, other) => (one.credential < other.credential ? -1 : 1));
}

function timesOf({ firstByteMs, wholeMs }: Figures): Pick<TargetView, 'firstByteMs' | 'wholeMs'> {
  return {
    firstByteMs: Number.isNaN(firstByteMs) ? undefined : firstByteMs,
    wholeMs: Number.isNaN(wholeMs) ? undefined : wholeMs,
  };
}
