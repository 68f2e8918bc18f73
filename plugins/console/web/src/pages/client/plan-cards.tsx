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
import { countText, moneyText } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState } from '../../parts/states.tsx';
import { useMoneyChanged } from './money-changed.ts';

export function PlanCards({ term }: { readonly term: Pool['term'] }) {
  const { t, i18n } = useTranslation();
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
  if (plans.isError) return <ErrorState error={plans.error} onRetry={() => void plans.refetch()} />;
  if (plans.data === undefined || plans.data.rows.length === 0) return null;
  return (
    <Panel title={t('client.wallet.plans')} hint={t('client.wallet.plansHint')}>
      <SimpleGrid type="container" cols={{ base: 1, '520px': 2, '860px': 3 }} spacing="md">
        {plans.data.rows.map((plan) => (
          <PlanCard key={plan.name} plan={plan} onBuy={() => choose(plan)} />
        ))}
      </SimpleGrid>
      <Confirm
        opened={wanted !== undefined}
        title={t('client.wallet.buyTitle', { plan: wanted?.name ?? '' })}
        action={t('client.wallet.buy')}
        onConfirm={buy}
        onClose={() => setWanted(undefined)}
      >
        {t('client.wallet.buyWords', { price: moneyText(wanted?.price ?? '0', i18n.language) })}{' '}
        {term !== null && term.plan !== wanted?.name && t('client.wallet.buyReplaces', { plan: term.plan })}
      </Confirm>
    </Panel>
  );
}

/** The card alone; operators see plans as clients do. */
function PlanCard({ plan, onBuy }: { readonly plan: Plan; readonly onBuy?: () => void }) {
  const { t } = useTranslation();
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
      {onBuy !== undefined && plan.price !== null && (
        <Button variant={current ? 'default' : 'filled'} onClick={onBuy} fullWidth mt="md">
          {t('client.wallet.buy')}
        </Button>
      )}
    </Paper>
  );

  function lastsText() {
    if (plan.lastsDays !== null) return t('client.wallet.days', { days: plan.lastsDays });
    return plan.grant === null ? t('client.wallet.forever') : t(`client.wallet.perPeriod.${plan.grant.every}`);
  }
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
  if (plan.multiplier !== null) points.push(t('client.wallet.ratio', { ratio: plan.multiplier }));
  points.push(
    plan.models === null ? t('client.wallet.allModels') : t('client.wallet.models', { number: plan.models.length }),
  );
  for (const name of ['rpm', 'rpd', 'tpm', 'concurrency'] as const) {
    const limit = plan.limits[name];
    if (limit !== null) points.push(t(`client.wallet.${name}`, { number: countText(limit, i18n.language) }));
  }
  if (plan.renew) points.push(t('client.wallet.renews'));
  return points;
}
