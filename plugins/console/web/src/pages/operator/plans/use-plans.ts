/** The plans on offer, kept for a while: several pages name them. */
import { useQuery } from '@tanstack/react-query';
import { get } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { answerKey } from '../parts/load.tsx';
import type { Plan } from '../types.ts';

export interface Plans {
  readonly default: string;
  readonly rows: readonly Plan[];
}

export function usePlans() {
  const enabled = has(useMe(), 'plans');
  return useQuery({
    queryKey: answerKey('/admin/plans'),
    queryFn: ({ signal }) => get<Plans>('/admin/plans', {}, signal),
    staleTime: 60_000,
    enabled,
  });
}
