/** Cost or requests over time. Loaded when it is shown: the library is large. */
import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { SegmentedControl, Stack } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { UsageSeries } from '../../api/types.ts';
import { chartNumber, countText } from '../../parts/format.ts';

const dayMs = 86_400_000;

export default function UsageChart({ series }: { readonly series: UsageSeries }) {
  const { t, i18n } = useTranslation();
  const priced = series.rows.some(({ cost }) => cost !== null);
  const [wanted, setWanted] = useState<'cost' | 'requests'>('cost');
  const shown = priced ? wanted : 'requests';
  const format = new Intl.DateTimeFormat(
    i18n.language,
    series.bucketMs >= dayMs
      ? { day: 'numeric', month: 'short', timeZone: series.tz }
      : { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
  );
  const data = series.rows.map(({ at, cost, results }) => ({
    at: format.format(new Date(at)),
    cost: cost === null ? 0 : chartNumber(cost),
    ...results,
  }));
  const bars =
    shown === 'cost'
      ? [{ name: 'cost', label: t('client.usage.cost'), color: 'iris.5' }]
      : [
          { name: 'ok', label: t('client.result.ok'), color: 'teal.6' },
          { name: 'client_error', label: t('client.result.client_error'), color: 'orange.5' },
          { name: 'upstream_error', label: t('client.result.upstream_error'), color: 'red.6' },
          { name: 'left', label: t('client.result.left'), color: 'gray.5' },
        ];
  return (
    <Stack gap="sm">
      {priced && (
        <SegmentedControl
          size="xs"
          className="segments"
          value={shown}
          onChange={(value) => setWanted(value as 'cost' | 'requests')}
          data={[
            { value: 'cost', label: t('client.usage.chartCost') },
            { value: 'requests', label: t('client.usage.chartRequests') },
          ]}
        />
      )}
      <div role="img" aria-label={t('client.usage.chart')}>
        <BarChart
          h={220}
          data={data}
          dataKey="at"
          type="stacked"
          series={bars}
          withLegend={shown === 'requests'}
          legendProps={{ verticalAlign: 'bottom', itemSorter: null }}
          gridAxis="x"
          tickLine="none"
          maxBarWidth={28}
          valueFormatter={(value) => (shown === 'cost' ? costText(value) : countText(value, i18n.language))}
          xAxisProps={{ minTickGap: 24 }}
          yAxisProps={{ width: 64 }}
          barProps={{ isAnimationActive: false, radius: 2 }}
        />
      </div>
    </Stack>
  );
}

/** An axis needs few digits; the rows have them all. */
const costText = (value: number): string => `$${value >= 1 || value === 0 ? value.toFixed(2) : value.toPrecision(2)}`;
