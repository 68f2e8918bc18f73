/** The console's contract: the services that show, disable and probe providers, their keys and their models. Types alone. */

import { defineService, type UpstreamRequest } from '../../../../core/contract/contract.ts';
import type { Answer } from '../../../../core/contract/message.ts';

export interface UpstreamView {
  readonly provider: string;
  readonly protocols: Readonly<Record<string, string>>;
  readonly disabled: boolean;
  readonly keys: readonly {
    readonly credential: string;
    readonly disabled: boolean;
    /** Remaining cooldown in milliseconds for all models, and for single ones; the last one's reason. */
    readonly restsMs: number;
    readonly modelRests: readonly { readonly model: string; readonly restsMs: number }[];
    readonly reason: string | undefined;
  }[];
  /** How many requests it takes at once, has and keeps waiting, in this process; absent: no bound is set. */
  readonly room?: UpstreamCapacity;
  /** How its models do, as far as they were asked for in this process; absent: not measured. */
  readonly targets?: readonly TargetView[];
}
export interface UpstreamCapacity {
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
  /** How many of the latest requests (at most 32) there were, and how many failed by the target's fault. */
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
/** Health of targets as the router measures it. */
export interface UpstreamHealth {
  targets(provider: string): readonly TargetView[];
  /** Closes the circuits of a provider. */
  reset(provider: string): void;
  /**
   * Starts a request to a provider's model that the router does not send. undefined: its circuit is open. `forced`: no other
   * target is left, so it may be sent all the same, unless the operator has chosen otherwise.
   */
  beginBackgroundCall(provider: string, model: string, forced: boolean): BackgroundCall | undefined;
}
/** A running request. The first call ends it; later ones have no effect. */
export interface BackgroundCall {
  /** `tookMs`: until the answer was whole. */
  answered(tookMs: number): void;
  /** It failed by the target's fault. */
  failed(): void;
  /** It says nothing about its target. */
  dropped(): void;
}
export const upstreamHealth = defineService<UpstreamHealth>('upstream health');
export interface UpstreamAdmin {
  list(): readonly UpstreamView[];
  /** Takes a provider, or one of its keys, out of use until it is enabled again; in effect in every process within a second. */
  setDisabled(provider: string, credential: string | undefined, disabled: boolean): Promise<void>;
  /** Clears the cooldowns of a provider's keys and closes its circuits. */
  clearCooldown(provider: string): void;
  /** When the certificates expire that the settings of vendors name. */
  certificates(): readonly CertificateView[];
}
export interface CertificateView {
  readonly provider: string;
  /** `cert`: the gateway's own; `ca`: trusted for this vendor. */
  readonly use: 'cert' | 'ca';
  /** When the first certificate of this use expires. */
  readonly expiresAt: number;
}
export const upstreamAdmin = defineService<UpstreamAdmin>('upstream admin');

/** A probe of an upstream by this key, even if it is in cooldown or disabled. */
export interface Probe {
  readonly provider: string;
  readonly credential: string;
  /** As the catalogue names it. */
  readonly model: string;
  /** One of those that the provider speaks; undefined: the first that serves. */
  readonly protocol?: string | undefined;
}
/** A model that can be probed at a provider. */
export interface ProbeChoice {
  readonly model: string;
  readonly upstreamModel: string;
  readonly protocols: readonly string[];
}
export interface ProbeResult {
  readonly ok: boolean;
  readonly protocol: string;
  readonly upstreamModel: string;
  /** Status of the upstream's answer; undefined: none came. */
  readonly status: number | undefined;
  /** From the sending to the first byte of the answer's body (of a refusal: to its head), and to the end. */
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  /** The upstream's error message, without keys and addresses. */
  readonly error: string | undefined;
  /** The beginning of its answer. */
  readonly text: string;
  readonly usage: Readonly<Record<string, number>>;
}
/** Probes upstreams. No account is charged, no key gets a cooldown, and no row is written. */
export interface UpstreamProbes {
  /** Models of the catalogue that this provider serves in a way that can be probed; `not_found` for an unknown provider. */
  choices(provider: string): readonly ProbeChoice[];
  /** `send` puts the one request on the wire. Failures of the upstream are results; `not_found` names what is not configured. */
  probe(wanted: Probe, send: (request: UpstreamRequest) => Promise<Answer>): Promise<ProbeResult>;
}
export const upstreamProbes = defineService<UpstreamProbes>('upstream probes');
