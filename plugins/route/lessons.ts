/** What an attempt leaves behind: its row, what it consumed, and what it taught of its target. */
import type { Exchange, Host } from '../../core/contract.ts';
import { type Attempt, type Provider, usageReport } from '../../core/vocabulary.ts';
import type { Berth } from './berth.ts';
import type { Candidate } from './candidates.ts';
import type { RouteConfig } from './config.ts';
import type { HealthBook, TargetHealth } from './health.ts';

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

/** A failed attempt may have been metered: what it cost is told apart from what the next one will. */
export function noteConsumed(exchange: Exchange, attempt: Attempt): void {
  const report = exchange.find(usageReport);
  const usage = report?.usage;
  if (report !== undefined && usage !== undefined && Object.keys(usage).length > 0)
    attempt.consumed = { usage, estimated: report.estimated };
}

/** Its answer took as long as the attempt says. */
export function noteTime(
  book: HealthBook,
  { health, provider }: Candidate,
  { credential, durationMs }: Attempt,
  streamed: boolean,
): void {
  health.figures.noteAnswer(durationMs!, streamed);
  if (hasSeveralKeys(provider)) book.ofKey(health, credential).noteAnswer(durationMs!, streamed);
}

/** The circuit counts it; what the attempt held is given back. */
export function countFailure(
  { clock, random, log }: Pick<Host, 'clock' | 'random' | 'log'>,
  { failures, share, open: openMs, max_open: maxOpenMs }: RouteConfig['breaker'],
  berth: Berth,
  { provider, model: name, breaker }: TargetHealth,
): void {
  const now = clock.monotonic();
  if (berth.failed(now, { failures, share, openMs, maxOpenMs }, random))
    log.warn({ provider, model: name, forMs: breaker.opensForMs(now) }, 'a target fails and is passed over');
}

export const hasSeveralKeys = ({ keyCount }: Provider) => keyCount !== undefined && keyCount > 1;
