/** What the route tells of its decisions: where a request could go and why so, who was passed over, how each attempt ended. */
import type { Exchange } from '../../core/contract.ts';
import { type Attempt, defineLine, defineOperatorLine, tell } from '../../core/vocabulary.ts';
import type { Candidate } from './candidates.ts';
import type { Order } from './choice.ts';

type Reason = Order['reason'];

const reasons: Readonly<Record<Reason, string>> = {
  listed: 'as listed',
  'by weight': 'drawn by weight',
  'by the session': 'by what names the session',
  'where the session was before': 'the session was there before',
  'the fastest': 'the soonest answer is expected there',
  pinned: 'it continues what is kept there',
};

const mostNames = 5;

const targetsLine = defineOperatorLine('route.targets', (names: string, more: number, reason: Reason | null) => {
  const why = reason === null ? '' : `; ${reasons[reason]}`;
  return `targets in this order: ${names}${more > 0 ? ` and ${more} more` : ''}${why}`;
});

/** `queue` is used up later, so its first names are taken down now. */
export function tellOrder(exchange: Exchange, at: number, queue: readonly Candidate[], reason: Reason): void {
  const first = queue.slice(0, mostNames);
  const more = queue.length - first.length;
  tell(exchange, at, targetsLine, () => {
    const names = first.map((candidate) => `${nameOf(candidate)} (${candidate.protocol})`);
    return [names.join(', '), more, first.length > 1 || reason !== 'listed' ? reason : null];
  });
}

const openLine = defineOperatorLine('route.open', (target: string, opensForMs: number) => {
  const why = opensForMs > 0 ? `it is left alone for ${secondsOf(opensForMs)} more` : 'another request is trying it';
  return `${target} was passed over: it has failed, and ${why}`;
});

/** `opensForMs` 0: one request is testing it. */
export function tellOpen(exchange: Exchange, at: number, candidate: Candidate, opensForMs: number): void {
  tell(exchange, at, openLine, [nameOf(candidate), opensForMs]);
}

const restingLine = defineOperatorLine('route.resting', (target: string, restsMs: number) => {
  const why = restsMs > 0 ? `its keys rest for ${secondsOf(restsMs)} more` : 'none of its keys is in use';
  return `${target} was passed over: ${why}`;
});

/** `restsMs` 0: no key is left that was not tried. */
export function tellResting(exchange: Exchange, at: number, candidate: Candidate, restsMs: number): void {
  if (restsMs === 0 && candidate.tried !== undefined) return;
  tell(exchange, at, restingLine, [nameOf(candidate), restsMs]);
}

const waitLine = defineLine('route.wait', (waitedMs: number, entered: boolean) =>
  entered ? `the request waited ${waitedMs} ms for a place` : `the request found no place within ${waitedMs} ms`,
);
const placeLine = defineOperatorLine(
  'route.place',
  (provider: string) => `the place was at ${provider}, which takes no more at once`,
);

export function tellWait(
  exchange: Exchange,
  at: number,
  candidate: Candidate,
  waitedMs: number,
  entered: boolean,
): void {
  tell(exchange, at, waitLine, [Math.round(waitedMs), entered]);
  tell(exchange, at, placeLine, [candidate.provider.name]);
}

const goesLine = defineOperatorLine(
  'route.goes',
  (number: number, provider: string, model: string, credential: string, error: string | null) =>
    `attempt ${number} goes to ${provider}/${model} by ${credential}${error === null ? '' : `; it failed: ${error}`}`,
);
const attemptLine = defineLine(
  'route.attempt',
  (number: number, result: Attempt['result'] | 'lost', status: number | null, durationMs: number | null) => {
    const told = status === null ? '' : ` with ${status}`;
    return `attempt ${number} ${ends[result]}${told}${durationMs === null ? '' : ` after ${durationMs} ms`}`;
  },
);

/** The attempt is read at the end, when its outcome stands in it. */
export function tellAttempt(exchange: Exchange, attempt: Attempt): void {
  const { startedAt: at, number } = attempt;
  tell(exchange, at, goesLine, () => [
    number,
    attempt.provider,
    attempt.model,
    attempt.credential,
    attempt.error ?? null,
  ]);
  tell(exchange, at, attemptLine, () => {
    const { status, durationMs, lost } = attempt;
    const result = lost === true ? 'lost' : attempt.result;
    return [number, result, status ?? null, durationMs === undefined ? null : Math.round(durationMs)];
  });
}

const nameOf = ({ provider, model }: Candidate) => `${provider.name}/${model}`;
const secondsOf = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`;

const hedgeLine = defineLine(
  'route.hedge',
  (second: number, first: number, afterMs: number) =>
    `attempt ${second} was begun beside attempt ${first}, which had been silent for ${afterMs} ms`,
);
const noHedgeLine = defineLine('route.no_hedge', (first: number, why: string) => {
  const reason =
    why === 'share' ? 'the share of requests that have one was used up' : 'nobody else was free to take it';
  return `no attempt was begun beside attempt ${first}, which was silent: ${reason}`;
});

export function tellHedge(exchange: Exchange, at: number, second: number, first: number, afterMs: number): void {
  tell(exchange, at, hedgeLine, [second, first, afterMs]);
}

/** `share`: too many have one; `nobody`: no other target or key has a place. */
export function tellNoHedge(exchange: Exchange, at: number, first: number, why: 'share' | 'nobody'): void {
  tell(exchange, at, noHedgeLine, [first, why]);
}

const ends: Readonly<Record<Attempt['result'] | 'lost', string>> = {
  running: 'had not ended',
  not_sent: 'could not be sent',
  refused: 'was refused',
  unknown: 'broke off and may have run',
  answered: 'was answered',
  lost: 'was given up, because another one came first,',
};
