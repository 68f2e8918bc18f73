/** After a session has begun: drops cached answers and opens the page that was asked for. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { meQuery, queries } from '../../api/session.ts';
import { setSessionEnded } from '../../api/session-end.ts';

/** Only addresses inside the console are followed. */
function safeNext(next: unknown): string {
  return typeof next === 'string' &&
    /^\/(?![/\\])/.test(next) &&
    (!next.startsWith('/sign-') || next.startsWith('/sign-up?join='))
    ? next
    : '/';
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
    if (next !== '/') return navigate({ href: `/console${next}` });
    // Operators come to run the gateway; their own account is a second thing.
    const me = await queries.ensureQueryData(meQuery);
    return navigate({ to: me.role === 'client' ? '/' : '/admin/overview' });
  };
}
