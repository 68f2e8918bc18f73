/** One answer of the API; a skeleton or an error until it is there. */
import { Skeleton } from '@mantine/core';
import { keepPreviousData, type QueryKey, queryOptions, type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { get, type Query } from '../../../api/client.ts';
import { ErrorState } from '../../../parts/states.tsx';

/** Key of an answer, for those who make it old: the path alone means every question to it. */
export const answerKey = (path: string): QueryKey => ['operator', path];

/** The query behind `useAnswer`, for code that loads an answer beforehand. */
export const answerQuery = <T,>(path: string, query: Query = {}) =>
  queryOptions({
    queryKey: [...answerKey(path), query],
    queryFn: ({ signal }) => get<T>(path, query, signal),
  });

export function useAnswer<T>(
  path: string,
  query: Query = {},
  refetchMs: number | false = false,
  enabled = true,
): UseQueryResult<T> {
  return useQuery({
    ...answerQuery<T>(path, query),
    placeholderData: keepPreviousData,
    refetchInterval: refetchMs,
    enabled,
  });
}

interface LoadedProps<T> {
  readonly of: UseQueryResult<T>;
  /** Height of the content to come. */
  readonly height?: number;
  readonly children: (data: T) => ReactNode;
}

export function Loaded<T>({ of, height = 160, children }: LoadedProps<T>) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.isError) return <ErrorState error={of.error} onRetry={() => void of.refetch()} />;
  return <Skeleton height={height} radius="md" aria-busy />;
}
