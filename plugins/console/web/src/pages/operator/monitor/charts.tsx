/** How requests ended, and how long they took, over time. */
import { SimpleGrid } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Chart } from '../../../parts/chart.tsx';
import { countText, durationText, pointText } from '../../../parts/format.ts';
import type { MonitorSeries, RequestResult } from '../types.ts';
import { ChartPart } from './durations.tsx';

/** The colours of results are the same everywhere. */
const resultColors: Record<RequestResult, string> = {
  ok: 'var(--chart-2)',
  client_error: 'var(--chart-3)',
  upstream_error: 'var(--bad)',
  left: 'var(--chart-others)',
};
const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;

export default function Charts({ series }: { readonly series: MonitorSeries }) {
  const { t, i18n } = useTranslation();
  const { rows } = series;
  const points = rows.map(({ at }) => pointText(new Date(at), series, i18n.language));
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
      <ChartPart title={t('operator.traffic.monitor.requestsChart')}>
        <Chart
          kind="bars"
          height={140}
          label={t('operator.traffic.monitor.requestsChart')}
          points={points}
          format={(value) => countText(value, i18n.language, true)}
          series={results.map((result) => ({
            key: result,
            label: t(`operator.result.${result}`),
            color: resultColors[result],
            values: rows.map((row) => row.results[result]),
          }))}
        />
      </ChartPart>
      <ChartPart title={t('operator.traffic.monitor.latencyChart')}>
        <Chart
          kind="lines"
          height={140}
          label={t('operator.traffic.monitor.latencyChart')}
          points={points}
          format={(value) => durationText(value)}
          series={[
            {
              key: 'firstByte',
              label: `${t('shell.word.firstByte')} p50`,
              color: 'var(--chart-2)',
              values: rows.map(({ firstByte }) => firstByte.p50),
            },
            {
              key: 'total50',
              label: `${t('operator.column.total')} p50`,
              color: 'var(--chart-1)',
              values: rows.map(({ total }) => total.p50),
            },
            {
              key: 'total95',
              label: `${t('operator.column.total')} p95`,
              color: 'var(--chart-3)',
              values: rows.map(({ total }) => total.p95),
            },
          ]}
        />
      </ChartPart>
    </SimpleGrid>
  );
}
