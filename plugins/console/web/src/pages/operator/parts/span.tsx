/** The time that a page looks at, kept in the address bar. */
import { Group, SegmentedControl, Select } from '@mantine/core';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../../../parts/search-state.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const spans = {
  '15m': 15 * minuteMs,
  '1h': hourMs,
  '6h': 6 * hourMs,
  '24h': 24 * hourMs,
  '7d': 168 * hourMs,
  '30d': 720 * hourMs,
  '90d': 2_160 * hourMs,
} as const;
export type SpanName = keyof typeof spans;

export interface AskedSpan {
  readonly name: SpanName;
  readonly ms: number;
  /** As the API wants it: `from` alone, until now. Whole minutes, so that the same question is asked for a while. */
  readonly query: { readonly from: string };
}

/** The span of the address bar, or else the page's own. */
export function useSpan(otherwise: SpanName): AskedSpan {
  const [search] = useSearchState();
  const asked = search['span'];
  const name = asked !== undefined && Object.hasOwn(spans, asked) ? (asked as SpanName) : otherwise;
  const minute = Math.floor(Date.now() / minuteMs);
  return useMemo(() => {
    const from = new Date(minute * minuteMs - spans[name]).toISOString();
    return { name, ms: spans[name], query: { from } };
  }, [name, minute]);
}

export function SpanPicker({
  names,
  otherwise,
}: {
  readonly names: readonly SpanName[];
  readonly otherwise: SpanName;
}) {
  const { t } = useTranslation();
  const { name } = useSpan(otherwise);
  const [, change] = useSearchState();
  const data = names.map((value) => ({ value, label: t(`operator.span.${value}`) }));
  const pick = (value: string | null) => change({ span: value === otherwise || value === null ? undefined : value });
  return (
    <Group gap={0}>
      <SegmentedControl
        size="xs"
        data={data}
        value={name}
        onChange={pick}
        visibleFrom="sm"
        aria-label={t('operator.span.label')}
      />
      <Select
        size="xs"
        w={130}
        data={data}
        value={name}
        onChange={pick}
        hiddenFrom="sm"
        allowDeselect={false}
        aria-label={t('operator.span.label')}
      />
    </Group>
  );
}
