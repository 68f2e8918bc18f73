/** What the route tells of its decisions: where a request could go, where it went, and how each attempt ended. */
import type { Exchange } from '../../core/contract.ts';
import { type Attempt, defineLine, defineOperatorLine, tell } from '../../core/vocabulary.ts';
import type { Candidate } from './candidates.ts';

const mostNames = 5;

const targetsLine = defineOperatorLine(
  'route.targets',
  (names: string, more: number) => `targets in this order: ${names}${more > 0 ? ` and ${more} more` : ''}`,
);

/** `queue` is used up later, so its first names are taken down now. */
export function tellTargets(exchange: Exchange, at: number, queue: readonly Candidate[]): void {
  const first = queue.slice(0, mostNames);
  const more = queue.length - first.length;
  tell(exchange, at, targetsLine, () => {
    const names = first.map(({ provider, model, protocol }) => `${provider.name}/${model} (${protocol})`);
    return [names.join(', '), more];
  });
}

const goesLine = defineOperatorLine(
  'route.goes',
  (number: number, provider: string, model: string, credential: string, error: string | null) =>
    `attempt ${number} goes to ${provider}/${model} by ${credential}${error === null ? '' : `; it failed: ${error}`}`,
);
const attemptLine = defineLine(
  'route.attempt',
  (number: number, result: Attempt['result'], status: number | null, durationMs: number | null) => {
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
    const { result, status, durationMs } = attempt;
    return [number, result, status ?? null, durationMs === undefined ? null : Math.round(durationMs)];
  });
}

const ends: Readonly<Record<Attempt['result'], string>> = {
  running: 'had not ended',
  not_sent: 'could not be sent',
  refused: 'was refused',
  unknown: 'broke off and may have run',
  answered: 'was answered',
};
