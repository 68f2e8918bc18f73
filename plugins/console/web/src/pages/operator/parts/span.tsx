/** The time that a page looks at, kept in the address bar. */
import { Group, SegmentedControl, Select } from '@mantine/core';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { bucketMinutesOf, isSpanName, type SpanName, startOf } from '../../../parts/named-span.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import { viewerZone, ZoneName } from '../../../parts/zone.tsx';

const minuteMs = 60_000;

export interface AskedSpan {
  readonly name: SpanName;
  /** Until now. */
  readonly ms: number;
  readonly bucketMinutes: number | undefined;
  /** The API's parameters: `from` (until now) and the time zone. */
  readonly query: { readonly from: string; readonly tz: string };
}

/** The span of the address bar, or else the page's own. */
export function useSpan(otherwise: SpanName): AskedSpan {
  const [search] = useSearchState();
  const name = isSpanName(search['span']) ? search['span'] : otherwise;
  const minute = Math.floor(Date.now() / minuteMs);
  return useMemo(() => {
    const now = new Date(minute * minuteMs);
    const from = startOf(name, now);
    const query = { from: from.toISOString(), tz: viewerZone };
    return {
      name,
      ms: Math.max(minuteMs, now.getTime() - from.getTime()),
      bucketMinutes: bucketMinutesOf(name),
      query,
    };
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
    <Group gap="xs">
      <ZoneName />
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
