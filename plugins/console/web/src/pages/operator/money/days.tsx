/** Revenue, own cost and margin by day, as a chart and as rows. Loaded when the page is opened. */

import { Box, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { axisText } from '../../../parts/activity.tsx';
import { Chart } from '../../../parts/chart.tsx';
import { knownColumn, moneyColumn, useCountColumn } from '../../../parts/columns.tsx';
import { pointText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { bucketLabel } from '../monitor/bucket-label.ts';
import { CsvTable } from '../parts/csv-table.tsx';
import { approximate, isNothing } from '../sums/usd.ts';
import type { MonitorSeries } from '../types.ts';

type Bucket = MonitorSeries['rows'][number];

const isUnknown = ({ cost, ownCost }: Bucket) => ownCost === null && !isNothing(cost ?? '0');

export default function Days({ series }: { readonly series: MonitorSeries }) {
  const { t, i18n } = useTranslation();
  const label = ({ at }: Bucket) => bucketLabel(new Date(at), series, i18n.language);
  // Days on which nothing happened are in the chart, not in the rows; the last one, which is today, always is.
  const rows = series.rows
    .filter(({ requests, cost }, index) => requests > 0 || !isNothing(cost ?? '0') || index === series.rows.length - 1)
    .reverse();
  const unknown = {
    key: 'unknown',
    label: t('operator.sales.money.unknownCost'),
    color: 'var(--chart-others)',
    values: series.rows.map((bucket) => (isUnknown(bucket) ? approximate(bucket.cost ?? '0') : null)),
  };
  return (
    <>
      <Box p="md">
        <Chart
          kind="bars"
          label={t('operator.sales.money.chart')}
          points={series.rows.map(({ at }) => pointText(new Date(at), series, i18n.language))}
          format={(value) => axisText('cost', value, i18n.language)}
          series={[
            {
              key: 'ownCost',
              label: t('operator.column.ownCost'),
              color: 'var(--chart-3)',
              values: series.rows.map(({ ownCost }) => (ownCost === null ? null : approximate(ownCost))),
            },
            {
              key: 'margin',
              label: t('operator.sales.money.overCost'),
              color: 'var(--chart-1)',
              values: series.rows.map(({ cost, ownCost }) =>
                ownCost === null ? null : approximate(cost ?? '0') - approximate(ownCost),
              ),
            },
            ...(series.rows.some(isUnknown) ? [unknown] : []),
          ]}
        />
      </Box>
      <CsvTable
        label={t('operator.sales.money.byDay')}
        rows={rows}
        rowKey={({ at }) => at}
        columns={useColumns(label)}
        file="money-by-day"
        empty={
          <Text p="md" c="dimmed" fz="sm">
            {t('operator.sales.money.empty')}
          </Text>
        }
      />
    </>
  );
}

function useColumns(label: (bucket: Bucket) => string): Column<Bucket>[] {
  const { t } = useTranslation();
  return [
    { key: 'day', title: t('operator.column.day'), cell: label, plain: ({ at }) => at },
    useCountColumn('requests', t('shell.word.requests')),
    moneyColumn('revenue', t('operator.sales.money.revenue'), ({ cost }) => cost),
    knownColumn('ownCost', t('operator.column.ownCost'), t('operator.unknown')),
    knownColumn('margin', t('operator.column.margin'), t('operator.unknown')),
  ];
}
