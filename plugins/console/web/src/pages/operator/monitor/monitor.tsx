/** What goes through the gateway, as it happens: counts, errors, waits, money, and who causes them. */
import { Group, SimpleGrid, Tabs, Text } from '@mantine/core';
import { IconActivity } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { useConnected, useLiveInterval } from '../../../api/live.ts';
import { has, useMe } from '../../../api/session.ts';
import { countText, durationText, shareText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { Stat, StatRow } from '../../../parts/stat.tsx';
import { EmptyState, Waiting } from '../../../parts/states.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { type AskedSpan, SpanPicker, useSpan } from '../parts/span.tsx';
import { isNegative, percentOf } from '../sums/usd.ts';
import type { GroupName, MonitorSeries, Monitor as Sums } from '../types.ts';
import { rateText } from './bucket-label.ts';
import { GroupsTable } from './groups-table.tsx';
import { useMonitorRefresh } from './use-refresh.ts';

const Charts = lazy(() => import('./charts.tsx'));
const spanNames = ['15m', '1h', 'today', '24h', '7d', '30d'] as const;

/** Finer than money by day is drawn. */
const bucketsIn = (name: string) => (name === '7d' ? 180 : name === '30d' ? 1_440 : undefined);

export default function Monitor() {
  const { t } = useTranslation();
  const span = useSpan('1h');
  const every = useLiveInterval(10_000);
  useMonitorRefresh();
  const sums = useAnswer<Sums>('/admin/monitor', span.query, every);
  const series = useAnswer<MonitorSeries>(
    '/admin/monitor/series',
    { ...span.query, bucketMinutes: bucketsIn(span.name) },
    30_000,
  );
  return (
    <Page
      title={t('operator.traffic.monitor.title')}
      hint={t('operator.traffic.monitor.intro')}
      actions={
        <>
          <LiveMark />
          <SpanPicker names={spanNames} otherwise="1h" />
        </>
      }
    >
      <Loaded of={sums} height={220}>
        {(data) => (data.requests === 0 ? <Nothing /> : <Figures sums={data} span={span} />)}
      </Loaded>
      <Loaded of={series} height={260}>
        {(data) => (
          <Suspense fallback={<Waiting height={260} />}>
            <Charts series={data} />
          </Suspense>
        )}
      </Loaded>
      <Groups span={span} />
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

function Figures({ sums, span }: { readonly sums: Sums; readonly span: AskedSpan }) {
  return (
    <>
      <Counts sums={sums} span={span} />
      <WaitsAndMoney sums={sums} span={span} />
    </>
  );
}

interface FiguresProps {
  readonly sums: Sums;
  readonly span: AskedSpan;
}

function Counts({ sums, span }: FiguresProps) {
  const { t, i18n } = useTranslation();
  const { requests, results } = sums;
  const rows = { to: '/admin/requests', search: { span: span.name } };
  const count = (value: number) => countText(value, i18n.language);
  const rowsOf = (result: string) => ({ to: rows.to, search: { ...rows.search, result } });
  return (
    <StatRow>
      <Stat
        label={t('operator.traffic.monitor.perSecond')}
        value={rateText(requests, span.ms)}
        note={`${count(requests)} ${t('operator.traffic.monitor.requestCount')}`}
        {...rows}
      />
      <Stat
        label={t('operator.traffic.monitor.successRate')}
        value={shareText(results.ok, requests, i18n.language)}
        note={t('operator.traffic.monitor.successHint', { shown: count(results.ok) })}
        {...rowsOf('ok')}
      />
      <Stat
        label={t('operator.traffic.monitor.upstreamErrors')}
        value={count(results.upstream_error)}
        tone={results.upstream_error > 0 ? 'bad' : undefined}
        note={t('operator.traffic.monitor.upstreamErrorsHint', {
          percent: shareText(results.upstream_error, requests, i18n.language),
        })}
        {...rowsOf('upstream_error')}
      />
      <Stat
        label={t('operator.traffic.monitor.clientErrors')}
        value={count(results.client_error)}
        note={`${count(results.left)} ${t('operator.traffic.monitor.left')}`}
        {...rowsOf('client_error')}
      />
    </StatRow>
  );
}

function WaitsAndMoney({ sums, span }: FiguresProps) {
  const { t } = useTranslation();
  const { firstByte, total, cost, ownCost, ownCostUnknown, margin } = sums;
  const unknownNote = ownCostUnknown ? t('operator.traffic.monitor.noCost', { count: ownCostUnknown }) : undefined;
  const rows = { to: '/admin/requests', search: { span: span.name } };
  const others = ({ p95, p99 }: Sums['total']) =>
    t('operator.traffic.monitor.percentiles', { p95: durationText(p95), p99: durationText(p99) });
  const share = margin === null || cost === null ? undefined : percentOf(margin, cost);
  return (
    <StatRow>
      <Stat
        label={t('operator.traffic.monitor.firstByte')}
        value={durationText(firstByte.p50)}
        note={others(firstByte)}
        {...rows}
      />
      <Stat
        label={t('operator.traffic.monitor.total')}
        value={durationText(total.p50)}
        note={others(total)}
        {...rows}
      />
      <Stat
        label={t('operator.traffic.monitor.spend')}
        value={<Money of={cost} />}
        note={
          <>
            {t('operator.traffic.monitor.ownCost')} {ownCost === null ? t('operator.unknown') : <Money of={ownCost} />}
          </>
        }
        to="/admin/money"
        search={{ tab: 'ledger', kind: 'CHARGE' }}
      />
      <Stat
        label={t('operator.traffic.monitor.margin')}
        value={margin === null && cost !== null ? t('operator.unknown') : <Money of={margin} />}
        tone={margin !== null && isNegative(margin) ? 'bad' : undefined}
        note={share === undefined ? unknownNote : t('operator.traffic.monitor.marginHint', { percent: `${share} %` })}
        to="/admin/money"
      />
    </StatRow>
  );
}

function Groups({ span }: { readonly span: AskedSpan }) {
  const { t } = useTranslation();
  const me = useMe();
  const names: readonly GroupName[] = has(me, 'accounts')
    ? ['model', 'provider', 'account', 'operation']
    : ['model', 'provider', 'operation'];
  const title = {
    model: t('operator.traffic.monitor.byModel'),
    provider: t('operator.traffic.monitor.byProvider'),
    account: t('operator.traffic.monitor.byAccount'),
    operation: t('operator.traffic.monitor.byOperation'),
    key: t('operator.column.key'),
  };
  return (
    <SimpleGrid cols={1}>
      <Panel flush>
        <Tabs defaultValue="model" keepMounted={false}>
          <Tabs.List px="xs">
            {names.map((name) => (
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
        </Tabs>
      </Panel>
    </SimpleGrid>
  );
}

/** Says whether the figures are pushed, or asked for every few seconds. */
function LiveMark() {
  const { t } = useTranslation();
  const connected = useConnected();
  return (
    <Group gap={6} wrap="nowrap" role="status">
      <span className="live-dot" data-on={connected || undefined} aria-hidden />
      <Text fz="xs" c="dimmed">
        {connected ? t('shell.live.on') : t('shell.live.off')}
      </Text>
    </Group>
  );
}
