/** The timeline events of routing: the order of targets and why, skipped targets, waits, attempts and hedges. */
import type { Exchange } from '../../core/contract/contract.ts';
import type { Attempt } from '../common/domain/calls.ts';
import type { InsteadReason } from '../common/domain/models.ts';
import { defineEvent, defineOperatorEvent, recordEvent } from '../common/domain/timeline.ts';
import type { Candidate } from './candidates.ts';

/** Why the first candidate is first, as shown to people. */
export type Reason =
  | 'listed'
  | 'takes the media'
  | 'by weight'
  | 'by the session'
  | 'where the session was before'
  | 'the fastest'
  | 'pinned';

const reasons: Readonly<Record<Reason, string>> = {
  listed: 'as listed',
  'takes the media': 'it takes the media of the request',
  'by weight': 'drawn by weight',
  'by the session': 'by what names the session',
  'where the session was before': 'the session was there before',
  'the fastest': 'the soonest answer is expected there',
  pinned: 'it continues an answer that is kept there',
};

/** Why no other attempt may follow one that may have run. */
export type Refused = 'setting' | 'effects' | 'share';

const mostNames = 5;

const targetsEvent = defineOperatorEvent('route.targets', (names: string, more: number, reason: Reason | null) => {
  const why = reason === null ? '' : `; ${reasons[reason]}`;
  return `targets in this order: ${names}${more > 0 ? ` and ${more} more` : ''}${why}`;
});

const againEvent = defineEvent(
  'route.again',
  (number: number) =>
    `attempt ${number} broke off and may have run: another attempt follows, and what attempt ${number} may have cost is written off`,
);
const finalEvent = defineEvent('route.final', (number: number, why: string) => {
  const reason = Object.hasOwn(refusedReasons, why) ? refusedReasons[why as Refused] : why;
  return `no attempt follows attempt ${number}, which broke off and may have run: ${reason}`;
});

const refusedReasons: Readonly<Record<Refused, string>> = {
  setting: 'the gateway is set up so',
  effects: 'more than an answer may have come of this call',
  share: 'what such attempts may cost in an hour is used up',
};

/** `refused` undefined: another attempt follows. */
export function recordAmbiguous(exchange: Exchange, at: number, number: number, refused: Refused | undefined): void {
  if (refused === undefined) recordEvent(exchange, at, againEvent, [number]);
  else recordEvent(exchange, at, finalEvent, [number, refused]);
}

const insteadEvent = defineEvent('route.instead', (requested: string, served: string, reason: InsteadReason) => {
  return `the call goes on with the model ${served}, at its price, as ${requested} ${insteadTexts[reason]}`;
});

const insteadTexts: Readonly<Record<InsteadReason, string>> = {
  context_length: 'is too small for the prompt',
  unavailable: 'could not answer',
  content_filter: 'refuses its content',
};

export function recordInstead(
  exchange: Exchange,
  at: number,
  requested: string,
  served: string,
  reason: InsteadReason,
): void {
  recordEvent(exchange, at, insteadEvent, [requested, served, reason]);
}

/** `queue` is consumed later. */
export function recordOrder(exchange: Exchange, at: number, queue: readonly Candidate[], reason: Reason): void {
  const shown = Math.min(queue.length, mostNames);
  let names = '';
  for (let index = 0; index < shown; index++) {
    const { provider, model, protocol } = queue[index]!;
    names += `${index === 0 ? '' : ', '}${provider.name}/${model} (${protocol})`;
  }
  const why = shown > 1 || reason !== 'listed' ? reason : null;
  recordEvent(exchange, at, targetsEvent, [names, queue.length - shown, why]);
}

const circuitOpenEvent = defineOperatorEvent('route.open', (target: string, opensForMs: number) => {
  const why = opensForMs > 0 ? `it is left alone for ${secondsOf(opensForMs)} more` : 'another request is trying it';
  return `${target} was passed over: it has failed, and ${why}`;
});

/** `opensForMs` 0: another request is testing the target. */
export function recordCircuitOpen(exchange: Exchange, at: number, candidate: Candidate, opensForMs: number): void {
  recordEvent(exchange, at, circuitOpenEvent, [nameOf(candidate), opensForMs]);
}

const cooldownEvent = defineOperatorEvent('route.resting', (target: string, restsMs: number) => {
  const why = restsMs > 0 ? `its keys rest for ${secondsOf(restsMs)} more` : 'none of its keys is in use';
  return `${target} was passed over: ${why}`;
});

/** `restsMs` 0: every key was tried already. */
export function recordCooldown(exchange: Exchange, at: number, candidate: Candidate, restsMs: number): void {
  if (restsMs === 0 && candidate.tried !== undefined) return;
  recordEvent(exchange, at, cooldownEvent, [nameOf(candidate), restsMs]);
}

const waitEvent = defineEvent('route.wait', (waitedMs: number, entered: boolean) =>
  entered ? `the request waited ${waitedMs} ms for a place` : `the request found no place within ${waitedMs} ms`,
);
const capacityEvent = defineOperatorEvent(
  'route.place',
  (provider: string) => `the place was at ${provider}, which takes no more at once`,
);

export function recordWait(
  exchange: Exchange,
  at: number,
  candidate: Candidate,
  waitedMs: number,
  entered: boolean,
): void {
  recordEvent(exchange, at, waitEvent, [Math.round(waitedMs), entered]);
  recordEvent(exchange, at, capacityEvent, [candidate.provider.name]);
}

const sentEvent = defineOperatorEvent(
  'route.goes',
  (number: number, provider: string, model: string, credential: string, error: string | null) =>
    `attempt ${number} goes to ${provider}/${model} by ${credential}${error === null ? '' : `; it failed: ${error}`}`,
);
const attemptEvent = defineEvent(
  'route.attempt',
  (number: number, result: Attempt['result'] | 'lost', status: number | null, durationMs: number | null) => {
    const statusText = status === null ? '' : ` with ${status}`;
    return `attempt ${number} ${ends[result]}${statusText}${durationMs === null ? '' : ` after ${durationMs} ms`}`;
  },
);

/** The attempt is read when the exchange ends, because its outcome is known only then. */
export function recordAttempt(exchange: Exchange, attempt: Attempt): void {
  const { startedAt: at, number } = attempt;
  recordEvent(exchange, at, sentEvent, () => [
    number,
    attempt.provider,
    attempt.model,
    attempt.credential,
    attempt.error ?? null,
  ]);
  recordEvent(exchange, at, attemptEvent, () => {
    const { status, durationMs, lost } = attempt;
    const result = lost === true ? 'lost' : attempt.result;
    return [number, result, status ?? null, durationMs === undefined ? null : Math.round(durationMs)];
  });
}

const nameOf = ({ provider, model }: Candidate) => `${provider.name}/${model}`;
const secondsOf = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`;

const hedgeEvent = defineEvent(
  'route.hedge',
  (second: number, first: number, afterMs: number) =>
    `attempt ${second} was begun beside attempt ${first}, which had been silent for ${afterMs} ms`,
);
const noHedgeEvent = defineEvent('route.no_hedge', (first: number, why: string) => {
  const reason =
    why === 'share' ? 'the share of requests that have one was used up' : 'no other target or key was free';
  return `no attempt was begun beside attempt ${first}, which was silent: ${reason}`;
});

export function recordHedge(exchange: Exchange, at: number, second: number, first: number, afterMs: number): void {
  recordEvent(exchange, at, hedgeEvent, [second, first, afterMs]);
}

/** `share`: the budget of hedges is used up; `capacity`: no other target or key is free. */
export function recordNoHedge(exchange: Exchange, at: number, first: number, why: 'share' | 'capacity'): void {
  recordEvent(exchange, at, noHedgeEvent, [first, why]);
}

const ends: Readonly<Record<Attempt['result'] | 'lost', string>> = {
  running: 'had not ended',
  not_sent: 'could not be sent',
  refused: 'was refused',
  unknown: 'broke off and may have run',
  answered: 'was answered',
  lost: 'was given up, because another one came first,',
};
