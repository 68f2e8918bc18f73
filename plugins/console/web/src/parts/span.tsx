/** The time that a page looks at, kept in the address bar: a span by its name, or from one moment until another. */
import { Button, Group, Popover, SegmentedControl, Select, Stack, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconCalendar } from '@tabler/icons-react';
import { type FormEvent, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { localMinute, momentText } from './format.ts';
import {
  barMinutesOf,
  before,
  bucketMinutesOf,
  calendarNames,
  endOf,
  isCalendarName,
  isSpanName,
  type SpanName,
  startOf,
} from './named-span.ts';
import { type SearchState, useSearchState } from './search-state.ts';
import { viewerZone, ZoneName } from './zone.tsx';

const minuteMs = 60_000;

type Times = {
  readonly from: string;
  readonly until?: string;
  readonly tz: string;
  readonly project?: string;
  readonly accountId?: string;
};

export interface ChosenSpan {
  readonly name: SpanName | 'custom';
  readonly ms: number;
  /** Length of a row by time, and of a bar of a chart; undefined: the API chooses. */
  readonly bucketMinutes: number | undefined;
  readonly barMinutes: number | undefined;
  /** The API's parameters: `from`, `until` (now) and the time zone. */
  readonly query: Times;
  /** The times of the span before, as long as this one, for comparison. */
  readonly previous: Times;
  /** The same span for the address of another page. */
  readonly search: Readonly<Record<string, string>>;
}

/** The span of the address bar, or else the page's own. */
export function useSpan(otherwise: SpanName): ChosenSpan {
  const [search] = useSearchState();
  const { span, from, until } = search;
  const minute = Math.floor(Date.now() / minuteMs);
  return useMemo(() => {
    const now = new Date(minute * minuteMs);
    const custom = span === 'custom' ? customSpan({ from, until }, now) : undefined;
    return custom ?? namedSpan(isSpanName(span) ? span : otherwise, now);
  }, [span, from, until, otherwise, minute]);
}

function namedSpan(name: SpanName, now: Date): ChosenSpan {
  const [start, end] = [startOf(name, now), endOf(name, now)];
  return {
    name,
    ms: Math.max(minuteMs, (end ?? now).getTime() - start.getTime()),
    bucketMinutes: bucketMinutesOf(name),
    barMinutes: barMinutesOf(name),
    query: { from: start.toISOString(), ...(end && { until: end.toISOString() }), tz: viewerZone },
    previous: {
      from: before(name, start).toISOString(),
      until: before(name, end ?? now).toISOString(),
      tz: viewerZone,
    },
    search: { span: name },
  };
}

/** undefined: there is no beginning, or it is not before the end. */
function customSpan({ from, until }: SearchState, now: Date): ChosenSpan | undefined {
  const start = Date.parse(from ?? '');
  const end = until === undefined ? now.getTime() : Date.parse(until);
  if (!(start < end)) return undefined;
  const iso = (at: number) => new Date(at).toISOString();
  return {
    name: 'custom',
    ms: end - start,
    bucketMinutes: undefined,
    barMinutes: undefined,
    query: { from: iso(start), until: iso(end), tz: viewerZone },
    previous: { from: iso(start - (end - start)), until: iso(start), tz: viewerZone },
    search: { span: 'custom', from: from!, ...(until === undefined ? {} : { until }) },
  };
}

interface PickerProps {
  readonly names: readonly SpanName[];
  readonly otherwise: SpanName;
}

export function SpanPicker({ names, otherwise }: PickerProps) {
  const { t } = useTranslation();
  const { name } = useSpan(otherwise);
  const [, change] = useSearchState();
  const shown = (values: readonly SpanName[]) => values.map((value) => ({ value, label: t(`shell.span.${value}`) }));
  const data = shown(names);
  const pick = (value: string | null) =>
    change({ span: value === otherwise || value === null ? undefined : value, from: undefined, until: undefined });
  return (
    <Group gap="xs">
      <ZoneName />
      <SegmentedControl
        size="xs"
        data={data}
        // A value that is not among them: none is chosen.
        value={name}
        onChange={pick}
        visibleFrom="sm"
        aria-label={t('shell.span.label')}
      />
      <Select
        size="xs"
        w={118}
        data={[...data, ...shown(calendarNames)]}
        value={name === 'custom' ? null : name}
        placeholder={t('shell.span.custom')}
        onChange={pick}
        hiddenFrom="sm"
        allowDeselect={false}
        aria-label={t('shell.span.label')}
      />
      <CustomSpan otherwise={otherwise} />
    </Group>
  );
}

/** A day or month of the calendar, or from one moment until another, in the viewer's own time. */
function CustomSpan({ otherwise }: { readonly otherwise: SpanName }) {
  const { t, i18n } = useTranslation();
  const [search, change] = useSearchState();
  const [opened, dialog] = useDisclosure(false);
  const { name } = useSpan(otherwise);
  const isCustom = search['span'] === 'custom' && search['from'] !== undefined;
  const calendar = isCalendarName(name) ? t(`shell.span.${name}`) : t('shell.span.custom');
  const pick = (span: SpanName) => {
    change({ span, from: undefined, until: undefined });
    dialog.close();
  };
  const text = (at: string | undefined) =>
    at === undefined ? t('shell.span.now') : momentText(new Date(at), new Date(), i18n.language);
  return (
    <Popover opened={opened} onChange={dialog.toggle} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          size="xs"
          variant={isCustom || isCalendarName(name) ? 'light' : 'default'}
          leftSection={<IconCalendar size={14} aria-hidden />}
          onClick={dialog.toggle}
        >
          {isCustom ? `${text(search['from'])} – ${text(search['until'])}` : calendar}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Group gap={6} mb="sm" wrap="nowrap">
          {calendarNames.map((value) => (
            <Button
              key={value}
              size="compact-xs"
              variant={value === name ? 'filled' : 'light'}
              aria-pressed={value === name}
              onClick={() => pick(value)}
            >
              {t(`shell.span.${value}`)}
            </Button>
          ))}
        </Group>
        <CustomForm
          from={search['from']}
          until={search['until']}
          onDone={(times) => {
            change({ span: 'custom', ...times });
            dialog.close();
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

interface CustomFormProps {
  readonly from: string | undefined;
  readonly until: string | undefined;
  readonly onDone: (times: { readonly from: string; readonly until: string | undefined }) => void;
}

function CustomForm({ from, until, onDone }: CustomFormProps) {
  const { t } = useTranslation();
  const local = (at: string | undefined) => (at === undefined ? '' : localMinute(new Date(at)));
  const [start, setStart] = useState(() => local(from) || localMinute(new Date(Date.now() - 24 * 60 * minuteMs)));
  const [end, setEnd] = useState(() => local(until));
  const ordered = start !== '' && (end === '' || start < end);
  const apply = (event: FormEvent) => {
    event.preventDefault();
    if (!ordered) return;
    onDone({ from: new Date(start).toISOString(), until: end === '' ? undefined : new Date(end).toISOString() });
  };
  return (
    <form onSubmit={apply}>
      <Stack gap="xs">
        <TextInput
          size="xs"
          type="datetime-local"
          label={t('shell.span.from')}
          value={start}
          onChange={({ currentTarget }) => setStart(currentTarget.value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label={t('shell.span.until')}
          description={t('shell.span.untilHint')}
          error={ordered ? undefined : t('shell.span.order')}
          value={end}
          onChange={({ currentTarget }) => setEnd(currentTarget.value)}
        />
        <Button type="submit" size="xs" disabled={!ordered}>
          {t('shell.span.apply')}
        </Button>
      </Stack>
    </form>
  );
}
