/** The plans as cards, as clients see them, with what an operator does about them. */
import { Badge, Button, Group, List, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { IconCheck, IconPencil, IconStack2 } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { localDecimals, moneyText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { useActs, useCanEdit } from '../parts/act.tsx';
import { Loaded } from '../parts/load.tsx';
import type { Plan } from '../types.ts';
import { limitLines } from './limit-lines.ts';
import { usePlans } from './use-plans.ts';

const EditEntry = lazy(() => import('../config/forms/edit-entry.tsx'));

export default function PlansPage() {
  const { t } = useTranslation();
  const plans = usePlans();
  const withConfig = has(useMe(), 'config');
  const canEdit = useCanEdit();
  const [search, change] = useSearchState();
  const edit = (
    <Button variant="default" renderRoot={(props) => <Link {...props} to="/admin/config" search={{ form: 'plans' }} />}>
      {t('operator.sales.plans.edit')}
    </Button>
  );
  return (
    <Page
      title={t('operator.sales.plans.title')}
      hint={t('operator.sales.plans.intro')}
      actions={withConfig ? edit : undefined}
    >
      <Loaded of={plans} height={320}>
        {({ rows, default: usual }) =>
          rows.length === 0 ? (
            <Panel>
              <EmptyState
                icon={IconStack2}
                title={t('operator.sales.plans.empty')}
                hint={t('operator.sales.plans.emptyHint')}
              />
            </Panel>
          ) : (
            <SimpleGrid type="container" cols={{ base: 1, '560px': 2, '960px': 3 }} spacing="sm">
              {rows.map((plan) => (
                <Card key={plan.name} plan={plan} isUsual={plan.name === usual} />
              ))}
            </SimpleGrid>
          )
        }
      </Loaded>
      {canEdit && (
        <Suspense>
          <EditEntry form="plans" entry={search['edit']} onClose={() => change({ edit: undefined })} />
        </Suspense>
      )}
    </Page>
  );
}

function Card({ plan, isUsual }: { readonly plan: Plan; readonly isUsual: boolean }) {
  const { t } = useTranslation();
  const benefits = useBenefits(plan);
  return (
    <Paper component="section" withBorder className="panel pad">
      <Stack gap="sm" h="100%">
        <Group justify="space-between">
          <Title order={2} fz="lg" tt="capitalize">
            {plan.name}
          </Title>
          {isUsual && <Badge variant="light">{t('operator.sales.plans.isDefault')}</Badge>}
        </Group>
        <Price plan={plan} />
        <List spacing={6} fz="sm" icon={<IconCheck size={15} color="var(--good)" aria-hidden />}>
          {benefits.map((benefit, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: they neither move nor change
            <List.Item key={index}>{benefit}</List.Item>
          ))}
        </List>
        <CardActions name={plan.name} />
      </Stack>
    </Paper>
  );
}

function Price({ plan: { price, grant } }: { readonly plan: Plan }) {
  const { t } = useTranslation();
  if (price === null || /^0*\.?0*$/.test(price))
    return (
      <Text fz={26} fw={650}>
        {t('client.wallet.free')}
      </Text>
    );
  const every =
    grant === null ? undefined : ({ day: 'perDay', week: 'perWeek', month: 'perMonth' } as const)[grant.every];
  return (
    <Text fz={26} fw={650}>
      <Money of={price} />{' '}
      {every !== undefined && (
        <Text span fz="sm" c="dimmed">
          {t(`operator.sales.plans.${every}`)}
        </Text>
      )}
    </Text>
  );
}

function CardActions({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const me = useMe();
  const acts = useActs();
  const canEdit = useCanEdit();
  const [, change] = useSearchState();
  return (
    <Group gap="xs" mt="auto">
      {canEdit && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconPencil size={15} />}
          onClick={() => change({ edit: name })}
        >
          {t('shell.edit')}
        </Button>
      )}
      {has(me, 'accounts') && (
        <Button
          size="xs"
          variant="default"
          renderRoot={(props) => <Link {...props} to="/admin/accounts" search={{ plan: name }} />}
        >
          {t('operator.sales.plans.accountsOn')}
        </Button>
      )}
      {acts && has(me, 'codes') && (
        <Button
          size="xs"
          variant="default"
          renderRoot={(props) => <Link {...props} to="/admin/codes" search={{ make: 'plan', plan: name }} />}
        >
          {t('operator.sales.plans.makeCode')}
        </Button>
      )}
    </Group>
  );
}

const every = { day: 'perDay', week: 'perWeek', month: 'perMonth' } as const;

function useBenefits(plan: Plan): ReactNode[] {
  const { t, i18n } = useTranslation();
  const { grant, windows, models, multiplier, lastsDays, renew } = plan;
  const money = (amount: string) => moneyText(amount, i18n.language);
  const lines: string[] = [];
  if (grant !== null) {
    const words = { amount: money(grant.amount), every: t(`operator.sales.plans.${every[grant.every]}`) };
    lines.push(t('operator.sales.plans.brings', words));
  }
  for (const name of ['5h', 'day', 'week', 'month'] as const) {
    const amount = windows[name];
    if (amount === null) continue;
    const window = t(`operator.sales.plans.windows.${name}`);
    lines.push(t('operator.sales.plans.window', { amount: money(amount), window }));
  }
  lines.push(...limitLines(plan, t, i18n.language));
  if (multiplier !== null && multiplier !== '1')
    lines.push(t('operator.sales.plans.ratio', { ratio: localDecimals(multiplier, i18n.language) }));
  lines.push(models === null ? t('operator.sales.plans.allModels') : models.join(', '));
  if (lastsDays !== null) lines.push(t('operator.sales.plans.lasts', { count: lastsDays }));
  if (renew) lines.push(t('operator.sales.plans.renews'));
  return lines;
}
