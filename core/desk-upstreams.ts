/** The desk of upstreams: what state providers, their keys and their models are in, the switches, and trials. Types alone. */
import { type Answer, defineService, type UpstreamRequest } from './contract.ts';

export interface UpstreamView {
  readonly provider: string;
  readonly protocols: Readonly<Record<string, string>>;
  readonly disabled: boolean;
  readonly keys: readonly {
    readonly credential: string;
    readonly disabled: boolean;
    /** Milliseconds it still rests for every model, and for single ones; why it was put to rest last. */
    readonly restsMs: number;
    readonly modelRests: readonly { readonly model: string; readonly restsMs: number }[];
    readonly reason: string | undefined;
  }[];
  /** How many requests it takes at once, has and keeps waiting, in this process; absent: no bound is set. */
  readonly room?: UpstreamRoom;
  /** How its models do, as far as they were asked for in this process; absent: nobody watches. */
  readonly targets?: readonly TargetView[];
}
export interface UpstreamRoom {
  readonly limit: number;
  readonly inFlight: number;
  readonly queue: number;
  readonly waiting: number;
}
/** `open`: it fails and is passed over; `half_open`: one request may try it, or does. */
export type CircuitState = 'closed' | 'open' | 'half_open';
/** A provider's model in the traffic of this process. Times are moving averages; undefined: nothing was measured. */
export interface TargetView {
  /** The provider's name of it. */
  readonly model: string;
  readonly circuit: CircuitState;
  /** How long it stays open; 0 when it is not. */
  readonly opensForMs: number;
  readonly inFlight: number;
  /** Of the latest requests, at most 32: how many there were, and how many failed by the target's fault. */
  readonly recent: number;
  readonly failed: number;
  /** Until the first byte of streamed answers, and until the others were whole. */
  readonly firstByteMs: number | undefined;
  readonly wholeMs: number | undefined;
  /** The same by key, where the provider has several. */
  readonly keys: readonly {
    readonly credential: string;
    /** Moving share of attempts that were answered. */
    readonly answered: number;
    readonly firstByteMs: number | undefined;
    readonly wholeMs: number | undefined;
  }[];
}
/** Whoever chooses targets tells how they do; the upstream desk shows it. */
export interface UpstreamHealth {
  targets(provider: string): readonly TargetView[];
  /** Closes the circuits of a provider. */
  reset(provider: string): void;
  /**
   * For whoever sends requests by itself: one to a provider's model begins. undefined: its circuit is open. `forced`: nobody
   * else can take it, so it is let through all the same, unless the operator wants it refused.
   */
  visit(provider: string, model: string, forced: boolean): UpstreamVisit | undefined;
}
/** A request under way. The first of these ends it, those after it say nothing. */
export interface UpstreamVisit {
  /** `tookMs`: until the answer was whole. */
  answered(tookMs: number): void;
  /** It failed by the target's fault. */
  failed(): void;
  /** It told nothing of its target. */
  dropped(): void;
}
export const upstreamHealth = defineService<UpstreamHealth>('upstream health');
export interface UpstreamDesk {
  list(): readonly UpstreamView[];
  /** Takes a provider, or one of its keys, out of use until it is enabled again; every process obeys within a second. */
  setDisabled(provider: string, credential: string | undefined, disabled: boolean): Promise<void>;
  /** Ends the rests of a provider's keys and closes its circuits. */
  wake(provider: string): void;
}
export const upstreamDesk = defineService<UpstreamDesk>('upstream desk');

/** One call that an operator makes to see whether an upstream answers: by this key, resting or disabled as it may be. */
export interface Probe {
  readonly provider: string;
  readonly credential: string;
  /** As the catalogue names it. */
  readonly model: string;
  /** One of those that the provider speaks; undefined: the first that serves. */
  readonly protocol?: string | undefined;
}
/** What a provider can be asked for. */
export interface ProbeChoice {
  readonly model: string;
  readonly upstreamModel: string;
  readonly protocols: readonly string[];
}
export interface ProbeResult {
  readonly ok: boolean;
  readonly protocol: string;
  readonly upstreamModel: string;
  /** Of the upstream's answer; undefined: none came. */
  readonly status: number | undefined;
  /** From the sending to the first byte of the answer's body (of a refusal: to its head), and to the end. */
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  /** What went wrong in the upstream's own words, without keys and addresses. */
  readonly error: string | undefined;
  /** The beginning of what it said. */
  readonly text: string;
  readonly usage: Readonly<Record<string, number>>;
}
/** Tries upstreams out. Such a call is the operator's: no account is charged for it, no key rests for it, no row is kept. */
export interface ProbeDesk {
  /** Models of the catalogue that this provider serves in a way that can be tried out; `not_found` for an unknown provider. */
  choices(provider: string): readonly ProbeChoice[];
  /** `send` puts the one request on the wire. Failures of the upstream are results; `not_found` names what is not configured. */
  probe(wanted: Probe, send: (request: UpstreamRequest) => Promise<Answer>): Promise<ProbeResult>;
}
export const probeDesk = defineService<ProbeDesk>('probe desk');
