/** The models that can be called and one's keys, asked once for all parts that need them. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import type { KeyRow, ModelRow, Page, PublicModel, PublicStatus } from './types.ts';

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => get<{ readonly rows: readonly ModelRow[] }>('/models'),
  staleTime: 60_000,
});

/** Their public properties. */
export const publicModelsQuery = queryOptions({
  queryKey: ['public', 'models'],
  queryFn: () => get<{ readonly rows: readonly PublicModel[] }>('/public/models'),
  staleTime: 60_000,
});
export const statusQuery = queryOptions({
  queryKey: ['public', 'status'],
  queryFn: () => get<PublicStatus>('/public/status'),
  staleTime: 60_000,
  refetchInterval: 60_000,
});

/** One's own keys, for their names. */
export const keysQuery = queryOptions({
  queryKey: ['keys', 'all'],
  queryFn: () => get<Page<KeyRow>>('/keys', { limit: 500 }),
});

/** By name. */
export function useOwnProjects(): string[] {
  const rows = useQuery(keysQuery).data?.rows ?? [];
  return [...new Set(rows.flatMap(({ project }) => project ?? []))].sort((one, other) => one.localeCompare(other));
}
