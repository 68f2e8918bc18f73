/** Plans for sale as cards, and buying one from the balance. */
import { Badge, Button, Group, List, Paper, SimpleGrid, Text, Title } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, newAttempt, send } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import type { Plan, Pool, Purchase, WindowName } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { chartNumber, countText, localDecimals, momentText, moneyText } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState } from '../../parts/states.tsx';
import { useMoneyChanged } from './money-changed.ts';

/** `pool`: the account's money; undefined until it is known. */
export function PlanCards({ pool }: { readonly pool: Pool | undefined }) {
  const { t, i18n } = useTranslation();
  const term = pool?.term ?? null;
  const changed = useMoneyChanged();
  const [wanted, setWanted] = useState<Plan>();
  const attempt = useRef('');
  const plans = useQuery({ queryKey: ['plans'], queryFn: () => get<{ rows: readonly Plan[] }>('/wallet/plans') });
  const choose = (plan: Plan) => {
    attempt.current = newAttempt();
    setWanted(plan);
  };
  const buy = async () => {
    const path = `/wallet/plans/${encodeURIComponent(wanted!.name)}`;
    const { plan } = await send<Purchase>('POST', path, undefined, attempt.current);
    notifications.show({ message: t('client.wallet.bought', { plan }), color: 'teal' });
    await changed();
  };
  const price = moneyText(wanted?.price ?? '0', i18n.language);
  const extended = term !== null && term.endsAt !== null && term.plan === wanted?.name ? term.endsAt : undefined;
  if (plans.isError) return <ErrorState error={plans.error} onRetry={() => void plans.refetch()} />;
  if (plans.data === undefined || plans.data.rows.length === 0) return null;
  return (
    <Panel title={t('client.wallet.plans')} hint={t('client.wallet.plansHint')}>
      <SimpleGrid type="container" cols={{ base: 1, '520px': 2, '860px': 3 }} spacing="md">
        {plans.data.rows.map((plan) => (
          <PlanCard key={plan.name} plan={plan} pool={pool} onBuy={() => choose(plan)} />
        ))}
      </SimpleGrid>
      <Confirm
        opened={wanted !== undefined}
        title={t(extended !== undefined ? 'client.wallet.extendTitle' : 'client.wallet.buyTitle', {
          plan: wanted?.name ?? '',
        })}
        action={t(extended !== undefined ? 'client.wallet.extend' : 'client.wallet.buy')}
        onConfirm={buy}
        onClose={() => setWanted(undefined)}
      >
        {extended !== undefined ? (
          t('client.wallet.extendWords', { price, until: momentText(new Date(extended), new Date(), i18n.language) })
        ) : (
          <>
            {t('client.wallet.buyWords', { price })}{' '}
            {term !== null && t('client.wallet.buyReplaces', { plan: term.plan })}
          </>
        )}
      </Confirm>
    </Panel>
  );
}

interface PlanCardProps {
  readonly plan: Plan;
  readonly pool: Pool | undefined;
  readonly onBuy: () => void;
}

function PlanCard({ plan, pool, onBuy }: PlanCardProps) {
  const { t, i18n } = useTranslation();
  const current = useMe().account?.plan === plan.name;
  const points = usePlanPoints(plan);
  return (
    <Paper withBorder className="plan" data-current={current || undefined} component="article">
      <Group justify="space-between" gap="xs">
        <Title order={3} fz="md">
          {plan.name}
        </Title>
        {current && (
          <Badge size="sm" radius="sm" variant="light" tt="none">
            {t('client.wallet.current')}
          </Badge>
        )}
      </Group>
      <Group gap={6} align="baseline" my={6}>
        <Text fz={26} fw={650} component="div" lh={1.2}>
          {plan.price !== null && /[1-9]/.test(plan.price) ? <Money of={plan.price} /> : t('client.wallet.free')}
        </Text>
        <Text fz="sm" c="dimmed">
          {lastsText()}
        </Text>
      </Group>
      <List size="sm" spacing={5} icon={<IconCheck size={15} className="check" />} className="plan-points">
        {points.map((point) => (
          <List.Item key={point}>{point}</List.Item>
        ))}
      </List>
      {plan.price !== null && foot(plan.price)}
    </Paper>
  );

  function foot(price: string) {
    const term = pool?.term?.plan === plan.name ? pool.term : undefined;
    if (term !== undefined && term.endsAt === null) return <Note>{t('client.wallet.runsOn')}</Note>;
    const missing = pool === undefined ? 0 : Math.ceil((chartNumber(price) - lastingIn(pool)) * 100) / 100;
    return (
      <>
        <Button variant={current ? 'default' : 'filled'} disabled={missing > 0} onClick={onBuy} fullWidth mt="md">
          {t(term === undefined ? 'client.wallet.buy' : 'client.wallet.extend')}
        </Button>
        {missing > 0 && (
          <Note>{t('client.wallet.moreNeeded', { amount: moneyText(missing.toFixed(2), i18n.language) })}</Note>
        )}
      </>
    );
  }

  function lastsText() {
    if (plan.lastsDays !== null) return t('client.wallet.days', { count: plan.lastsDays });
    return plan.grant === null ? t('client.wallet.forever') : t(`client.wallet.perPeriod.${plan.grant.every}`);
  }
}

/** Plans are bought with money that does not expire. */
const lastingIn = ({ spendable, grants }: Pool) =>
  grants.reduce(
    (rest, grant) => (grant.expiresAt === null ? rest : rest - chartNumber(grant.remaining)),
    chartNumber(spendable),
  );

function Note({ children }: { readonly children: string }) {
  return (
    <Text fz="xs" c="dimmed" mt={6} ta="center">
      {children}
    </Text>
  );
}

const windowNames: readonly WindowName[] = ['5h', 'day', 'week', 'month'];

/** What a plan brings and allows, a line each. */
function usePlanPoints(plan: Plan): readonly string[] {
  const { t, i18n } = useTranslation();
  const money = (usd: string) => moneyText(usd, i18n.language);
  const points: string[] = [];
  if (plan.grant !== null)
    points.push(
      t('client.wallet.brings', {
        amount: money(plan.grant.amount),
        period: t(`client.wallet.perPeriod.${plan.grant.every}`),
      }),
    );
  for (const name of windowNames) {
    const limit = plan.windows[name];
    if (limit !== null && limit !== undefined) points.push(t(`client.wallet.atMost.${name}`, { amount: money(limit) }));
  }
  if (plan.multiplier !== null)
    points.push(t('client.wallet.ratio', { ratio: localDecimals(plan.multiplier, i18n.language) }));
  points.push(
    plan.models === null ? t('client.wallet.allModels') : t('client.wallet.models', { count: plan.models.length }),
  );
  for (const name of ['rpm', 'rpd', 'tpm', 'concurrency'] as const) {
    const limit = plan.limits[name];
    if (limit !== null)
      points.push(t(`client.wallet.${name}`, { count: limit, number: countText(limit, i18n.language) }));
  }
  if (plan.renew) points.push(t('client.wallet.renews'));
  return points;
}
