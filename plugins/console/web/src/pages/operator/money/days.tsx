/** Revenue, own cost and margin by day, as a chart and as rows. Loaded when the page is opened. */
import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { Box, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { bucketLabel } from '../monitor/bucket-label.ts';
import { type CsvColumn, CsvTable } from '../parts/csv-table.tsx';
import { approximate, minus } from '../sums/usd.ts';
import type { MonitorSeries } from '../types.ts';

type Bucket = MonitorSeries['rows'][number];

export default function Days({ series }: { readonly series: MonitorSeries }) {
  const { t, i18n } = useTranslation();
  const label = ({ at }: Bucket) => bucketLabel(new Date(at), series.bucketMs, i18n.language);
  const data = series.rows.map((bucket) => ({
    day: label(bucket),
    cost: approximate(bucket.cost ?? '0'),
    ownCost: approximate(bucket.ownCost ?? '0'),
  }));
  // Days on which nothing happened are in the chart, not in the rows.
  const rows = series.rows.filter(({ requests }) => requests > 0).reverse();
  return (
    <>
      <Box p="md">
        <BarChart
          h={240}
          data={data}
          dataKey="day"
          withLegend
          aria-label={t('operator.sales.money.chart')}
          valueFormatter={(value) => `$${value.toFixed(2)}`}
          yAxisProps={{ width: 64 }}
          series={[
            { name: 'cost', label: t('operator.sales.money.revenue'), color: 'iris.5' },
            { name: 'ownCost', label: t('operator.sales.money.ownCost'), color: 'orange.6' },
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

function useColumns(label: (bucket: Bucket) => string): CsvColumn<Bucket>[] {
  const { t, i18n } = useTranslation();
  const margin = ({ cost, ownCost }: Bucket) => (cost === null || ownCost === null ? null : minus(cost, ownCost));
  return [
    { key: 'day', title: t('operator.column.day'), cell: label, plain: ({ at }) => at },
    {
      key: 'requests',
      title: t('operator.column.requests'),
      right: true,
      cell: ({ requests }) => countText(requests, i18n.language),
      plain: ({ requests }) => requests,
    },
    {
      key: 'revenue',
      title: t('operator.sales.money.revenue'),
      right: true,
      cell: ({ cost }) => <Money of={cost} />,
      plain: ({ cost }) => cost,
    },
    {
      key: 'ownCost',
      title: t('operator.sales.money.ownCost'),
      right: true,
      cell: ({ ownCost }) => <Money of={ownCost} />,
      plain: ({ ownCost }) => ownCost,
    },
    {
      key: 'margin',
      title: t('operator.sales.money.margin'),
      right: true,
      cell: (bucket) => <Money of={margin(bucket)} signed={margin(bucket)?.startsWith('-') === true} />,
      plain: margin,
    },
  ];
}
