/** Histograms of the time to the first byte and to the end of the answer. */
import { SimpleGrid, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Chart } from '../../../parts/chart.tsx';
import { countText, durationText } from '../../../parts/format.ts';
import type { DurationRow } from '../types.ts';

export default function Durations({ rows }: { readonly rows: readonly DurationRow[] }) {
  const { t } = useTranslation();
  const shown = withoutEmptyEnds(rows);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
      <Spread rows={shown} of="firstByte" title={t('operator.traffic.monitor.firstByteSpread')} />
      <Spread rows={shown} of="total" title={t('operator.traffic.monitor.totalSpread')} />
    </SimpleGrid>
  );
}

/** A chart with its heading, inside a panel. */
export function ChartPart({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div>
      <Title order={2} fz="sm">
        {title}
      </Title>
      {children}
    </div>
  );
}

/** Both charts keep one scale. */
function withoutEmptyEnds(rows: readonly DurationRow[]): readonly DurationRow[] {
  const isFilled = ({ firstByte, total }: DurationRow) => firstByte + total > 0;
  return rows.slice(Math.max(0, rows.findIndex(isFilled)), rows.findLastIndex(isFilled) + 1);
}

interface SpreadProps {
  readonly rows: readonly DurationRow[];
  readonly of: 'firstByte' | 'total';
  readonly title: string;
}

function Spread({ rows, of, title }: SpreadProps) {
  const { t, i18n } = useTranslation();
  const points = rows.map(({ fromMs, untilMs }) => ({
    short: untilMs === null ? `≥ ${edgeText(fromMs)}` : `< ${edgeText(untilMs)}`,
    whole: untilMs === null ? `≥ ${edgeText(fromMs)}` : `${edgeText(fromMs)} – ${edgeText(untilMs)}`,
  }));
  return (
    <ChartPart title={title}>
      <Chart
        kind="bars"
        height={120}
        label={title}
        points={points}
        format={(value) => countText(value, i18n.language, true)}
        series={[
          {
            key: of,
            label: t('shell.word.requests'),
            color: 'var(--chart-1)',
            values: rows.map((row) => row[of]),
          },
        ]}
      />
    </ChartPart>
  );
}

/** Edges are round: `2 s`, `5 min`. */
function edgeText(milliseconds: number): string {
  if (milliseconds < 1000) return durationText(milliseconds);
  return milliseconds < 60_000 ? `${milliseconds / 1000} s` : `${milliseconds / 60_000} min`;
}
