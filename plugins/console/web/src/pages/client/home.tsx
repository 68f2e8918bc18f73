/** A client's first page: balance, spend, latest errors, and how to make the first call. */
import { Anchor, Button, Grid, Stack, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { useLiveInterval, useLiveRefresh } from '../../api/live.ts';
import { has, useMe } from '../../api/session.ts';
import type { Home as HomeView } from '../../api/types.ts';
import { chartNumber, countText, meanUsd, moneyText } from '../../parts/format.ts';
import { Money, Refunded } from '../../parts/money.tsx';
import { OnSight } from '../../parts/on-sight.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { Stat, StatRow } from '../../parts/stat.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { viewerZone } from '../../parts/zone.tsx';
import { Grants, Windows } from './funds.tsx';
import { LastErrors, SpendByDay, SpendByModel } from './home-panels.tsx';

const SetUp = lazy(() => import('../../parts/set-up.tsx'));
const homeKey = ['home'] as const;

export default function Home() {
  const { t } = useTranslation();
  useLiveRefresh('balance', homeKey);
  const home = useQuery({
    queryKey: homeKey,
    queryFn: () => get<HomeView>('/home', { tz: viewerZone }),
    refetchInterval: useLiveInterval(15_000),
  });
  return (
    <Page title={t('client.home.title')}>
      {home.isPending && <Waiting height={400} />}
      {home.isError && home.data === undefined && <ErrorState error={home.error} onRetry={() => void home.refetch()} />}
      {home.data !== undefined && <Content home={home.data} />}
    </Page>
  );
}

function Content({ home }: { readonly home: HomeView }) {
  const { t } = useTranslation();
  const called = home.month.requests > 0;
  return (
    <Stack gap="md">
      <Numbers home={home} />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack gap="md">
            {!called && <FirstCall />}
            {called && <SpendByDay days={home.byDay} tz={home.tz} />}
            {(called || home.errors.length > 0) && <LastErrors rows={home.errors} />}
            {called && <FirstCall />}
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack gap="md">
            {home.pool !== null && <Funds pool={home.pool} />}
            <SpendByModel models={home.byModel} />
          </Stack>
        </Grid.Col>
      </Grid>
      {!called && (
        <Text fz="xs" c="dimmed">
          {t('client.home.quiet')}
        </Text>
      )}
    </Stack>
  );
}

const spentChange = ({ spent, before }: HomeView['today']) =>
  [spent === null ? null : chartNumber(spent), before.spent === null ? null : chartNumber(before.spent)] as const;

function Numbers({ home }: { readonly home: HomeView }) {
  const { t, i18n } = useTranslation();
  return (
    <StatRow>
      {home.pool !== null && (
        <Stat
          label={t('shell.balance')}
          value={<Money of={home.pool.balance} />}
          note={
            <>
              {t('client.home.spendable')} <Money of={home.pool.spendable} />
            </>
          }
          to="/wallet"
        />
      )}
      <Stat
        label={t('client.home.today')}
        value={<Money of={home.today.spent} />}
        change={spentChange(home.today)}
        note={
          <>
            {t('client.home.requests', {
              count: home.today.requests,
              number: countText(home.today.requests, i18n.language),
            })}
            <Refunded of={home.today.refunded} />
          </>
        }
        to="/usage"
        search={{ span: 'today' }}
      />
      <Stat
        label={t('client.home.month')}
        value={<Money of={home.month.spent} />}
        change={spentChange(home.month)}
        note={
          <>
            {t('client.home.perDay', { cost: moneyText(meanUsd(home.month.spent ?? '0', 30), i18n.language) })}
            <Refunded of={home.month.refunded} />
          </>
        }
        to="/usage"
        search={{ span: '30d' }}
      />
      <Stat
        label={t('client.home.calls')}
        value={countText(home.month.requests, i18n.language)}
        change={[home.month.requests, home.month.before.requests]}
        note={t('client.home.callsToday', { requests: countText(home.today.requests, i18n.language) })}
        to="/usage"
        search={{ span: '30d' }}
      />
    </StatRow>
  );
}

function Funds({ pool }: { readonly pool: NonNullable<HomeView['pool']> }) {
  const { t } = useTranslation();
  const empty = pool.grants.length === 0 && pool.windows.length === 0;
  return (
    <Panel
      title={t('client.home.funds')}
      actions={
        <Anchor fz="sm" renderRoot={(props) => <Link {...props} to="/wallet" />}>
          {t('client.wallet.title')}
        </Anchor>
      }
    >
      <Stack gap="lg">
        {empty && (
          <Text fz="sm" c="dimmed">
            {t('client.home.noFunds')}
          </Text>
        )}
        {pool.windows.length > 0 && <Windows of={pool.windows} />}
        {pool.grants.length > 0 && <Grants of={pool.grants} />}
      </Stack>
    </Panel>
  );
}

function FirstCall() {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <Panel
      title={t('client.home.firstCall')}
      hint={t('client.home.firstCallHint')}
      actions={
        has(me, 'accounts') && (
          <Button
            size="xs"
            leftSection={<IconKey size={15} />}
            renderRoot={(props) => <Link {...props} to="/keys" search={{ new: '1' }} />}
          >
            {t('client.keys.create')}
          </Button>
        )
      }
    >
      <OnSight height={260}>
        <Suspense fallback={<Waiting height={260} />}>
          <SetUp />
        </Suspense>
      </OnSight>
    </Panel>
  );
}
