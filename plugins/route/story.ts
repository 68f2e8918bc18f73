/** What the route tells of its decisions: where a request could go and why so, who was passed over, how each attempt ended. */
import type { Exchange } from '../../core/contract.ts';
import { type Attempt, tell, tellOperator } from '../../core/vocabulary.ts';
import type { Candidate } from './candidates.ts';
import type { Order } from './choice.ts';

const reasons: Readonly<Record<Order['reason'], string>> = {
  listed: 'as listed',
  'by weight': 'drawn by weight',
  'by the session': 'by what names the session',
  'where the session was before': 'the session was there before',
  'the fastest': 'the soonest answer is expected there',
  pinned: 'it continues what is kept there',
};

/** `queue` is used up later, so its first names are taken down now. */
export function tellOrder(exchange: Exchange, at: number, queue: readonly Candidate[], reason: Order['reason']): void {
  const first = queue.slice(0, 5);
  const more = queue.length - first.length;
  tellOperator(exchange, at, 'route', () => {
    const names = first.map((candidate) => `${nameOf(candidate)} (${candidate.protocol})`);
    const why = first.length > 1 || reason !== 'listed' ? `; ${reasons[reason]}` : '';
    return `targets in this order: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}${why}`;
  });
}

/** `opensForMs` 0: one request is testing it. */
export function tellOpen(exchange: Exchange, at: number, candidate: Candidate, opensForMs: number): void {
  const why = opensForMs > 0 ? `it is left alone for ${secondsOf(opensForMs)} more` : 'another request is trying it';
  tellOperator(exchange, at, 'route', () => `${nameOf(candidate)} was passed over: it has failed, and ${why}`);
}

/** `restsMs` 0: no key is left that was not tried. */
export function tellResting(exchange: Exchange, at: number, candidate: Candidate, restsMs: number): void {
  if (restsMs === 0 && candidate.tried !== undefined) return;
  const why = restsMs > 0 ? `its keys rest for ${secondsOf(restsMs)} more` : 'none of its keys is in use';
  tellOperator(exchange, at, 'route', () => `${nameOf(candidate)} was passed over: ${why}`);
}

export function tellWait(
  exchange: Exchange,
  at: number,
  candidate: Candidate,
  waitedMs: number,
  entered: boolean,
): void {
  const waited = `${Math.round(waitedMs)} ms`;
  const end = entered ? `waited ${waited} for a place` : `found no place within ${waited}`;
  tell(exchange, at, 'route', () => `the request ${end}`);
  tellOperator(exchange, at, 'route', () => `the place was at ${candidate.provider.name}, which takes no more at once`);
}

/** The attempt is read at the end, when its outcome stands in it. */
export function tellAttempt(exchange: Exchange, attempt: Attempt): void {
  const { startedAt: at, number } = attempt;
  tellOperator(exchange, at, 'route', () => {
    const failure = attempt.error === undefined ? '' : `; it failed: ${attempt.error}`;
    return `attempt ${number} goes to ${attempt.provider}/${attempt.model} by ${attempt.credential}${failure}`;
  });
  tell(exchange, at, 'route', () => `attempt ${number} ${endOf(attempt)}`);
}

const nameOf = ({ provider, model }: Candidate) => `${provider.name}/${model}`;
const secondsOf = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`;

const ends: Readonly<Record<Attempt['result'], string>> = {
  running: 'had not ended',
  not_sent: 'could not be sent',
  refused: 'was refused',
  unknown: 'broke off and may have run',
  answered: 'was answered',
};

function endOf({ result, status, durationMs }: Attempt): string {
  const told = status === undefined ? '' : ` with ${status}`;
  return `${ends[result]}${told}${durationMs === undefined ? '' : ` after ${Math.round(durationMs)} ms`}`;
}
