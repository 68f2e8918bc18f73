/** Money as a whole: income and cost by day, whether the ledger is consistent, and every row of the ledger. */
import { Stack, Tabs, Text } from '@mantine/core';
import { IconCoins } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { type ChosenSpan, SpanPicker, useSpan } from '../../../parts/span.tsx';
import { Stat, StatRow } from '../../../parts/stat.tsx';
import { EmptyState, Waiting } from '../../../parts/states.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { MarginStat } from '../parts/margin.tsx';
import type { MoneyTotals } from '../sale-types.ts';
import { isNothing, minus, sum, usdChange } from '../sums/usd.ts';
import type { MonitorSeries } from '../types.ts';
import { LedgerTable } from './ledger-table.tsx';
import { Reconcile } from './reconcile.tsx';
import { Uncosted } from './uncosted.tsx';

const Days = lazy(() => import('./days.tsx'));
const tabs = ['overview', 'ledger'] as const;

export default function MoneyPage() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const tab = tabs.find((one) => one === search['tab']) ?? 'overview';
  const titles = { overview: t('operator.sales.money.byDay'), ledger: t('client.wallet.ledger') };
  const pick = (value: string | null) =>
    change({ tab: value === 'overview' ? undefined : (value ?? undefined), kind: undefined });
  return (
    <Page
      title={t('operator.sales.money.title')}
      hint={t('operator.sales.money.intro')}
      actions={
        tab === 'overview' ? <SpanPicker names={['today', '24h', '7d', '30d', '90d']} otherwise="30d" /> : undefined
      }
    >
      <Tabs value={tab} onChange={pick} keepMounted={false}>
        <Tabs.List mb="md">
          {tabs.map((value) => (
            <Tabs.Tab key={value} value={value}>
              {titles[value]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="overview">
          <Overview />
        </Tabs.Panel>
        <Tabs.Panel value="ledger">
          <LedgerTable
            empty={
              <EmptyState
                icon={IconCoins}
                title={t('operator.sales.money.empty')}
                hint={t('operator.sales.money.emptyHint')}
              />
            }
          />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Overview() {
  const span = useSpan('30d');
  const totals = useAnswer<MoneyTotals>('/admin/money', span.query);
  const before = useAnswer<MoneyTotals>('/admin/money', span.previous).data;
  return (
    <Stack gap="lg">
      {/* Above all that is loaded: what comes later would move its button away from under the pointer. */}
      <Reconcile />
      <Loaded of={totals} height={200}>
        {(data) => <Totals totals={data} before={before} span={span} />}
      </Loaded>
      {has(useMe(), 'requests') && <ByDay span={span} />}
      {has(useMe(), 'requests') && totals.data?.ownCostUnknown ? <Uncosted span={span} /> : null}
    </Stack>
  );
}

function ByDay({ span }: { readonly span: ChosenSpan }) {
  const { t } = useTranslation();
  const { query, bucketMinutes } = span;
  const series = useAnswer<MonitorSeries>('/admin/monitor/series', { ...query, bucketMinutes });
  return (
    <Loaded of={series} height={280}>
      {(data) => (
        <Suspense fallback={<Waiting height={280} />}>
          <Panel title={t('operator.sales.money.chart')} flush>
            <Days series={data} />
          </Panel>
        </Suspense>
      )}
    </Loaded>
  );
}

interface TotalsProps {
  readonly totals: MoneyTotals;
  /** The same of the time before; undefined: not known yet. */
  readonly before: MoneyTotals | undefined;
  readonly span: ChosenSpan;
}

function Totals({ totals, before, span }: TotalsProps) {
  const { t } = useTranslation();
  const { cost, refunded, ownCost, writtenOff } = totals;
  const rows = (kind?: string) => ({
    to: '/admin/money',
    search: { tab: 'ledger', ...span.search, ...(kind === undefined ? {} : { kind }) },
  });
  const requests = { to: '/admin/requests', search: { ...span.search } };
  return (
    <Stack gap="sm">
      <StatRow>
        <Stat
          label={t('operator.sales.money.charged')}
          value={<Money of={cost} />}
          change={usdChange(cost, before?.cost)}
          note={
            <>
              {t('operator.sales.money.chargedHint')} · {t('operator.sales.money.refunded')} <Money of={refunded} />
            </>
          }
          {...rows('CHARGE')}
        />
        <Stat
          label={t('operator.column.ownCost')}
          value={ownCost === null ? t('operator.unknown') : <Money of={ownCost} />}
          change={usdChange(ownCost, before?.ownCost)}
          note={t('operator.sales.money.ownCostHint')}
          {...requests}
        />
        <Stat
          label={t('operator.column.writtenOff')}
          value={<Money of={writtenOff} />}
          change={usdChange(writtenOff, before?.writtenOff)}
          note={t('operator.sales.money.writtenOffHint')}
          to="/admin/requests"
          search={{ ...span.search, result: 'upstream_error' }}
        />
        <MarginStat sums={totals} before={before} {...requests} />
      </StatRow>
      <Text fz="xs" c="dimmed">
        {t('operator.traffic.monitor.marginWords')}
      </Text>
      <Flows totals={totals} before={before} rows={rows} />
    </Stack>
  );
}

interface FlowsProps extends Pick<TotalsProps, 'totals' | 'before'> {
  /** The ledger's rows of a kind. */
  readonly rows: (kind?: string) => { readonly to: string; readonly search: Readonly<Record<string, string>> };
}

/** Where the accounts' money came from, and what became of it. */
const cashIn = ({ card, byHand, paidBack }: MoneyTotals) => minus(sum([card, byHand]), paidBack);
const given = (of: MoneyTotals) => sum([of.givenByPlans, of.givenByCodes, of.givenByPromotions]);
const used = ({ usedPaid, usedGiven }: MoneyTotals) => sum([usedPaid, usedGiven]);

function Flows({ totals, before, rows }: FlowsProps) {
  const { t } = useTranslation();
  const change = (of: (totals: MoneyTotals) => string) => usdChange(of(totals), before && of(before));
  const { card, byHand, paidBack, givenByPlans, givenByCodes, givenByPromotions, usedPaid, usedGiven, owed } = totals;
  const parts = (of: readonly (readonly [name: FlowPart, amount: string])[]) =>
    of
      .filter(([, amount]) => !isNothing(amount))
      .map(([name, amount], index) => (
        <span key={name}>
          {index > 0 && ' · '}
          {t(`operator.sales.money.part.${name}`)} <Money of={amount} />
        </span>
      ));
  return (
    <>
      <StatRow>
        <Stat
          label={t('operator.sales.money.cashIn')}
          value={<Money of={cashIn(totals)} />}
          change={change(cashIn)}
          note={parts([
            ['card', card],
            ['byHand', byHand],
            ['paidBack', paidBack],
          ])}
          {...rows('CREDIT')}
        />
        <Stat
          label={t('operator.sales.money.given')}
          value={<Money of={given(totals)} />}
          change={change(given)}
          note={parts([
            ['plans', givenByPlans],
            ['codes', givenByCodes],
            ['promotions', givenByPromotions],
            ['lapsed', totals.lapsed],
          ])}
          {...rows('CREDIT')}
        />
        <Stat
          label={t('operator.sales.money.used')}
          value={<Money of={used(totals)} />}
          change={change(used)}
          note={parts([
            ['usedPaid', usedPaid],
            ['usedGiven', usedGiven],
            ['sold', totals.sold],
            ['debited', totals.debited],
          ])}
          {...rows()}
        />
        <Stat
          label={t('operator.sales.money.owed')}
          value={<Money of={owed} />}
          note={t('operator.sales.money.owedHint')}
        />
      </StatRow>
      <Text fz="xs" c="dimmed">
        {t('operator.sales.money.flowWords')}
      </Text>
    </>
  );
}

type FlowPart =
  | ('card' | 'byHand' | 'paidBack' | 'plans' | 'codes')
  | ('promotions' | 'lapsed' | 'usedPaid' | 'usedGiven' | 'sold' | 'debited');
