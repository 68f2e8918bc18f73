/** What an account has and may spend: balance, what it is made of, windows, plan. */
import { Box, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { Meter } from '../../../parts/bars.tsx';
import { chartNumber, countText, localDecimals, moneyText } from '../../../parts/format.ts';
import { useGrantKind } from '../../../parts/known-words.ts';
import { Money } from '../../../parts/money.tsx';
import { OnSight } from '../../../parts/on-sight.tsx';
import { Panel } from '../../../parts/page.tsx';
import { noticeLanguage, SentNotices } from '../../../parts/sent-notices.tsx';
import { useSpan } from '../../../parts/span.tsx';
import { Stat, StatRow } from '../../../parts/stat.tsx';
import { Time } from '../../../parts/time.tsx';
import { GroupsTable } from '../monitor/groups-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { useAnswer } from '../parts/load.tsx';
import { RowLink } from '../parts/names.tsx';
import { limitLines } from '../plans/limit-lines.ts';
import { isNegative, percentOf } from '../sums/usd.ts';
import type { AccountDetail, AccountNotices, Monitor, Pool } from '../types.ts';

export function Overview({ detail }: { readonly detail: AccountDetail }) {
  const { account, pool } = detail;
  return (
    <Stack gap="sm">
      <Figures id={account.id} pool={pool} />
      <SimpleGrid type="container" cols={{ base: 1, '760px': 2 }} spacing="sm">
        {pool !== null && <Grants pool={pool} />}
        {pool !== null && pool.windows.length > 0 && <Windows pool={pool} />}
        <PlanFacts detail={detail} />
      </SimpleGrid>
      {has(useMe(), 'notices') && <SentOf id={account.id} />}
      {has(useMe(), 'requests') && <ByModel id={account.id} />}
    </Stack>
  );
}

/** Notices to the account; without any, nothing. */
function SentOf({ id }: { readonly id: string }) {
  const { t, i18n } = useTranslation();
  const language = noticeLanguage(i18n.language);
  const sent = useAnswer<AccountNotices>(`/admin/accounts/${encodeURIComponent(id)}/notices`, { language });
  if (sent.data === undefined || sent.data.rows.length === 0) return null;
  return (
    <Panel title={t('client.profile.notices.title')}>
      <SentNotices rows={sent.data.rows} />
    </Panel>
  );
}

/** What the account called in the last 30 days. */
function ByModel({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const span = useSpan('30d');
  const title = t('client.home.byModel');
  return (
    <Panel flush title={title}>
      <OnSight height={180}>
        <GroupsTable
          by="model"
          label={title}
          span={{ ...span, query: { ...span.query, accountId: id }, search: { ...span.search, accountId: id } }}
        />
      </OnSight>
    </Panel>
  );
}

function Figures({ id, pool }: { readonly id: string; readonly pool: Pool | null }) {
  const { t, i18n } = useTranslation();
  const span = useSpan('30d');
  const withRequests = has(useMe(), 'requests');
  const traffic = useAnswer<Monitor>('/admin/monitor', { ...span.query, accountId: id });
  const ledger = { to: `/admin/accounts/${id}`, search: { tab: 'ledger' } };
  return (
    <StatRow>
      {pool !== null && (
        <>
          <Stat
            label={t('shell.balance')}
            value={<Money of={pool.balance} />}
            tone={isNegative(pool.balance) ? 'bad' : undefined}
            note={
              <>
                {t('client.wallet.held')} <Money of={pool.held} />
              </>
            }
            {...ledger}
          />
          <Stat
            label={t('operator.people.accounts.spendable')}
            value={<Money of={pool.spendable} />}
            note={
              chartNumber(pool.blocked) > 0 ? (
                <>
                  {t('operator.people.accounts.blocked')} <Money of={pool.blocked} />
                </>
              ) : undefined
            }
            {...ledger}
          />
        </>
      )}
      {withRequests && (
        <>
          <Stat
            label={t('operator.people.accounts.spend30')}
            value={<Money of={traffic.data?.cost} />}
            to={ledger.to}
            search={{ tab: 'ledger', kind: 'CHARGE' }}
          />
          <Stat
            label={t('operator.people.accounts.requests30')}
            value={countText(traffic.data?.requests ?? 0, i18n.language)}
            to={ledger.to}
            search={{ tab: 'requests', span: '30d' }}
          />
        </>
      )}
    </StatRow>
  );
}

function Grants({ pool }: { readonly pool: Pool }) {
  const { t, i18n } = useTranslation();
  const text = (amount: string) => moneyText(amount, i18n.language);
  const kindText = useGrantKind();
  return (
    <Panel title={t('operator.people.accounts.grants')}>
      {pool.grants.length === 0 && (
        <Text fz="sm" c="dimmed">
          {t('operator.people.accounts.noGrants')}
        </Text>
      )}
      <Stack gap="sm">
        {pool.grants.map(({ id, kind, reason, amount, remaining, expiresAt }) => (
          <div key={id}>
            <Group justify="space-between" wrap="nowrap" gap="xs">
              <Text fz="sm" truncate title={reason}>
                {reason || kindText(kind)}
              </Text>
              <Text fz="sm" fw={600} className="number">
                <Money of={remaining} />
              </Text>
            </Group>
            <Box my={4}>
              <Meter
                part={percentOf(remaining, amount) ?? 0}
                whole={100}
                label={t('client.wallet.grantWords', { remaining: text(remaining), amount: text(amount) })}
              />
            </Box>
            <Text fz="xs" c="dimmed">
              <Money of={remaining} /> / <Money of={amount} /> ·{' '}
              {expiresAt === null ? (
                t('operator.people.accounts.grantStays')
              ) : (
                <>
                  {t('operator.people.accounts.grantLapses')} <Time at={expiresAt} relative />
                </>
              )}
            </Text>
          </div>
        ))}
      </Stack>
    </Panel>
  );
}

function Windows({ pool }: { readonly pool: Pool }) {
  const { t, i18n } = useTranslation();
  const text = (amount: string) => moneyText(amount, i18n.language);
  return (
    <Panel title={t('operator.people.accounts.windows')}>
      <Stack gap="sm">
        {pool.windows.map(({ name, limit, spent, endsAt }) => {
          const percent = percentOf(spent, limit) ?? 0;
          return (
            <div key={name}>
              <Group justify="space-between">
                <Text fz="sm">{t(`operator.sales.plans.windows.${name}`)}</Text>
                <Text fz="sm" className="number">
                  <Money of={spent} /> / <Money of={limit} />
                </Text>
              </Group>
              <Box my={4}>
                <Meter
                  part={percent}
                  whole={100}
                  label={t('client.wallet.windowWords', { spent: text(spent), limit: text(limit) })}
                  of="limit"
                />
              </Box>
              <Text fz="xs" c="dimmed">
                {t('operator.people.accounts.windowEnds')} <Time at={endsAt} relative />
              </Text>
            </div>
          );
        })}
      </Stack>
    </Panel>
  );
}

function PlanFacts({ detail: { account, plan } }: { readonly detail: AccountDetail }) {
  const { t, i18n } = useTranslation();
  const lines = plan === null ? [] : limitLines(plan, t, i18n.language);
  return (
    <Panel title={t('shell.word.plan')}>
      <Facts
        of={[
          [
            t('shell.word.plan'),
            <RowLink key="plan" to="/admin/plans">
              {account.plan}
            </RowLink>,
          ],
          account.planEndsAt !== null && [
            t('operator.people.accounts.planEnds'),
            <Time key="ends" at={account.planEndsAt} />,
          ],
          [t('operator.column.multiplier'), localDecimals(account.multiplier ?? '1', i18n.language)],
          lines.length > 0 && [t('operator.people.accounts.keyLimits'), lines.join(', ')],
          account.retention === 'none' && [
            t('operator.people.accounts.retention.fact'),
            t('operator.people.accounts.retention.nothing'),
          ],
          [t('operator.column.created'), <Time key="created" at={account.createdAt} />],
        ]}
      />
    </Panel>
  );
}
