/** The one chart of these pages: stacked bars or lines over time, with what a point says, and its legend below. */
import { Group, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type PointerEvent, useState } from 'react';
import { type ChartMark, endsOf, heightOf, labelled, runsOf, type Scale, stackOf, stepsTo } from './chart-scale.ts';

export interface Series {
  readonly key: string;
  readonly label: string;
  /** A colour of CSS. */
  readonly color: string;
  /** One for each point; null: not known. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly kind: 'bars' | 'lines';
  /** Description for screen readers. */
  readonly label: string;
  /** Names of the points: short below the axis, whole in the tip. */
  readonly points: readonly { readonly short: string; readonly whole: string }[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly height?: number;
  /** Highlighted ranges of points, with their meaning. */
  readonly marks?: readonly ChartMark[];
  /** Opens the rows behind a point. */
  readonly onPick?: ((point: number) => void) | undefined;
}

/** Series beside each other differ in light and in dark; the last one is for all others. */
export const seriesColors = [
  'var(--chart-1)',
  'var(--chart-2)',
  'var(--chart-3)',
  'var(--chart-4)',
  'var(--chart-5)',
  'var(--chart-6)',
  'var(--chart-others)',
] as const;

const labelPixels = 84;
const mostNames = 4;
const nameHeight = 16;

export function Chart({ kind, label, points, series, format, height = 200, marks = [], onPick }: ChartProps) {
  const { ref, width } = useElementSize<HTMLDivElement>();
  const [over, setOver] = useState<number>();
  const ends = points.map((_, index): readonly [number, number] => {
    const values = series.map(({ values }) => values[index] ?? 0);
    return kind === 'bars' ? endsOf(values) : [0, Math.max(0, ...values)];
  });
  const scale = stepsTo(Math.max(0, ...ends.map(([, most]) => most)), Math.min(0, ...ends.map(([least]) => least)));
  const { steps } = scale;
  const at = ({ currentTarget, clientX }: PointerEvent<HTMLElement>) => {
    const box = currentTarget.getBoundingClientRect();
    const index = Math.floor(((clientX - box.left) / box.width) * points.length);
    setOver(Math.min(points.length - 1, Math.max(0, index)));
  };
  const named = labelled(points.length, Math.max(2, Math.floor(width / labelPixels)));
  return (
    <div className="chart">
      <div className="chart-body" style={{ height }}>
        <div className="chart-steps" aria-hidden>
          {steps.map((step) => (
            <span key={step} style={{ bottom: `${heightOf(step, scale)}%` }}>
              {format(step)}
            </span>
          ))}
        </div>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: the rows that a press opens stand in the table below, for the keyboard too */}
        <div
          ref={ref}
          className="chart-plot"
          role="img"
          aria-label={label}
          data-opens={onPick !== undefined || undefined}
          onPointerMove={at}
          onPointerDown={at}
          onPointerLeave={() => setOver(undefined)}
          onClick={() => over !== undefined && onPick?.(over)}
        >
          {steps.map((step) => (
            <div key={step} className="chart-line" style={{ bottom: `${heightOf(step, scale)}%` }} />
          ))}
          <Marks of={marks} points={points.length} />
          {over !== undefined && <div className="chart-over" style={placeOf(over, points.length)} />}
          <svg viewBox={`0 0 ${points.length} 100`} preserveAspectRatio="none" aria-hidden>
            {kind === 'bars' ? (
              <Bars series={series} points={points.length} scale={scale} over={over} />
            ) : (
              <Lines series={series} scale={scale} />
            )}
          </svg>
          {over !== undefined && points[over] !== undefined && (
            <Tip
              title={points[over].whole}
              notes={marks.filter(({ from, to }) => from <= over && over <= to).map(({ label }) => label)}
              index={over}
              of={points.length}
              series={series}
              format={format}
            />
          )}
        </div>
      </div>
      <div className="chart-names" aria-hidden>
        {named.map((index) => (
          <span key={index} style={{ left: `${((index + 0.5) / points.length) * 100}%` }}>
            {points[index]!.short}
          </span>
        ))}
      </div>
      {series.length > 1 && (
        <Group gap="4px 14px" className="chart-legend">
          {series.map((one) => (
            <Group key={one.key} gap={6} wrap="nowrap" miw={0}>
              <span className="chart-dot" style={{ background: one.color }} />
              <Text fz="xs" c="dimmed" truncate>
                {one.label}
              </Text>
            </Group>
          ))}
        </Group>
      )}
    </div>
  );
}

function Marks({ of, points }: { readonly of: readonly ChartMark[]; readonly points: number }) {
  return of.map(({ from, to, label }, index) => {
    const style = { left: `${(from / points) * 100}%`, width: `${((to - from + 1) / points) * 100}%` };
    // One name below the other; near the right edge they end with the mark.
    const place = { top: (index % mostNames) * nameHeight, ...(from > points / 2 ? { right: 0 } : { left: 0 }) };
    return (
      <div key={`${from} ${label}`} className="chart-mark" style={style}>
        <span className="chart-mark-name" style={place}>
          {label}
        </span>
      </div>
    );
  });
}

const placeOf = (index: number, of: number) => ({ left: `${(index / of) * 100}%`, width: `${100 / of}%` });

interface BarsProps {
  readonly series: readonly Series[];
  readonly points: number;
  readonly scale: Scale;
  readonly over: number | undefined;
}

function Bars({ series, points, scale, over }: BarsProps) {
  const gap = points > 120 ? 0.08 : 0.16;
  return Array.from({ length: points }, (_, index) => {
    const stack = stackOf(series.map(({ values }) => values[index] ?? null));
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a point is its place
      <g key={index} opacity={over === undefined || over === index ? 1 : 0.55}>
        {series.map(({ key, color }, place) => {
          const [low, high] = stack[place]!.map((value) => heightOf(value, scale)) as [number, number];
          if (high === low) return null;
          return <rect key={key} x={index + gap / 2} width={1 - gap} y={100 - high} height={high - low} fill={color} />;
        })}
      </g>
    );
  });
}

function Lines({ series, scale }: { readonly series: readonly Series[]; readonly scale: Scale }) {
  return series.flatMap(({ key, color, values }) =>
    runsOf(values).map((run) => {
      const path = run.map(([index, value]) => `${index + 0.5} ${100 - heightOf(value, scale)}`).join(' L ');
      const [first] = run;
      return (
        <path
          key={`${key} ${first![0]}`}
          // A point alone is a dot: a line of no length with round ends.
          d={`M ${path}${run.length === 1 ? ' h 0' : ''}`}
          fill="none"
          stroke={color}
          strokeWidth={run.length === 1 ? 5 : 2}
          strokeLinecap="round"
          strokeLinejoin="round"
          vectorEffect="non-scaling-stroke"
        />
      );
    }),
  );
}

interface TipProps {
  readonly title: string;
  readonly notes: readonly string[];
  readonly index: number;
  readonly of: number;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

function Tip({ title, notes, index, of, series, format }: TipProps) {
  const known = series.filter(({ values }) => values[index] !== null && (series.length < 4 || values[index] !== 0));
  const side = index > of / 2 ? { right: `${((of - index) / of) * 100}%` } : { left: `${((index + 1) / of) * 100}%` };
  return (
    <div className="chart-tip" style={side} aria-hidden>
      <Text fz="xs" fw={600}>
        {title}
      </Text>
      {notes.slice(0, 3).map((note) => (
        <Text key={note} fz="xs" c="red">
          {note}
        </Text>
      ))}
      {known.map(({ key, label, color, values }) => (
        <Group key={key} gap={8} wrap="nowrap" justify="space-between">
          <Group gap={6} wrap="nowrap" miw={0}>
            <span className="chart-dot" style={{ background: color }} />
            <Text fz="xs" truncate>
              {label}
            </Text>
          </Group>
          <Text fz="xs" fw={550} className="number nowrap">
            {format(values[index]!)}
          </Text>
        </Group>
      ))}
      {known.length === 0 && (
        <Text fz="xs" c="dimmed">
          –
        </Text>
      )}
    </div>
  );
}
