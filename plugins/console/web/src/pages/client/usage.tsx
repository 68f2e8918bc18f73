/** A client's calls: filters, sums, a chart, rows, and each row's cost as a sum that can be checked. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import type { RequestRow, UsageSeries, UsageSums } from '../../api/types.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { countText, durationText, meanUsd, moneyText, shareText } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { bucketMinutesOf } from '../../parts/named-span.ts';
import { Page, Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { Stat, StatRow } from '../../parts/stat.tsx';
import { EmptyState, ErrorState, Waiting } from '../../parts/states.tsx';
import { viewerZone, ZoneName } from '../../parts/zone.tsx';
import { isPeriod, spanOf } from './period.ts';
import { useRequestColumns } from './request-columns.tsx';
import { RequestDrawer } from './request-drawer.tsx';
import { UsageFilters } from './usage-filters.tsx';

const UsageChart = lazy(() => import('./usage-chart.tsx'));

export default function Usage() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const filter = useFilter();
  const columns = useRequestColumns();
  return (
    <Page title={t('client.usage.title')} hint={t('client.usage.hint')}>
      <UsageFilters />
      <Sums filter={filter} />
      <Chart filter={filter} />
      <Panel flush>
        <DataTable<RequestRow>
          label={t('client.usage.title')}
          path="/usage"
          query={filter}
          csv="/usage.csv"
          columns={columns}
          rowKey={({ id }) => id}
          onOpen={({ id }) => change({ open: id, after: search['after'] })}
          empty={<EmptyState title={t('client.usage.none')} hint={t('client.usage.noneHint')} />}
        />
      </Panel>
      <RequestDrawer id={search['open']} onClose={() => change({ open: undefined, after: search['after'] })} />
    </Page>
  );
}

type Filter = Readonly<Record<string, string | undefined>>;

function useFilter(): Filter {
  const [search] = useSearchState();
  const { from, until, keyId, model, result } = search;
  const period = isPeriod(search['period']) ? search['period'] : '30d';
  const span = useMemo(() => spanOf(period, new Date(), { from, until }), [period, from, until]);
  return { ...span, tz: viewerZone, keyId, model, result };
}

function Sums({ filter }: { readonly filter: Filter }) {
  const { t, i18n } = useTranslation();
  const sums = useQuery({
    queryKey: ['usage', 'sums', filter],
    queryFn: ({ signal }) => get<UsageSums>('/usage/sums', filter, signal),
  });
  if (sums.isError) return <ErrorState error={sums.error} onRetry={() => void sums.refetch()} />;
  // No number is shown before it is known.
  if (sums.data === undefined) return <Waiting height={96} />;
  const { requests, results, cost, firstByte } = sums.data;
  const count = (value: number) => countText(value, i18n.language);
  return (
    <StatRow>
      <Stat label={t('client.usage.requests')} value={count(requests)} />
      <Stat
        label={t('client.usage.cost')}
        value={<Money of={cost} />}
        note={
          cost !== null && requests > 0
            ? t('client.usage.perRequest', { cost: moneyText(meanUsd(cost, requests), i18n.language) })
            : undefined
        }
      />
      <Stat
        label={t('client.usage.success')}
        value={shareText(results.ok, requests, i18n.language)}
        note={t('client.usage.failedNote', {
          refused: count(results.client_error),
          failed: count(results.upstream_error),
          left: count(results.left),
        })}
      />
      <Stat
        label={t('client.usage.firstByte')}
        value={durationText(firstByte.p50)}
        note={t('client.usage.p95', { time: durationText(firstByte.p95) })}
      />
    </StatRow>
  );
}

function Chart({ filter }: { readonly filter: Filter }) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const period = isPeriod(search['period']) ? search['period'] : '30d';
  const bucketMinutes = period === 'custom' ? undefined : bucketMinutesOf(period);
  const series = useQuery({
    queryKey: ['usage', 'series', filter, bucketMinutes],
    queryFn: ({ signal }) => get<UsageSeries>('/usage/series', { ...filter, bucketMinutes }, signal),
  });
  // The sums say already what is wrong.
  if (series.isError) return null;
  return (
    <Panel title={t('client.usage.chart')} actions={<ZoneName />}>
      <Suspense fallback={<Waiting height={220} />}>
        {series.data === undefined ? <Waiting height={220} /> : <UsageChart series={series.data} />}
      </Suspense>
    </Panel>
  );
}
