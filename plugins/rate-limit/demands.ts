/** What one request asks of the caller's limits. Pure. */
import type { Call, Limits } from '../../core/vocabulary.ts';
import type { Demand } from './limiter.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

export interface DemandOptions {
  /** The most output tokens that are reserved for one answer. */
  readonly reservedOutputTokens: number;
  /** How long a slot outlives a request that never gave it back. */
  readonly slotLifetimeMs: number;
  /** The account: all buckets of one request stand with it. */
  readonly group: string;
}

/**
 * A demand for each limit of the plan; all keys of the account share its buckets. `call` is undefined on endpoints that
 * name no model: those count as requests and use no tokens.
 */
export function demandsOf(subject: string, limits: Limits, call: Call | undefined, options: DemandOptions): Demand[] {
  const { rpm, rpd, tpm, concurrency } = limits;
  const { slotLifetimeMs, group } = options;
  const demands: Demand[] = [];
  if (rpm !== undefined) demands.push({ subject, group, dimension: 'rpm', limit: rpm, periodMs: minuteMs, units: 1 });
  if (rpd !== undefined) demands.push({ subject, group, dimension: 'rpd', limit: rpd, periodMs: dayMs, units: 1 });
  if (tpm !== undefined && call?.billable === true) {
    const units = estimatedTokens(call, options.reservedOutputTokens);
    demands.push({ subject, group, dimension: 'tpm', limit: tpm, periodMs: minuteMs, units });
  }
  if (concurrency !== undefined)
    demands.push({
      subject,
      group,
      dimension: 'concurrency',
      limit: concurrency,
      periodMs: 0,
      units: 1,
      slotLifetimeMs,
    });
  return demands;
}

/** Upper-biased: the prompt's estimate, and as much output as the client allows, up to `reservedOutputTokens`, for each answer. */
export function estimatedTokens(call: Call, reservedOutputTokens: number): number {
  const output = Math.min(call.maxOutputTokens ?? reservedOutputTokens, reservedOutputTokens);
  return Math.ceil((call.inputTokens + output) * call.choices);
}
