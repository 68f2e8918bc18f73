/** Traffic, waits and money over time. Loaded when the page is opened. */
import '@mantine/charts/styles.css';
import { BarChart, LineChart } from '@mantine/charts';
import { SimpleGrid } from '@mantine/core';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { durationText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { approximate } from '../sums/usd.ts';
import type { MonitorSeries } from '../types.ts';
import { bucketLabel } from './bucket-label.ts';

export default function Charts({ series }: { readonly series: MonitorSeries }) {
  const { t, i18n } = useTranslation();
  const points = useMemo(
    () =>
      series.rows.map(({ at, results, firstByte, total, cost, ownCost }) => ({
        at: bucketLabel(new Date(at), series, i18n.language),
        ...results,
        firstByte: firstByte.p50,
        total50: total.p50,
        total95: total.p95,
        cost: cost === null ? null : approximate(cost),
        ownCost: ownCost === null ? null : approximate(ownCost),
      })),
    [series, i18n.language],
  );
  const hasMoney = points.some(({ cost }) => cost !== null);
  const common = {
    h: 220,
    data: points,
    dataKey: 'at',
    withLegend: true,
    legendProps: { verticalAlign: 'bottom', itemSorter: null },
    tickLine: 'none',
    xAxisProps: { minTickGap: 24 },
  } as const;
  const bars = { maxBarWidth: 28, barProps: { isAnimationActive: false } } as const;
  return (
    <SimpleGrid cols={{ base: 1, lg: hasMoney ? 3 : 2 }} spacing="sm">
      <Panel title={t('operator.traffic.monitor.requestsChart')}>
        <BarChart
          {...common}
          {...bars}
          type="stacked"
          aria-label={t('operator.traffic.monitor.requestsChart')}
          series={[
            { name: 'ok', label: t('operator.result.ok'), color: 'teal.6' },
            { name: 'client_error', label: t('operator.result.client_error'), color: 'yellow.6' },
            { name: 'upstream_error', label: t('operator.result.upstream_error'), color: 'red.6' },
            { name: 'left', label: t('operator.result.left'), color: 'gray.5' },
          ]}
        />
      </Panel>
      <Panel title={t('operator.traffic.monitor.latencyChart')}>
        <LineChart
          {...common}
          // Nothing is drawn through times without a call; a time between two such is a dot.
          curveType="linear"
          connectNulls={false}
          dotProps={{ r: 2 }}
          lineProps={{ isAnimationActive: false }}
          aria-label={t('operator.traffic.monitor.latencyChart')}
          valueFormatter={(value) => durationText(value)}
          yAxisProps={{ width: 64 }}
          series={[
            { name: 'firstByte', label: `${t('operator.column.firstByte')} p50`, color: 'teal.6' },
            { name: 'total50', label: `${t('operator.column.total')} p50`, color: 'iris.5' },
            { name: 'total95', label: `${t('operator.column.total')} p95`, color: 'orange.6' },
          ]}
        />
      </Panel>
      {hasMoney && (
        <Panel title={t('operator.traffic.monitor.moneyChart')}>
          <BarChart
            {...common}
            {...bars}
            aria-label={t('operator.traffic.monitor.moneyChart')}
            valueFormatter={(value) => `$${value.toFixed(2)}`}
            yAxisProps={{ width: 64 }}
            series={[
              { name: 'cost', label: t('operator.column.cost'), color: 'iris.5' },
              { name: 'ownCost', label: t('operator.column.ownCost'), color: 'orange.6' },
            ]}
          />
        </Panel>
      )}
    </SimpleGrid>
  );
}
