/** Refetches shown data after a change. */
import type { QueryClient, QueryKey } from '@tanstack/react-query';

/**
 * Asks the queries under `queryKey` again. An answer that is still on its way may be older than the change: it is dropped.
 * Invalidating alone does so only for queries that have had an answer before; the first one of all would stay on the screen.
 */
export async function askAgain(queries: QueryClient, queryKey: QueryKey): Promise<void> {
  await queries.cancelQueries({ queryKey });
  await queries.invalidateQueries({ queryKey });
}
