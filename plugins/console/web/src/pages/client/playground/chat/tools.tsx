/** Tools of the gateway for a conversation, where it makes their calls: which of them the model may use, and what the run cost. */
import { MultiSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../../../api/client.ts';
import { useMe } from '../../../../api/session.ts';
import { useSearchState } from '../../../../parts/search-state.ts';

interface Tools {
  readonly servers: readonly string[];
  readonly bundles: readonly string[];
  readonly runs: boolean;
}

/** Servers and bundles; none where the gateway has no tools, or models cannot use them. */
function useTools(): readonly string[] {
  const me = useMe();
  const { data } = useQuery({
    queryKey: ['pages', 'tools'],
    queryFn: () => get<Tools>('/pages/tools'),
    enabled: me.pages.some(({ name }) => name === 'tools'),
    staleTime: 60_000,
  });
  return data?.runs === true ? [...new Set([...data.servers, ...data.bundles])] : [];
}

/** They live in the address bar. */
export function useChosenTools(): readonly string[] {
  const known = useTools();
  const chosen = useSearchState()[0]['tools']?.split(',') ?? [];
  return known.filter((name) => chosen.includes(name));
}

export function ToolChoice() {
  const { t } = useTranslation();
  const known = useTools();
  const chosen = useChosenTools();
  const [, change] = useSearchState();
  if (known.length === 0) return null;
  return (
    <MultiSelect
      label={t('client.playground.tools')}
      description={t('client.playground.toolsHint')}
      data={[...known]}
      value={[...chosen]}
      searchable
      clearable
      onChange={(names) => change({ tools: names.length === 0 ? undefined : names.join(',') })}
    />
  );
}

/** How long after a run charges of its steps may still come. */
const patienceMs = 8_000;

interface RunBill {
  readonly cost: string;
}

/** `undefined`: no run, or nothing of it was charged yet. */
export function useRunCost(id: string | undefined, apiKey: string): string | undefined {
  const { data } = useQuery({
    queryKey: ['run', id],
    queryFn: async ({ signal }) => {
      const answer = await fetch(`/v1/usage/runs/${encodeURIComponent(id!)}`, {
        signal,
        credentials: 'omit',
        headers: { authorization: `Bearer ${apiKey}` },
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      return (await answer.json()) as RunBill;
    },
    enabled: id !== undefined,
    retry: 8,
    retryDelay: 800,
    refetchInterval: ({ state: { dataUpdateCount } }) => (dataUpdateCount * 1_000 < patienceMs ? 1_000 : false),
  });
  return data?.cost;
}
