/** What was charged, own cost and margin by day, as a chart and as rows. Loaded when the page is opened. */

import { Box, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { axisText } from '../../../parts/activity.tsx';
import { Chart } from '../../../parts/chart.tsx';
import { useCountColumn } from '../../../parts/columns.tsx';
import { pointText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { bucketDay, bucketLabel } from '../monitor/bucket-label.ts';
import { CsvTable } from '../parts/csv-table.tsx';
import { useMarginColumns } from '../parts/margin.tsx';
import { sumOfRows } from '../sums/margin.ts';
import { approximate, isNothing } from '../sums/usd.ts';
import type { MonitorSeries } from '../types.ts';

type Bucket = MonitorSeries['rows'][number];

const parts = ['ownCost', 'margin', 'writtenOff', 'refunded', 'uncosted'] as const;
const colors = ['--chart-3', '--chart-1', '--chart-4', '--chart-5', '--chart-others'];

/** A refund may come on a day without calls. */
const isMoved = (row: Bucket) =>
  [row.cost, ...parts.map((key) => row[key])].some((amount) => !isNothing(amount ?? '0'));

export default function Days({ series }: { readonly series: MonitorSeries }) {
  const { t, i18n } = useTranslation();
  const label = ({ at }: Bucket) => bucketLabel(new Date(at), series, i18n.language);
  // Days on which nothing happened are in the chart, not in the rows; the last one, which is today, always is.
  const rows = series.rows
    .filter((row, index) => row.requests > 0 || isMoved(row) || index === series.rows.length - 1)
    .reverse();
  const shown = parts.flatMap((key, index) => {
    const values = series.rows.map((bucket) => bucket[key]);
    if (index > 1 && values.every((value) => isNothing(value ?? '0'))) return [];
    const approximated = values.map((value) => (value === null ? null : approximate(value)));
    return [{ key, label: t(`operator.column.${key}`), color: `var(${colors[index]})`, values: approximated }];
  });
  const total = { ...sumOfRows(rows), requests: rows.reduce((sum, { requests }) => sum + requests, 0), at: '' };
  return (
    <>
      <Box p="md">
        <Chart
          kind="bars"
          label={t('operator.sales.money.chart')}
          points={series.rows.map(({ at }) => pointText(new Date(at), series, i18n.language))}
          format={(value) => axisText('cost', value, i18n.language)}
          series={shown}
        />
      </Box>
      <CsvTable
        label={t('operator.sales.money.byDay')}
        rows={rows}
        rowKey={({ at }) => at}
        total={{ ...rows[0]!, ...total }}
        columns={useColumns(rows, label, series)}
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

function useColumns(
  rows: readonly Bucket[],
  label: (bucket: Bucket) => string,
  series: MonitorSeries,
): Column<Bucket>[] {
  const { t } = useTranslation();
  const cell = (bucket: Bucket) => (bucket.at === '' ? t('operator.column.sum') : label(bucket));
  return [
    {
      key: 'day',
      title: t('operator.column.day'),
      cell,
      plain: ({ at }) => (at === '' ? '' : bucketDay(new Date(at), series)),
    },
    useCountColumn('requests', t('shell.word.requests')),
    ...useMarginColumns(rows),
  ];
}
