/** The demands of one request on its caller's limits. Pure. */
import type { Call } from '../common/domain/calls.ts';
import type { Limits } from '../common/domain/plans.ts';
import type { Demand } from './limiter.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

export interface DemandOptions {
  /** Upper limit of the output tokens that are reserved for one answer. */
  readonly reservedOutputTokens: number;
  /** How long a slot is kept if its request never releases it. */
  readonly slotLifetimeMs: number;
  /** The account: all buckets of a request belong to it. */
  readonly group: string;
}

/**
 * A demand for each limit of the plan; all keys of the account share its buckets. `call` is undefined on endpoints
 * without a model: those count as requests and use no tokens.
 */
export function demandsOf(subject: string, limits: Limits, call: Call | undefined, options: DemandOptions): Demand[] {
  const { rpm, rpd, tpm, concurrency } = limits;
  const { slotLifetimeMs, group } = options;
  const demands: Demand[] = [];
  if (rpm !== undefined) demands.push({ subject, group, dimension: 'rpm', limit: rpm, periodMs: minuteMs, units: 1 });
  if (rpd !== undefined) demands.push({ subject, group, dimension: 'rpd', limit: rpd, periodMs: dayMs, units: 1 });
  if (tpm !== undefined && call?.billable === true) {
    // An upper estimate: the prompt, and as much output as the client allows, up to `reservedOutputTokens`, per answer.
    const { reservedOutputTokens } = options;
    const output = Math.min(call.maxOutputTokens ?? reservedOutputTokens, reservedOutputTokens);
    const units = Math.ceil((call.inputTokens + output) * call.choices);
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
