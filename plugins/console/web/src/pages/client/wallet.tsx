/** A client's money: what there is, how to fill it, plans for sale, every movement. */
import { Anchor, Grid, Group, Stack, Text } from '@mantine/core';
import { IconListDetails } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { useLiveInterval, useLiveRefresh } from '../../api/live.ts';
import { has, useMe } from '../../api/session.ts';
import type { LedgerRow, Pool } from '../../api/types.ts';
import { walletKey } from '../../parts/balance-chip.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { chartNumber } from '../../parts/format.ts';
import { CallWords, KindFilter, useLedgerColumns } from '../../parts/ledger.tsx';
import { Money } from '../../parts/money.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { SavedViews } from '../../parts/saved-views.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../parts/span.tsx';
import { Stat, StatRow } from '../../parts/stat.tsx';
import { EmptyState, ErrorState, Waiting } from '../../parts/states.tsx';
import { Steady } from '../../parts/steady.tsx';
import { Time } from '../../parts/time.tsx';
import { Grants, Windows } from './funds.tsx';
import { PlanCards } from './plan-cards.tsx';
import { Redeem } from './redeem.tsx';
import { TopUp } from './top-up.tsx';

const CreditLine = lazy(() => import('../credit-line/credit-line.tsx'));
const Statements = lazy(() => import('../statements/statements.tsx'));
const spanNames = ['today', '7d', '30d', '90d'] as const;

export default function Wallet() {
  const { t } = useTranslation();
  const me = useMe();
  const [search] = useSearchState();
  useLiveRefresh('balance', walletKey);
  const pool = useQuery({
    queryKey: walletKey,
    queryFn: () => get<Pool>('/wallet'),
    refetchInterval: useLiveInterval(10_000),
  });
  const statements = has(me, 'statements') && (
    <Suspense fallback={<Waiting />}>
      <Statements path="/statements" />
    </Suspense>
  );
  // One that is open stands alone, as it is printed.
  if (statements && search['statement'] !== undefined)
    return <Page title={t('client.wallet.title')}>{statements}</Page>;
  return (
    <Page title={t('client.wallet.title')} hint={t('client.wallet.hint')}>
      {pool.isError && pool.data === undefined && <ErrorState error={pool.error} onRetry={() => void pool.refetch()} />}
      {pool.data === undefined ? !pool.isError && <Waiting /> : <Funds pool={pool.data} />}
      {has(me, 'creditLines') && (
        <Suspense fallback={null}>
          <CreditLine path="/credit-line" />
        </Suspense>
      )}
      {has(me, 'codes') && <PlanCards pool={pool.data} />}
      {has(me, 'money') && (
        <Steady>
          <Ledger />
        </Steady>
      )}
      {statements}
    </Page>
  );
}

function Funds({ pool }: { readonly pool: Pool }) {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <Stack gap="md">
      <StatRow>
        <Stat
          label={t('shell.balance')}
          value={<Money of={pool.balance} />}
          note={
            <>
              {t('client.wallet.held')} <Money of={pool.held} />
            </>
          }
        />
        <Stat
          label={t('client.wallet.spendable')}
          value={<Money of={pool.spendable} />}
          note={
            chartNumber(pool.blocked) > 0 ? (
              <>
                {t('client.wallet.blocked')} <Money of={pool.blocked} />
              </>
            ) : undefined
          }
        />
        <Stat
          label={t('shell.word.plan')}
          value={me.account?.plan ?? '–'}
          note={
            pool.term?.endsAt ? (
              <>
                {t('client.wallet.planUntil')} <Time at={pool.term.endsAt} />
              </>
            ) : undefined
          }
        />
      </StatRow>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack gap="md">
            <Panel title={t('client.wallet.grants')} hint={t('client.wallet.grantsHint')}>
              {pool.grants.length === 0 ? (
                <Text fz="sm" c="dimmed">
                  {t('client.wallet.noGrants')}
                </Text>
              ) : (
                <Grants of={pool.grants} />
              )}
            </Panel>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack gap="md">
            {has(me, 'shop') && <Redeem />}
            {has(me, 'payments') && <TopUp />}
            {pool.windows.length > 0 && (
              <Panel title={t('client.wallet.windows')}>
                <Windows of={pool.windows} />
              </Panel>
            )}
          </Stack>
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

function Ledger() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const span = useSpan('90d');
  const columns = useLedgerColumns({ why: (row) => <Note row={row} /> });
  return (
    <Panel flush title={t('client.wallet.ledger')} hint={t('client.wallet.ledgerHint')}>
      <Group gap="xs" className="filters" px="md" pb="sm">
        <SpanPicker names={spanNames} otherwise="90d" />
        <KindFilter />
        <SavedViews />
      </Group>
      <DataTable
        label={t('client.wallet.ledger')}
        path="/wallet/ledger"
        query={{ ...span.query, kind: search['kind'] }}
        csv="/wallet/ledger.csv"
        columns={columns}
        rowKey={({ seq }) => seq}
        empty={
          <EmptyState
            icon={IconListDetails}
            title={t('client.wallet.noLedger')}
            hint={t('client.wallet.noLedgerHint')}
          />
        }
      />
    </Panel>
  );
}

function Note({ row }: { readonly row: LedgerRow }) {
  const { t } = useTranslation();
  return (
    <Text fz="sm" component="div" className="breaks">
      {row.kind === 'CHARGE' ? <CallWords row={row} /> : row.reason}{' '}
      {row.requestId !== null && (
        <Anchor
          fz="sm"
          renderRoot={(props) => <Link {...props} to="/usage" search={{ open: row.requestId as string }} />}
        >
          {t('client.usage.request')}
        </Anchor>
      )}
    </Text>
  );
}
