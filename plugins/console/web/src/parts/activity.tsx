/** Figures with their change against the time before, and the chosen one over time, stacked by what causes it. */
import { Group, SegmentedControl, Skeleton, Text, UnstyledButton } from '@mantine/core';
import { IconArrowUpRight } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../api/client.ts';
import type { Activity, ActivityBucket } from '../api/types.ts';
import Change from './change.tsx';
import { Chart, type Series, seriesColors } from './chart.tsx';
import type { ChartMark } from './chart-scale.ts';
import { countText, durationText, pointText } from './format.ts';
import { useSearchState } from './search-state.ts';
import type { ChosenSpan } from './span.tsx';
import { ErrorState } from './states.tsx';

type MetricName = 'cost' | 'spent' | 'tokens' | 'requests' | 'errors' | 'firstByte';

export interface Metric {
  readonly name: MetricName;
  readonly label: string;
  /** undefined: not known yet. */
  readonly value: ReactNode | undefined;
  readonly note?: ReactNode;
  /** Now and in the time before. */
  readonly change?: readonly [now: number | null | undefined, before: number | null | undefined];
  readonly tone?: 'bad' | undefined;
  /** Page with the rows behind the number. */
  readonly to?: { readonly to: string; readonly search: Readonly<Record<string, string>> };
}

interface ActivityProps<By extends string> {
  readonly path: string;
  readonly query: Query;
  readonly span: ChosenSpan;
  readonly metrics: readonly Metric[];
  readonly by: readonly { readonly value: By; readonly label: string }[];
  /** The shown name of a group, where it differs from the group's value. */
  readonly nameOf?: (by: By, group: string) => string;
  readonly refetchMs?: number | false;
  readonly height?: number;
  /** Highlighted ranges, by when the points begin and how long each is. */
  readonly marks?: (starts: readonly number[], bucketMs: number) => readonly ChartMark[];
}

export function ActivityPanel<By extends string>(props: ActivityProps<By>) {
  const { path, query, span, metrics, by, refetchMs = false } = props;
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const metric = metrics.find(({ name }) => name === search['metric'])?.name ?? metrics[0]!.name;
  const chosen = by.find(({ value }) => value === search['by'])?.value ?? by[0]!.value;
  const stay = { after: search['after'] };
  const requested = { ...query, ...span.query, by: chosen, bucketMinutes: span.barMinutes };
  const activity = useQuery({
    queryKey: [path, requested],
    queryFn: ({ signal }) => get<Activity>(path, requested, signal),
    placeholderData: keepPreviousData,
    refetchInterval: refetchMs,
  });
  return (
    <section className="activity">
      <div className="metrics">
        {metrics.map((one) => (
          <MetricTile
            key={one.name}
            metric={one}
            chosen={one.name === metric}
            onChoose={() => change({ ...stay, metric: one.name })}
          />
        ))}
      </div>
      <div className="activity-chart">
        <Group justify="flex-end" gap="xs">
          <SegmentedControl
            size="xs"
            aria-label={t('shell.activity.by')}
            data={[...by]}
            value={chosen}
            onChange={(value) => change({ ...stay, by: value })}
          />
        </Group>
        {activity.isError && <ErrorState error={activity.error} onRetry={() => void activity.refetch()} />}
        {activity.data === undefined && !activity.isError && <Skeleton h={230} mt="xs" radius="md" />}
        {activity.data !== undefined && <Stacked {...props} activity={activity.data} metric={metric} chosen={chosen} />}
      </div>
    </section>
  );
}

interface StackedProps<By extends string> extends ActivityProps<By> {
  readonly activity: Activity;
  readonly metric: MetricName;
  readonly chosen: By;
}

function Stacked<By extends string>(props: StackedProps<By>) {
  const { activity, metric, metrics, chosen, nameOf, height = 220, marks } = props;
  const { t, i18n } = useTranslation();
  const [, change] = useSearchState();
  const { at, bucketMs, tz } = activity;
  const format = (value: number) => axisText(metric, value, i18n.language);
  const open = (point: number) =>
    change({ span: 'custom', from: at[point], until: new Date(Date.parse(at[point]!) + bucketMs).toISOString() });
  const series = seriesOf(activity, metric, (group) => nameOf?.(chosen, group) ?? group, t('shell.activity.others'));
  return (
    <Chart
      kind={metric === 'firstByte' ? 'lines' : 'bars'}
      label={metrics.find(({ name }) => name === metric)?.label ?? metric}
      points={at.map((moment) => pointText(new Date(moment), { bucketMs, tz }, i18n.language))}
      series={series}
      format={format}
      height={height}
      marks={
        marks?.(
          at.map((moment) => Date.parse(moment)),
          bucketMs,
        ) ?? []
      }
      onPick={open}
    />
  );
}

/** The largest groups, and the rest. */
function seriesOf(
  { all, groups }: Activity,
  metric: MetricName,
  nameOf: (group: string) => string,
  others: string,
): Series[] {
  const shown: Series[] = groups.map(({ group, series }, index) => ({
    key: group,
    label: nameOf(group),
    color: seriesColors[Math.min(index, seriesColors.length - 1)]!,
    values: series.map((bucket) => valueIn(bucket, metric)),
  }));
  if (metric === 'firstByte') return shown;
  const rest = all.map((bucket, index) => {
    const known = shown.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
    const whole = valueIn(bucket, metric) ?? 0;
    // Amounts are drawn as floats: a remainder below this is noise.
    return Math.abs(whole - known) > (Math.abs(whole) + Math.abs(known)) * 1e-9 ? whole - known : 0;
  });
  const used = shown.filter(({ values }) => values.some((value) => (value ?? 0) !== 0));
  if (rest.every((value) => value === 0)) return used;
  return [...used, { key: ' others', label: others, color: seriesColors.at(-1)!, values: rest }];
}

function valueIn(bucket: ActivityBucket, metric: MetricName): number | null {
  if (metric === 'firstByte') return bucket.firstByteP50;
  if (metric === 'cost' || metric === 'spent') return bucket[metric] === null ? null : Number(bucket[metric]);
  return bucket[metric];
}

/** An axis needs few digits; the rows have them all. */
export function axisText(metric: MetricName, value: number, language: string): string {
  if (metric === 'firstByte') return durationText(value);
  if (metric !== 'cost' && metric !== 'spent') return countText(value, language, true);
  const size = Math.abs(value);
  const digits = size >= 1 ? { maximumFractionDigits: 2, minimumFractionDigits: 0 } : { maximumSignificantDigits: 2 };
  const notation = size >= 1e4 ? 'compact' : 'standard';
  const dollars = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const;
  return new Intl.NumberFormat(language, { ...dollars, ...digits, notation }).format(value);
}

interface TileProps {
  readonly metric: Metric;
  readonly chosen: boolean;
  readonly onChoose: () => void;
}

function MetricTile({ metric, chosen, onChoose }: TileProps) {
  const { label, value, note, change, tone, to } = metric;
  return (
    <div className="metric" data-chosen={chosen || undefined}>
      <UnstyledButton className="metric-button" aria-pressed={chosen} onClick={onChoose}>
        <Text span fz="xs" c="dimmed" fw={500} display="block">
          {label}
        </Text>
        {value === undefined ? (
          <Skeleton h={22} w={90} my={7} />
        ) : (
          <span className="stat-value number" data-tone={tone}>
            {value}
          </span>
        )}
        <Text span fz="xs" c="dimmed" display="block" component="div">
          {change !== undefined && <Change now={change[0]} before={change[1]} />} {note}
        </Text>
      </UnstyledButton>
      {to !== undefined && (
        <Link {...to} className="metric-rows" aria-label={label}>
          <IconArrowUpRight size={14} aria-hidden />
        </Link>
      )}
    </div>
  );
}
