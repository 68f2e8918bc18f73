/** Results of an attempt: its record, its usage, and what they mean for its key, its target's health and the request. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { caller } from '../common/domain/accounts.ts';
import { type Attempt, usageReport, vendorBatch } from '../common/domain/calls.ts';
import { recordVendorWords } from '../common/domain/timeline.ts';
import { type AttemptSlot, unjudged } from './attempt-slot.ts';
import { type Candidate, hasSeveralKeys } from './candidates.ts';
import type { RouteConfig } from './config.ts';
import type { HealthRegistry, TargetHealth } from './health.ts';
import type { Tools } from './tools.ts';
import { type Failure, type Failures, isDeadline, type Verdict } from './verdict.ts';

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
    attempt.consumed = {
      usage,
      estimated: report.estimated,
      ...(report.refusedHere === true ? { refusedHere: true } : {}),
    };
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
  { clock, random }: Pick<Host, 'clock' | 'random'>,
  log: Exchange['log'],
  { failures, share, open: openMs, max_open: maxOpenMs }: RouteConfig['breaker'],
  slot: AttemptSlot,
  { provider, model: name, breaker }: TargetHealth,
): void {
  const now = clock.monotonic();
  if (slot.failed(now, { failures, share, openMs, maxOpenMs }, random))
    log.warn({ provider, model: name, forMs: breaker.opensForMs(now) }, 'a target fails and is passed over');
}

/** The request of the attempt. */
export interface Judging {
  readonly exchange: Exchange;
  readonly tools: Tools;
  readonly config: RouteConfig;
  readonly failures: Failures;
  readonly streamed: boolean;
}

export function applyVerdict(
  judging: Judging,
  verdict: Verdict,
  candidate: Candidate,
  attempt: Attempt,
  slot: AttemptSlot,
): Failure {
  const { exchange, tools, config, failures, streamed } = judging;
  const { host } = tools;
  const { result, status, error, number, credential } = attempt;
  if (exchange.find(vendorBatch) !== undefined) {
    recordVendorWords(exchange, host.clock.now(), verdict.vendor, number);
    return unjudged(slot, verdict);
  }
  const fields = {
    ...{ number, provider: attempt.provider, credential, model: candidate.model, result, status, error },
    // It may repeat what was sent.
    ...(exchange.find(caller)?.retention === 'none' ? {} : { vendor_message: verdict.vendor?.message }),
    ...{ vendor_request_id: verdict.vendor?.requestId },
  };
  exchange.log.info(fields, 'an upstream attempt failed');
  if (verdict.vendor !== undefined) recordVendorWords(exchange, host.clock.now(), verdict.vendor, number);
  coolDown(judging, verdict, candidate, attempt);
  const { signal } = exchange;
  const isClientGone = signal.aborted && !isDeadline(signal.reason);
  const { figures } = candidate.health;
  if (isClientGone) figures.noteWait(attempt.durationMs!, streamed);
  else if (hasSeveralKeys(candidate.provider)) tools.registry.ofKey(candidate.health, credential).noteFailure();
  if (verdict.isFault && !isClientGone) {
    figures.noteFailure();
    recordFailure(host, exchange.log, config.breaker, slot, candidate.health);
  } else slot.dropped();
  if (signal.aborted) {
    const reported = signal.reason instanceof GatewayError ? signal.reason : verdict.error;
    return { next: 'nowhere', error: reported, isFault: false, isAmbiguous: false };
  }
  failures.note(verdict);
  return verdict;
}

function coolDown(
  { exchange, tools, failures }: Judging,
  { cooldown, errorPrecedence }: Verdict,
  { model: name }: Candidate,
  { credential, error }: Attempt,
): void {
  if (cooldown === undefined) return;
  const { forMs, allModels } = cooldown;
  tools.providers.coolDown(credential, allModels ? undefined : name, forMs, error ?? 'refused', exchange.log.fields());
  if (errorPrecedence > 0) failures.noteWait(forMs);
}
