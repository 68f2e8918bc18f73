/** Who is signed in, and what this gateway has. */
import { QueryClient, queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { ApiError, get, send } from './client.ts';
import { setSessionEnded } from './session-end.ts';
import type { Feature, Info, Me, Person } from './types.ts';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      // A refusal stays a refusal; a request that failed on the way may succeed.
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiError && error.status > 0 && error.status < 500),
      refetchOnWindowFocus: true,
    },
  },
});

/** A link names the account that it is about; without one a tab stays in the account that it has begun in. */
const named = new URLSearchParams(location.search).get('account');
if (named) sessionStorage.setItem('account', named);

async function whoAsks(): Promise<Me> {
  const me = await get<Me>('/me');
  sessionStorage.setItem('account', me.account?.id ?? '');
  return me;
}
export const meQuery = queryOptions({ queryKey: ['me'], queryFn: whoAsks, staleTime: 60_000 });
export const infoQuery = queryOptions({ queryKey: ['info'], queryFn: () => get<Info>('/info'), staleTime: 60_000 });

/** The person that is signed in. For pages inside the shell, which needs a session. */
export function useMe(): Me {
  return useSuspenseQuery(meQuery).data;
}
export function useInfo(): Info | undefined {
  return useQuery(infoQuery).data;
}

export function usePerson(): Person {
  return useMe().person!;
}

export const has = (me: Me, feature: Feature): boolean => me.features[feature];
export const isOperator = (me: Me): boolean => me.role === 'operator';
export const seesOperatorPages = (me: Me): boolean => me.role !== 'client';

/**
 * Ends the session, leaves its pages, then forgets everything that was read in it. In this order: a page that is still shown
 * would request dropped data, and be refused.
 */
export async function signOut(leave: () => Promise<void>): Promise<void> {
  const { url } = await send<{ readonly url?: string }>('POST', '/auth/sign-out', {});
  sessionStorage.clear();
  // The session at the provider ends too, on a page of the provider, which leads back.
  if (url !== undefined) return location.assign(url);
  await leave();
  queries.clear();
  setSessionEnded(false);
}
