/** What the traffic of this process tells of targets and their keys: moving figures and a breaker for each, within limits. */
import type { Clock } from '../../core/contract.ts';
import type { TargetView, UpstreamHealth } from '../../core/desk.ts';
import { seedOf } from '../../core/rendezvous.ts';
import type { ModelTarget } from '../../core/vocabulary.ts';
import { Breaker } from './breaker.ts';

/** Targets that are remembered; the one that was met first is forgotten first. Catalogues are far smaller. */
const maxTargets = 5_000;
/** The same of keys, by the model they were used for. */
const maxKeys = 10_000;

/** The latest measurement counts this much. */
const newest = 1 / 8;

/** Moving averages; NaN: nothing was measured yet. */
export class Figures {
  /** Until the first byte of streamed answers. */
  firstByteMs = Number.NaN;
  /** Until the others were whole. */
  wholeMs = Number.NaN;
  /** Share of attempts that were answered. */
  answered = 1;

  noteAnswer(tookMs: number, streamed: boolean): void {
    if (streamed) this.firstByteMs = moved(this.firstByteMs, tookMs);
    else this.wholeMs = moved(this.wholeMs, tookMs);
    this.answered += (1 - this.answered) * newest;
  }

  noteFailure(): void {
    this.answered -= this.answered * newest;
  }

  /** Somebody has waited this long without an answer and gave up: it takes that long at least. */
  noteWait(waitedMs: number, streamed: boolean): void {
    if (streamed && waitedMs > this.firstByteMs) this.firstByteMs = moved(this.firstByteMs, waitedMs);
    if (!streamed && waitedMs > this.wholeMs) this.wholeMs = moved(this.wholeMs, waitedMs);
  }

  /** What a request has to expect; NaN: nobody knows. */
  expectedMs(streamed: boolean): number {
    const own = streamed ? this.firstByteMs : this.wholeMs;
    return Number.isNaN(own) ? (streamed ? this.wholeMs : this.firstByteMs) : own;
  }
}

function moved(average: number, value: number): number {
  return Number.isNaN(average) ? value : average + (value - average) * newest;
}

/** A provider's model. */
export class TargetHealth {
  readonly provider: string;
  readonly model: string;
  /** For rendezvous hashing. */
  readonly seed: number;
  readonly breaker = new Breaker();
  readonly figures = new Figures();
  /** By credential, where there are several. */
  readonly keys = new Map<string, Figures>();
  inFlight = 0;

  constructor(provider: string, model: string) {
    this.provider = provider;
    this.model = model;
    this.seed = seedOf(`${provider}/${model}`);
  }
}

/** One key's figures, for one model. */
interface KeyHealth {
  readonly credential: string;
  readonly target: TargetHealth;
}

export class HealthBook implements Omit<UpstreamHealth, 'visit'> {
  readonly #clock: Clock;
  readonly #providers = new Map<string, Map<string, TargetHealth>>();
  /** In the order in which they were met. */
  readonly #targets = new Set<TargetHealth>();
  readonly #keys = new Set<KeyHealth>();
  /** The short way: targets are the catalogue's own objects until it changes. */
  readonly #byTarget = new WeakMap<ModelTarget, TargetHealth>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same for all models that name this provider's model. */
  of(target: ModelTarget): TargetHealth {
    const known = this.#byTarget.get(target);
    if (known !== undefined) return known;
    const health = this.#models(target.provider).get(target.model) ?? this.#met(target);
    this.#byTarget.set(target, health);
    return health;
  }

  /** For providers with several keys. */
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

  #met({ provider, model }: ModelTarget): TargetHealth {
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
