/** What the route tells of its decisions: where a request could go, where it went, and how each attempt ended. */
import type { Exchange } from '../../core/contract.ts';
import { type Attempt, tell, tellOperator } from '../../core/vocabulary.ts';
import type { Candidate } from './candidates.ts';

/** `queue` is used up later, so its first names are taken down now. */
export function tellTargets(exchange: Exchange, at: number, queue: readonly Candidate[]): void {
  const first = queue.slice(0, 5);
  const more = queue.length - first.length;
  tellOperator(exchange, at, 'route', () => {
    const names = first.map(({ provider, model, protocol }) => `${provider.name}/${model} (${protocol})`);
    return `targets in this order: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  });
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
