/** A client's activity: what calls cost and how they did, over time and by what causes it; rows, and each row's cost as a sum. */
import { Group, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { useLiveInterval, useLiveRefresh } from '../../api/live.ts';
import { useRight } from '../../api/rights.ts';
import type { RequestRow, UsageChoices, UsageSums } from '../../api/types.ts';
import { ActivityPanel, type Metric } from '../../parts/activity.tsx';
import { AnswerCache } from '../../parts/answer-cache.tsx';
import { CachedTokens } from '../../parts/cached-tokens.tsx';
import { durationColumn, moneyColumn, textColumn, timeColumn } from '../../parts/columns.tsx';
import { DataTable, listKey } from '../../parts/data-table.tsx';
import { FindingFilters, findingQuery, hasFindingFilter } from '../../parts/finding-filters.tsx';
import { chartNumber, countText, durationText, meanUsd, moneyText, shareText } from '../../parts/format.ts';
import { Money, Refunded } from '../../parts/money.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { projectName } from '../../parts/project.ts';
import type { Column } from '../../parts/rows-table.tsx';
import { SavedViews } from '../../parts/saved-views.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { type ChosenSpan, SpanPicker, useSpan } from '../../parts/span.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { Steady } from '../../parts/steady.tsx';
import { TagsPanel, tagFilter } from '../../parts/tags.tsx';
import { tokensColumn } from '../../parts/tokens.tsx';
import { RequestDrawer } from './request-drawer.tsx';
import { ResultBadge } from './result-badge.tsx';
import { UsageFilters, useUsageChoices } from './usage-filters.tsx';

const spanNames = ['today', '24h', '7d', '30d'] as const;
type Filter = Readonly<Record<string, string | undefined>>;

export default function Usage() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const span = useSpan('30d');
  const { keyId, personId, project, model, result } = search;
  const filter = { keyId, personId, project, model, result };
  const known = useUsageChoices(span.query);
  const readsAll = useRight('allUsage');
  const tag = tagFilter(search['tag']);
  // Its sums are those of all calls.
  const isFiltered = [keyId, personId, project, model, result, tag].some((one) => one !== undefined);
  const columns = useRequestColumns();
  useLiveRefresh('balance', listKey('/usage'));
  return (
    <Page
      title={t('client.usage.title')}
      hint={t('client.usage.hint')}
      actions={<SpanPicker names={spanNames} otherwise="30d" />}
    >
      <Group gap="xs" className="filters">
        <UsageFilters known={known} />
        <FindingFilters />
        <SavedViews />
      </Group>
      <Activity filter={filter} span={span} known={known} />
      <CachedTokens path="/usage/cached" query={{ ...span.query, ...filter }} />
      {isFiltered || !readsAll ? null : <AnswerCache path="/usage/answer-cache" query={span.query} />}
      {readsAll && <TagsPanel path="/usage/tags" query={span.query} />}
      <Steady>
        <Panel flush>
          <DataTable<RequestRow>
            label={t('client.usage.title')}
            path="/usage"
            query={{ ...span.query, ...filter, ...findingQuery(search), tag }}
            csv="/usage.csv"
            {...(tag === undefined && !hasFindingFilter(search) ? { sums: '/usage/sums' } : {})}
            columns={columns}
            rowKey={({ id }) => id}
            onOpen={({ id }) => change({ open: id, after: search['after'] })}
            empty={<EmptyState title={t('client.usage.none')} hint={t('client.usage.noneHint')} />}
          />
        </Panel>
      </Steady>
      <RequestDrawer id={search['open']} onClose={() => change({ open: undefined, after: search['after'] })} />
    </Page>
  );
}

function useSums(query: Filter) {
  return useQuery({
    queryKey: ['usage', 'sums', query],
    queryFn: ({ signal }) => get<UsageSums>('/usage/sums', query, signal),
    placeholderData: keepPreviousData,
    refetchInterval: useLiveInterval(15_000),
  }).data;
}

interface ActivityProps {
  readonly filter: Filter;
  readonly span: ChosenSpan;
  readonly known: UsageChoices | undefined;
}

function Activity({ filter, span, known }: ActivityProps) {
  const { t } = useTranslation();
  const metrics = useMetrics(useSums({ ...span.query, ...filter }), useSums({ ...span.previous, ...filter }));
  const { keys = [], people = [], projects = [] } = known ?? {};
  const isShown = { model: true, key: true, person: people.length > 1, project: projects.length > 0, operation: true };
  const by = (['model', 'key', 'person', 'project', 'operation'] as const).filter((name) => isShown[name]);
  return (
    <ActivityPanel
      path="/usage/activity"
      query={filter}
      span={span}
      metrics={metrics}
      by={by.map((value) => ({ value, label: value === 'person' ? t('client.person') : t(`shell.word.${value}`) }))}
      nameOf={(name, group) => {
        if (name === 'project') return projectName(group, t('shell.project.none'));
        const named = name === 'key' ? keys : name === 'person' ? people : [];
        return named.find(({ id }) => id === group)?.name ?? group;
      }}
      refetchMs={useLiveInterval(30_000)}
    />
  );
}

/** undefined: the sums are not known yet. */
function useMetrics(now: UsageSums | undefined, before: UsageSums | undefined): readonly Metric[] {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  const errorsOf = (sums: UsageSums | undefined) => sums && sums.results.client_error + sums.results.upstream_error;
  const amount = (sums: UsageSums | undefined) => (sums?.spent ? chartNumber(sums.spent) : undefined);
  const mean = now?.spent && now.requests > 0 ? meanUsd(now.spent, now.requests) : undefined;
  const cost: Metric = {
    name: 'spent',
    label: t('shell.word.cost'),
    value: now && <Money of={now.spent} />,
    note: mean && (
      <>
        {t('client.usage.perRequest', { cost: moneyText(mean, i18n.language) })}
        <Refunded of={now?.refunded ?? null} />
      </>
    ),
    change: [amount(now), amount(before)],
  };
  const tokens: Metric = {
    name: 'tokens',
    label: t('client.usage.tokens'),
    value: now && (now.tokens === null ? '–' : count(now.tokens)),
    change: [now?.tokens, before?.tokens],
  };
  const others: readonly Metric[] = [
    {
      name: 'requests',
      label: t('shell.word.requests'),
      value: now && count(now.requests),
      change: [now?.requests, before?.requests],
    },
    {
      name: 'errors',
      label: t('client.usage.errors'),
      value: now && count(errorsOf(now)!),
      note: now && (
        <>
          {t('client.usage.succeeded', { share: shareText(now.results.ok, now.requests, i18n.language) })}
          {now.refused > 0 && ` · ${t('client.usage.unserved', { number: count(now.refused) })}`}
        </>
      ),
      change: [errorsOf(now), errorsOf(before)],
    },
    {
      name: 'firstByte',
      label: t('client.usage.firstByte'),
      value: now && durationText(now.firstByte.p50),
      note: now && t('client.usage.p95', { time: durationText(now.firstByte.p95) }),
      change: [now?.firstByte.p50, before?.firstByte.p50],
    },
  ];
  // Without a ledger nothing is charged, and tokens are not summed up.
  return now?.cost === null ? others : [cost, tokens, ...others];
}

function useRequestColumns(): readonly Column<RequestRow>[] {
  const { t } = useTranslation();
  return [
    timeColumn('receivedAt', t('shell.word.time'), { sort: 'time' }),
    textColumn('model', t('shell.word.model')),
    textColumn('operation', t('shell.word.operation'), { minor: true, cell: operationCell }),
    textColumn('status', t('shell.word.result'), { cell: (row) => <ResultBadge row={row} /> }),
    tokensColumn(t('client.usage.tokens')),
    durationColumn('first', t('shell.word.firstByte'), (row) => row.firstByteMs, { minor: true, sort: 'firstByte' }),
    durationColumn('total', t('client.usage.duration'), (row) => row.totalMs, { sort: 'duration' }),
    { ...moneyColumn<RequestRow>('cost', t('shell.word.cost'), (row) => row.cost), sort: 'cost' },
  ];
}

function operationCell({ operation }: RequestRow) {
  return (
    <Text span inherit c="dimmed">
      {operation}
    </Text>
  );
}
