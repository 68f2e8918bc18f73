/** Small charts of plain elements: columns over time, and shares of a sum. No library is loaded for them. */
import { Group, Stack, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import type { ReactNode } from 'react';

export interface Column {
  readonly key: string;
  /** Decides the height alone. */
  readonly size: number;
  /** The label that screen readers speak for the column. */
  readonly words: string;
}

/** Columns side by side, the largest as high as the box. */
export function Columns({
  of,
  label,
  ends,
}: {
  of: readonly Column[];
  label: string;
  ends: readonly [string, string];
}) {
  const most = Math.max(...of.map(({ size }) => size), 0);
  return (
    <div role="img" aria-label={label}>
      <div className="columns">
        {of.map(({ key, size, words }) => (
          <Tooltip key={key} label={words} openDelay={0}>
            <div className="column">
              <div
                className="column-fill"
                data-none={size <= 0 || undefined}
                style={{ height: most === 0 ? '0%' : `${Math.max(2, (size / most) * 100)}%` }}
              />
            </div>
          </Tooltip>
        ))}
      </div>
      <Group justify="space-between">
        {ends.map((end) => (
          <Text key={end} fz={11} c="dimmed">
            {end}
          </Text>
        ))}
      </Group>
    </div>
  );
}

export interface Share {
  readonly key: string;
  readonly name: ReactNode;
  readonly size: number;
  readonly value: ReactNode;
}

/** Lines with a bar below each, as long as its share of the largest. */
export function Shares({ of }: { readonly of: readonly Share[] }) {
  const most = Math.max(...of.map(({ size }) => size), 0);
  return (
    <Stack gap={10}>
      {of.map(({ key, name, size, value }) => (
        <div key={key}>
          <Group justify="space-between" wrap="nowrap" gap="xs" mb={3}>
            <Text fz="sm" truncate component="div">
              {name}
            </Text>
            <Text fz="sm" fw={550} component="div" className="nowrap">
              {value}
            </Text>
          </Group>
          <div className="share">
            <div className="share-fill" style={{ width: most === 0 ? '0%' : `${Math.max(0, (size / most) * 100)}%` }} />
          </div>
        </div>
      ))}
    </Stack>
  );
}

interface MeterProps {
  readonly part: number;
  readonly whole: number;
  /** Name for screen readers. */
  readonly label: string;
  /** The meaning of a full bar: a limit that is reached, or nothing of the kind. */
  readonly of?: 'limit' | 'share';
}

/** The one bar of these pages: the part of a whole that is used, left or done. */
export function Meter({ part, whole, label, of = 'share' }: MeterProps) {
  const share = whole === 0 ? (of === 'limit' ? 1 : 0) : Math.min(1, Math.max(0, part / whole));
  const tone = share >= 0.95 ? 'bad' : share >= 0.75 ? 'near' : undefined;
  return (
    <div className="share">
      <div className="share-fill" data-tone={of === 'limit' ? tone : undefined} style={{ width: `${share * 100}%` }} />
      <VisuallyHidden>{label}</VisuallyHidden>
    </div>
  );
}
