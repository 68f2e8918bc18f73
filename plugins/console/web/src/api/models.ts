/** The models that can be called, asked once for all parts that need them. */
import { queryOptions } from '@tanstack/react-query';
import { get } from './client.ts';
import type { ModelRow } from './types.ts';

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => get<{ readonly rows: readonly ModelRow[] }>('/models'),
  staleTime: 60_000,
});
