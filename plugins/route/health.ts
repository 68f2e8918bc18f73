/** What the traffic of this process tells of targets and their keys: moving figures and a breaker for each, within limits. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/contract.ts';
import type { TargetView, UpstreamHealth } from '../../core/desk.ts';
import { seedOf } from '../../core/rendezvous.ts';
import type { ModelTarget } from '../../core/vocabulary.ts';
import { Breaker } from './breaker.ts';

/** Targets that are remembered; the one that was met first is forgotten first. Catalogues are far smaller. */
const maxTargets = 5_000;
/** Keys, by the model they were used for; those not used for longest are forgotten. */
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
  inFlight = 0;

  constructor(provider: string, model: string) {
    this.provider = provider;
    this.model = model;
    this.seed = seedOf(`${provider}/${model}`);
  }
}

interface KeyHealth {
  readonly credential: string;
  readonly provider: string;
  readonly model: string;
  readonly figures: Figures;
}

export class HealthBook implements UpstreamHealth {
  readonly #clock: Clock;
  readonly #targets = new Map<string, TargetHealth>();
  /** The way without making a name: targets are the catalogue's own objects until it changes. */
  readonly #byTarget = new WeakMap<ModelTarget, TargetHealth>();
  readonly #keys = new LRUCache<string, KeyHealth>({ max: maxKeys });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same for all models that name this provider's model. */
  of(target: ModelTarget): TargetHealth {
    const known = this.#byTarget.get(target);
    if (known !== undefined) return known;
    const health = this.#named(target);
    this.#byTarget.set(target, health);
    return health;
  }

  /** Names of providers hold no slash, so the pair is one text. */
  #named({ provider, model }: ModelTarget): TargetHealth {
    const name = `${provider}/${model}`;
    let health = this.#targets.get(name);
    if (health === undefined) {
      health = new TargetHealth(provider, model);
      for (const oldest of this.#targets.keys()) {
        if (this.#targets.size < maxTargets) break;
        this.#targets.delete(oldest);
      }
      this.#targets.set(name, health);
    }
    return health;
  }

  /** For providers with several keys. */
  ofKey({ provider, model }: TargetHealth, credential: string): Figures {
    const name = `${credential}/${model}`;
    let known = this.#keys.get(name);
    if (known === undefined) {
      known = { credential, provider, model, figures: new Figures() };
      this.#keys.set(name, known);
    }
    return known.figures;
  }

  targets(provider: string): readonly TargetView[] {
    const now = this.#clock.monotonic();
    const all = [...this.#targets.values()].filter((target) => target.provider === provider);
    return all
      .map(({ model, breaker, figures, inFlight }) => ({
        model,
        circuit: breaker.state(now),
        opensForMs: breaker.opensForMs(now),
        inFlight,
        recent: breaker.count,
        failed: breaker.failedOf,
        ...timesOf(figures),
        keys: this.#keysOf(provider, model),
      }))
      .sort((one, other) => (one.model < other.model ? -1 : 1));
  }

  reset(provider: string): void {
    const now = this.#clock.monotonic();
    for (const target of this.#targets.values()) if (target.provider === provider) target.breaker.reset(now);
  }

  #keysOf(provider: string, model: string): TargetView['keys'] {
    return [...this.#keys.values()]
      .filter((key) => key.provider === provider && key.model === model)
      .map(({ credential, figures }) => ({ credential, answered: figures.answered, ...timesOf(figures) }))
      .sort((one, other) => (one.credential < other.credential ? -1 : 1));
  }
}

function timesOf({ firstByteMs, wholeMs }: Figures): Pick<TargetView, 'firstByteMs' | 'wholeMs'> {
  return {
    firstByteMs: Number.isNaN(firstByteMs) ? undefined : firstByteMs,
    wholeMs: Number.isNaN(wholeMs) ? undefined : wholeMs,
  };
}
