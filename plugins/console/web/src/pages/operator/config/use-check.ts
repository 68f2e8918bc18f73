/** The gateway's check of edited files. */
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query';
import { send } from '../../../api/client.ts';
import type { ConfigCheck } from '../sale-types.ts';
import type { Draft } from './drafts.ts';

const checkQuery = (name: string, text: string, enabled: boolean) => ({
  queryKey: ['config check', name, text],
  queryFn: () => send<ConfigCheck>('POST', '/admin/config/check', { file: name, text }),
  placeholderData: keepPreviousData<ConfigCheck | undefined>,
  staleTime: 10_000,
  gcTime: 30_000,
  enabled,
});

/** Checks one file a moment after the last letter. */
export function useCheck(name: string, text: string, enabled: boolean) {
  const [settled] = useDebouncedValue(text, 600);
  const check = useQuery(checkQuery(name, settled, enabled));
  // Until then the answer is about an earlier text.
  return { check, busy: check.isFetching || settled !== text };
}

/** Checks each edited file, with the others as they are on disk. */
export function useChecks(drafts: readonly Draft[]) {
  const changed = drafts.filter(({ isChanged }) => isChanged);
  const checks = useQueries({ queries: changed.map(({ file, text }) => checkQuery(file.name, text, true)) });
  return changed.map((draft, index) => ({ draft, check: checks[index]! }));
}
