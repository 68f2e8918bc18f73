/** Everybody who has money and keys here, found by name. */
import { Button, Text } from '@mantine/core';
import { IconUsersGroup } from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { type Column, DataTable } from '../../../parts/data-table.tsx';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { AllRowsCsv } from '../parts/all-rows-csv.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter, FilterBar, TextFilter } from '../parts/filters.tsx';
import { usePlans } from '../plans/use-plans.ts';
import type { AccountRow } from '../types.ts';

export const accountsPath = '/admin/accounts';
const csvColumns = ['id', 'name', 'plan', 'planEndsAt', 'multiplier', 'disabled', 'balance', 'createdAt'];

export default function Accounts() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const navigate = useNavigate();
  const plans = usePlans().data?.rows ?? [];
  const query = { text: search['text'], plan: search['plan'], disabled: search['disabled'] };
  return (
    <Page title={t('operator.people.accounts.title')} hint={t('operator.people.accounts.intro')}>
      <Panel flush>
        <FilterBar>
          <TextFilter name="text" label={t('operator.people.accounts.search')} />
          <ChoiceFilter
            name="plan"
            label={t('operator.people.accounts.anyPlan')}
            data={plans.map(({ name }) => ({ value: name, label: name }))}
          />
          <ChoiceFilter
            name="disabled"
            label={t('operator.people.accounts.anyState')}
            data={[
              { value: 'false', label: t('operator.people.accounts.active') },
              { value: 'true', label: t('operator.people.accounts.disabled') },
            ]}
          />
          <AllRowsCsv path={accountsPath} query={query} file="accounts" columns={csvColumns} />
        </FilterBar>
        <DataTable<AccountRow>
          label={t('operator.people.accounts.title')}
          path={accountsPath}
          query={query}
          columns={useColumns()}
          rowKey={({ id }) => id}
          onOpen={({ id }) => void navigate({ to: `${accountsPath}/${encodeURIComponent(id)}` })}
          empty={
            <EmptyState
              icon={IconUsersGroup}
              title={t('operator.people.accounts.empty')}
              hint={t('operator.people.accounts.emptyHint')}
              action={
                <Button variant="default" renderRoot={(props) => <Link {...props} to="/admin/people" />}>
                  {t('operator.people.accounts.toPeople')}
                </Button>
              }
            />
          }
        />
      </Panel>
    </Page>
  );
}

function useColumns(): Column<AccountRow>[] {
  const { t } = useTranslation();
  const withMoney = has(useMe(), 'money');
  const balance: Column<AccountRow> = {
    key: 'balance',
    title: t('operator.column.balance'),
    right: true,
    cell: (row) => <Money of={row.balance} signed={row.balance?.startsWith('-') === true} />,
  };
  return [
    {
      key: 'name',
      title: t('operator.column.name'),
      cell: ({ name }) => (
        <Text span fz="sm" fw={550}>
          {name}
        </Text>
      ),
    },
    {
      key: 'state',
      title: t('operator.column.state'),
      cell: ({ disabled }) => (
        <Word color={disabled ? 'red' : 'teal'}>
          {disabled ? t('operator.people.accounts.disabled') : t('operator.people.accounts.active')}
        </Word>
      ),
    },
    { key: 'plan', title: t('operator.column.plan'), cell: planCell },
    {
      key: 'multiplier',
      title: t('operator.column.multiplier'),
      right: true,
      minor: true,
      cell: ({ multiplier }) => multiplier ?? '1',
    },
    ...(withMoney ? [balance] : []),
    {
      key: 'created',
      title: t('operator.column.created'),
      right: true,
      minor: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
}

function planCell({ plan, planEndsAt }: AccountRow) {
  return (
    <span>
      {plan}{' '}
      {planEndsAt !== null && (
        <Text span fz="xs" c="dimmed">
          → <Time at={planEndsAt} />
        </Text>
      )}
    </span>
  );
}
