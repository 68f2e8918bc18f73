/** Results of an attempt: its record, its usage, and its feedback to the health of its target. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { type Attempt, usageReport } from '../common/domain/calls.ts';
import type { Provider } from '../common/domain/upstreams.ts';
import type { AttemptSlot } from './attempt-slot.ts';
import type { Candidate } from './candidates.ts';
import type { RouteConfig } from './config.ts';
import type { HealthRegistry, TargetHealth } from './health.ts';

export function newAttempt(candidate: Candidate, credential: string, number: number, startedAt: number): Attempt {
  return {
    number,
    provider: candidate.provider.name,
    model: candidate.model,
    credential,
    protocol: candidate.protocol,
    startedAt,
    result: 'running',
    status: undefined,
    durationMs: undefined,
    error: undefined,
  };
}

/** Stores the usage of a failed attempt with it, apart from that of the next one. */
export function recordConsumed(exchange: Exchange, attempt: Attempt): void {
  const report = exchange.find(usageReport);
  const usage = report?.usage;
  if (report !== undefined && usage !== undefined && Object.keys(usage).length > 0)
    attempt.consumed = { usage, estimated: report.estimated };
}

/** Adds the duration of an answered attempt to the figures. */
export function recordDuration(
  registry: HealthRegistry,
  { health, provider }: Candidate,
  { credential, durationMs }: Attempt,
  streamed: boolean,
): void {
  health.figures.noteAnswer(durationMs!, streamed);
  if (hasSeveralKeys(provider)) registry.ofKey(health, credential).noteAnswer(durationMs!, streamed);
}

/** Counts a failure for the circuit and releases what the attempt held. */
export function recordFailure(
  { clock, random, log }: Pick<Host, 'clock' | 'random' | 'log'>,
  { failures, share, open: openMs, max_open: maxOpenMs }: RouteConfig['breaker'],
  slot: AttemptSlot,
  { provider, model: name, breaker }: TargetHealth,
): void {
  const now = clock.monotonic();
  if (slot.failed(now, { failures, share, openMs, maxOpenMs }, random))
    log.warn({ provider, model: name, forMs: breaker.opensForMs(now) }, 'a target fails and is passed over');
}

export const hasSeveralKeys = ({ keyCount }: Provider) => keyCount !== undefined && keyCount > 1;
