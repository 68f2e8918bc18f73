/** After a session has begun: drops cached answers and opens the page that was asked for. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { queries } from '../../api/session.ts';
import { setSessionEnded } from '../../api/session-end.ts';

/** Only addresses inside the console are followed. */
function safeNext(next: unknown): string {
  return typeof next === 'string' && /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-') ? next : '/';
}

export function useNext(): string {
  const { next } = useSearch({ strict: false }) as { next?: string };
  return safeNext(next);
}

export function useEntered(): () => Promise<void> {
  const navigate = useNavigate();
  const next = useNext();
  return async () => {
    setSessionEnded(false);
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'info' });
    await navigate({ href: `/console${next === '/' ? '' : next}` });
  };
}
