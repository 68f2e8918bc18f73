/** All accounts with money and keys, found by name. */
import { Button, Text } from '@mantine/core';
import { IconUsersGroup } from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { accountName } from '../../../parts/account-name.ts';
import { moneyColumn, textColumn, timeColumn } from '../../../parts/columns.tsx';
import { localDecimals } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import { useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filters.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import { usePlans } from '../plans/use-plans.ts';
import type { AccountRow } from '../types.ts';

const path = '/admin/accounts';
const csvColumns = ['id', 'name', 'plan', 'planEndsAt', 'multiplier', 'disabled', 'balance', 'spent30d', 'createdAt'];

export default function Accounts() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const navigate = useNavigate();
  const acts = useActs();
  const plans = usePlans().data?.rows ?? [];
  const query = { text: search['text'], plan: search['plan'], disabled: search['disabled'] };
  const states = { false: t('operator.people.accounts.active'), true: t('operator.people.accounts.disabled') };
  return (
    <ResourcePage<AccountRow>
      texts="operator.people.accounts"
      icon={IconUsersGroup}
      filters={
        <>
          <TextFilter name="text" label={t('operator.people.accounts.search')} />
          <ChoiceFilter
            name="plan"
            label={t('operator.people.accounts.anyPlan')}
            data={plans.map(({ name }) => ({ value: name, label: name }))}
          />
          <ChoiceFilter
            name="disabled"
            label={t('operator.people.accounts.anyState')}
            data={Object.entries(states).map(([value, label]) => ({ value, label }))}
          />
        </>
      }
      source={{ path, query, csvOfAll: { file: 'accounts', columns: csvColumns } }}
      columns={useColumns()}
      onOpen={({ id }) => void navigate({ to: `${path}/${encodeURIComponent(id)}` })}
      emptyAction={
        acts ? (
          <Button variant="default" renderRoot={(props) => <Link {...props} to="/admin/people" />}>
            {t('operator.people.accounts.toPeople')}
          </Button>
        ) : undefined
      }
    />
  );
}

function useColumns(): Column<AccountRow>[] {
  const { t } = useTranslation();
  const withMoney = has(useMe(), 'money');
  return [
    textColumn('name', t('shell.word.name'), {
      plain: accountName,
      cell: (row) => (
        <div title={row.name}>
          <Text fz="sm" fw={550} truncate>
            {accountName(row)}
          </Text>
          {row.person !== null && (
            <Text fz="xs" c="dimmed" truncate>
              {row.person.email}
            </Text>
          )}
        </div>
      ),
    }),
    textColumn('disabled', t('shell.word.state'), {
      cell: ({ disabled }) => (
        <Word color={disabled ? 'red' : 'teal'}>
          {disabled ? t('operator.people.accounts.disabled') : t('operator.people.accounts.active')}
        </Word>
      ),
    }),
    textColumn('plan', t('shell.word.plan'), { cell: planCell }),
    textColumn('multiplier', t('operator.column.multiplier'), {
      right: true,
      minor: true,
      cell: ({ multiplier }) => localDecimals(multiplier ?? '1'),
    }),
    timeColumn('createdAt', t('operator.column.created'), { minor: true }),
    ...(withMoney
      ? [
          moneyColumn<AccountRow>('spent30d', t('client.keys.spent'), ({ spent30d }) => spent30d),
          moneyColumn<AccountRow>('balance', t('shell.balance'), ({ balance }) => balance, true),
        ]
      : []),
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
