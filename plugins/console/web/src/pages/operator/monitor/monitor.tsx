/** Live traffic of the gateway: counts, errors, waits, money, and their sources. */
import { Stack, Tabs, Text } from '@mantine/core';
import { IconActivity } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { useConnected, useLiveInterval } from '../../../api/live.ts';
import { has, useMe } from '../../../api/session.ts';
import { ActivityPanel, type Metric } from '../../../parts/activity.tsx';
import { AnswerCacheTable } from '../../../parts/answer-cache.tsx';
import { CachedTable } from '../../../parts/cached-tokens.tsx';
import { chartNumber, countText, durationText, shareText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { projectName, spanOfProject } from '../../../parts/project.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import { type ChosenSpan, SpanPicker, useSpan } from '../../../parts/span.tsx';
import { Stat, StatRow } from '../../../parts/stat.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { alertsPath, useAlertTexts } from '../alerts/alert-texts.ts';
import { marksOf } from '../alerts/chart-marks.ts';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { MarginStat } from '../parts/margin.tsx';
import { shortId, useAccountNames } from '../parts/names.tsx';
import { ProjectFilter, useProjects } from '../parts/projects.tsx';
import type { Alert, DurationRow, GroupName, MonitorSeries, Page as PageOf, Monitor as Sums } from '../types.ts';
import { rateText } from './bucket-label.ts';
import { Causes } from './causes.tsx';
import Charts from './charts.tsx';
import Durations from './durations.tsx';
import { GroupsTable } from './groups-table.tsx';
import { useMonitorRefresh } from './use-refresh.ts';

const spanNames = ['15m', '1h', 'today', '24h', '7d', '30d'] as const;

export default function Monitor() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const span = spanOfProject(useSpan('1h'), search['project']);
  const every = useLiveInterval(10_000);
  useMonitorRefresh();
  const sums = useAnswer<Sums>('/admin/monitor', span.query, every);
  const before = useAnswer<Sums>('/admin/monitor', span.previous).data;
  return (
    <Page
      title={t('operator.traffic.monitor.title')}
      hint={
        <>
          {t('operator.traffic.monitor.intro')} <LiveMark />
        </>
      }
      actions={
        <>
          <ProjectFilter />
          <Steady>
            <SpanPicker names={spanNames} otherwise="1h" />
          </Steady>
        </>
      }
      dense
    >
      {sums.data?.requests === 0 && <Nothing />}
      <Steady>
        <Activity sums={sums.data} before={before} span={span} />
        <Loaded of={sums} height={48}>
          {(data) => <Others sums={data} before={before} span={span} />}
        </Loaded>
        <Parts span={span} />
      </Steady>
    </Page>
  );
}

function Nothing() {
  const { t } = useTranslation();
  return (
    <Panel>
      <EmptyState
        icon={IconActivity}
        title={t('operator.traffic.monitor.empty')}
        hint={t('operator.traffic.monitor.emptyHint')}
      />
    </Panel>
  );
}

/** Beside the sums of the shown time. */
interface Compared {
  readonly before: Sums | undefined;
  readonly span: ChosenSpan;
}

/** The figures that are drawn, each with its change. */
function Activity({ sums, before, span }: Compared & { readonly sums: Sums | undefined }) {
  const { t } = useTranslation();
  const names = useAccountNames();
  const withAccounts = has(useMe(), 'accounts');
  const hasProjects = useProjects().length > 0;
  const by = (['model', 'provider', 'account', 'project', 'operation'] as const).filter(
    (name) => (name !== 'account' || withAccounts) && (name !== 'project' || hasProjects),
  );
  return (
    <ActivityPanel
      path="/admin/monitor/activity"
      query={{}}
      span={span}
      metrics={useMetrics(sums, before, span)}
      by={by.map((value) => ({ value, label: t(`shell.word.${value}`) }))}
      nameOf={(name, group) => {
        if (name === 'project') return projectName(group, t('shell.project.none'));
        return name === 'account' ? (names?.get(group) ?? shortId(group)) : group;
      }}
      refetchMs={30_000}
      height={90}
      marks={useMarks(span)}
    />
  );
}

/** Alerts that ran in the shown time, in the points of a chart. */
function useMarks(span: ChosenSpan): (starts: readonly number[], bucketMs: number) => ReturnType<typeof marksOf> {
  const { title } = useAlertTexts();
  const { tz: _zone, project: _project, ...times } = span.query;
  const query = { ...times, limit: 100 };
  const alerts = useAnswer<PageOf<Alert>>(alertsPath, query, 30_000, has(useMe(), 'alerts')).data?.rows ?? [];
  return (starts, bucketMs) => marksOf(alerts, starts, bucketMs, (alert) => `${title(alert)}: ${alert.subject}`);
}

function useMetrics(now: Sums | undefined, before: Sums | undefined, span: ChosenSpan): readonly Metric[] {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  const rows = (result?: string) => ({
    to: '/admin/requests',
    search: { ...span.search, ...(result === undefined ? {} : { result }) },
  });
  const amount = (sums: Sums | undefined) => (sums?.cost ? chartNumber(sums.cost) : undefined);
  const traffic: readonly Metric[] = [
    {
      name: 'requests',
      label: t('shell.word.requests'),
      value: now && count(now.requests),
      note: now && t('operator.traffic.monitor.rate', { rate: rateText(now.requests, span.ms, i18n.language) }),
      change: [now?.requests, before?.requests],
      to: rows(),
    },
    {
      name: 'errors',
      label: t('operator.column.errors'),
      value: now && count(now.results.upstream_error),
      note:
        now &&
        t('operator.traffic.monitor.upstreamErrorsHint', {
          percent: shareText(now.results.upstream_error, now.requests, i18n.language),
        }),
      change: [now?.results.upstream_error, before?.results.upstream_error],
      tone: now && now.results.upstream_error > 0 ? 'bad' : undefined,
      to: rows('upstream_error'),
    },
    {
      name: 'firstByte',
      label: t('operator.overview.firstByte'),
      value: now && durationText(now.firstByte.p50),
      note:
        now &&
        t('operator.traffic.monitor.percentiles', {
          p95: durationText(now.firstByte.p95),
          p99: durationText(now.firstByte.p99),
        }),
      change: [now?.firstByte.p50, before?.firstByte.p50],
      to: rows(),
    },
  ];
  if (now?.cost === null) return traffic;
  return [
    ...traffic,
    {
      name: 'tokens',
      label: t('operator.column.tokens'),
      value: now && (now.tokens === null ? '–' : count(now.tokens)),
      change: [now?.tokens, before?.tokens],
    },
    {
      name: 'cost',
      label: t('operator.column.cost'),
      value: now && <Money of={now.cost} />,
      change: [amount(now), amount(before)],
      // The ledger does not know projects.
      ...(span.query.project === undefined
        ? { to: { to: '/admin/money', search: { tab: 'ledger', kind: 'CHARGE', ...span.search } } }
        : {}),
    },
  ];
}

/** The figures that are not drawn, each with its change. */
function Others({ sums, before, span }: Compared & { readonly sums: Sums }) {
  const { t, i18n } = useTranslation();
  const { requests, refused, results, total } = sums;
  const count = (value: number) => countText(value, i18n.language);
  const rows = (result?: string) => ({
    to: '/admin/requests',
    search: { ...span.search, ...(result === undefined ? {} : { result }) },
  });
  return (
    <StatRow slim>
      <Stat
        label={t('operator.traffic.monitor.successRate')}
        value={shareText(results.ok, requests, i18n.language)}
        note={t('operator.traffic.monitor.successHint', { shown: count(results.ok) })}
        change={[successOf(sums), successOf(before)]}
        {...rows('ok')}
      />
      <Stat
        label={t('operator.traffic.monitor.clientErrors')}
        value={count(results.client_error)}
        note={
          <>
            {t('operator.traffic.monitor.left', { count: results.left, number: count(results.left) })}
            {refused > 0 && ` · ${t('client.usage.unserved', { number: count(refused) })}`}
          </>
        }
        change={[results.client_error, before?.results.client_error]}
        {...rows('client_error')}
      />
      <Stat
        label={t('operator.traffic.monitor.total')}
        value={durationText(total.p50)}
        note={t('operator.traffic.monitor.percentiles', { p95: durationText(total.p95), p99: durationText(total.p99) })}
        change={[total.p50, before?.total.p50]}
        {...rows()}
      />
      {sums.cost !== null && <MarginStat sums={sums} before={before} to="/admin/money" search={span.search} />}
    </StatRow>
  );
}

const successOf = (sums: Sums | undefined) =>
  sums === undefined || sums.requests === 0 ? undefined : sums.results.ok / sums.requests;

/** Where the traffic comes from and goes to, why it fails and how long it takes: one at a time. */
function Parts({ span }: { readonly span: ChosenSpan }) {
  const { t } = useTranslation();
  const me = useMe();
  const [search, change] = useSearchState();
  const hasProjects = useProjects().length > 0;
  const names: readonly GroupName[] = [
    ...(['model', 'provider'] as const),
    ...(has(me, 'accounts') ? (['account'] as const) : []),
    ...(hasProjects ? (['project'] as const) : []),
    'operation',
  ];
  const title = {
    model: t('operator.traffic.monitor.byModel'),
    provider: t('operator.traffic.monitor.byProvider'),
    account: t('operator.traffic.monitor.byAccount'),
    project: t('operator.traffic.monitor.byProject'),
    operation: t('operator.traffic.monitor.byOperation'),
    key: t('shell.word.key'),
    causes: t('operator.traffic.causes.title'),
    cached: t('client.cached.title'),
    times: t('operator.traffic.monitor.latencyChart'),
  };
  const tabs = [...names, 'cached', 'causes', 'times'] as const;
  const shown = tabs.find((name) => name === search['part']) ?? 'model';
  return (
    <Panel flush>
      <Tabs
        value={shown}
        onChange={(part) => change({ part: part === 'model' ? undefined : (part ?? undefined) })}
        keepMounted={false}
        className="monitor-parts"
      >
        <Tabs.List px="xs">
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {title[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {names.map((name) => (
          <Tabs.Panel key={name} value={name}>
            <GroupsTable by={name} span={span} label={title[name]} />
          </Tabs.Panel>
        ))}
        <Tabs.Panel value="cached">
          <CachedTable path="/admin/monitor/cached" query={span.query} />
          <AnswerCacheTable path="/admin/monitor/answer-cache" query={span.query} />
        </Tabs.Panel>
        <Tabs.Panel value="causes">
          <Causes span={span} />
        </Tabs.Panel>
        <Tabs.Panel value="times" p="md">
          <Times span={span} />
        </Tabs.Panel>
      </Tabs>
    </Panel>
  );
}

function Times({ span }: { readonly span: ChosenSpan }) {
  const series = useAnswer<MonitorSeries>(
    '/admin/monitor/series',
    { ...span.query, bucketMinutes: span.barMinutes },
    30_000,
  );
  const durations = useAnswer<{ rows: readonly DurationRow[] }>('/admin/monitor/durations', span.query, 30_000);
  return (
    <Stack gap="lg">
      <Loaded of={series} height={240}>
        {(data) => <Charts series={data} />}
      </Loaded>
      <Loaded of={durations} height={200}>
        {({ rows }) => <Durations rows={rows} />}
      </Loaded>
    </Stack>
  );
}

/** Says whether the figures are pushed, or asked for every few seconds. */
function LiveMark() {
  const { t } = useTranslation();
  const connected = useConnected();
  return (
    <Text span fz="xs" role="status" className="nowrap">
      <span className="live-dot" data-on={connected || undefined} aria-hidden />{' '}
      {connected ? t('shell.live.on') : t('shell.live.off')}
    </Text>
  );
}
