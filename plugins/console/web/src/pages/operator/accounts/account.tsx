/** One account: what it has, what it may, what it did, and everything that an operator can change about it. */

import { Anchor, Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { IconArrowLeft, IconCoins, IconUserQuestion } from '@tabler/icons-react';
import { Link, useParams } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { accountName } from '../../../parts/account-name.ts';
import type { Edited } from '../../../parts/budgets/budget-list.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { EmptyState, Waiting } from '../../../parts/states.tsx';
import { TagsPanel, tagFilter } from '../../../parts/tags.tsx';
import { LedgerTable } from '../money/ledger-table.tsx';
import { useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { RequestList } from '../requests/request-table.tsx';
import { ResultFilter } from '../requests/result-filter.tsx';
import { TaskList } from '../tasks/task-table.tsx';
import type { AccountDetail } from '../types.ts';
import { AccountActions } from './account-actions.tsx';
import { AccountKeys } from './account-keys.tsx';
import { Overview } from './overview.tsx';

const CreditLine = lazy(() => import('../../credit-line/credit-line.tsx'));

const CreditLineDialog = lazy(() => import('./credit-line-dialog.tsx'));

const Statements = lazy(() => import('../../statements/statements.tsx'));

const AccountMembers = lazy(() => import('./account-members.tsx'));

const BudgetList = lazy(() => import('../../../parts/budgets/budget-list.tsx'));

export const accountPath = (id: string) => `/admin/accounts/${encodeURIComponent(id)}`;

export default function AccountPage() {
  const { t } = useTranslation();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const detail = useAnswer<AccountDetail>(accountPath(id), {}, 15_000);
  const isGone = detail.error instanceof ApiError && detail.error.status === 404;
  return (
    <Page
      title={detail.data === undefined ? t('shell.word.account') : accountTitle(detail.data)}
      hint={detail.data === undefined ? undefined : <Id detail={detail.data} />}
      actions={detail.data === undefined ? undefined : <AccountActions detail={detail.data} />}
    >
      {isGone ? (
        <Panel>
          <EmptyState
            icon={IconUserQuestion}
            title={t('operator.people.accounts.goneTitle')}
            hint={t('operator.people.accounts.goneHint')}
          />
        </Panel>
      ) : (
        <Loaded of={detail} height={380}>
          {(data) => <Parts detail={data} />}
        </Loaded>
      )}
    </Page>
  );
}

const accountTitle = ({ account: { name }, person }: AccountDetail) => accountName({ name, person });

function Id({ detail: { account, person } }: { readonly detail: AccountDetail }) {
  const { t } = useTranslation();
  const { id, disabled } = account;
  return (
    <Group gap="xs" component="span">
      <Anchor fz="sm" renderRoot={(props) => <Link {...props} to="/admin/accounts" />}>
        <IconArrowLeft size={13} aria-hidden /> {t('operator.people.accounts.back')}
      </Anchor>
      {person !== null && (
        <Anchor
          fz="sm"
          className="wrap-any"
          renderRoot={(props) => <Link {...props} to="/admin/people" search={{ text: person.email }} />}
        >
          {person.email}
        </Anchor>
      )}
      <Text span fz="xs" className="mono wrap-any">
        {id}
      </Text>
      <CopyButton text={id} />
      {disabled && <Word color="red">{t('operator.people.accounts.disabled')}</Word>}
    </Group>
  );
}

const tabs = ['overview', 'ledger', 'statements', 'members', 'keys', 'budgets', 'requests', 'tasks'] as const;
type Tab = (typeof tabs)[number];

function Parts({ detail }: { readonly detail: AccountDetail }) {
  const { t } = useTranslation();
  const me = useMe();
  const [search, change] = useSearchState();
  const { id } = detail.account;
  const missing = {
    overview: false,
    ledger: !has(me, 'money'),
    statements: !has(me, 'statements'),
    members: false,
    keys: false,
    budgets: !has(me, 'budgets'),
    requests: !has(me, 'requests'),
    tasks: !has(me, 'tasks'),
  };
  const shown = tabs.filter((tab) => !missing[tab]);
  const tab = shown.includes(search['tab'] as Tab) ? (search['tab'] as Tab) : 'overview';
  const pick = (value: string | null) =>
    change({ tab: value === 'overview' || value === null ? undefined : value, open: undefined, statement: undefined });
  return (
    <Tabs value={tab} onChange={pick} keepMounted={false}>
      <Tabs.List mb="md">
        {shown.map((value) => (
          <Tabs.Tab key={value} value={value}>
            {t(`operator.people.accounts.tabs.${value}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value="overview">
        <Stack gap="sm">
          <Overview detail={detail} />
          {has(me, 'creditLines') && <AccountCredit detail={detail} />}
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="ledger">
        <AccountLedger id={id} />
      </Tabs.Panel>
      <Tabs.Panel value="statements">
        <Suspense fallback={<Waiting />}>
          <Statements path={`${accountPath(id)}/statements`} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="members">
        <Suspense fallback={<Waiting />}>
          <AccountMembers path={accountPath(id)} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="keys">
        <AccountKeys id={id} />
      </Tabs.Panel>
      <Tabs.Panel value="budgets">
        <AccountBudgets id={id} />
      </Tabs.Panel>
      <Tabs.Panel value="requests">
        <AccountRequests id={id} />
      </Tabs.Panel>
      <Tabs.Panel value="tasks">
        <TaskList query={{ accountId: id }} />
      </Tabs.Panel>
    </Tabs>
  );
}

function AccountCredit({ detail }: { readonly detail: AccountDetail }) {
  const [isOpen, setOpen] = useState(false);
  const acts = useActs();
  return (
    <Suspense fallback={null}>
      <CreditLine
        path={`${accountPath(detail.account.id)}/credit-line`}
        onSet={acts ? () => setOpen(true) : undefined}
      />
      {isOpen && (
        <CreditLineDialog
          path={accountPath(detail.account.id)}
          name={accountTitle(detail)}
          onClose={() => setOpen(false)}
        />
      )}
    </Suspense>
  );
}

interface OfAccount {
  readonly id: string;
}

function AccountBudgets({ id }: OfAccount) {
  const { t } = useTranslation();
  const [edited, setEdited] = useState<Edited>();
  const acts = useActs();
  return (
    <Stack>
      {acts && (
        <Group justify="flex-end">
          <Button variant="default" size="xs" onClick={() => setEdited('new')}>
            {t('operator.people.accounts.newBudget')}
          </Button>
        </Group>
      )}
      <Suspense fallback={<Waiting />}>
        <BudgetList
          place={{ base: accountPath(id), authority: acts ? 'operator' : undefined }}
          edited={edited}
          onEdit={setEdited}
        />
      </Suspense>
    </Stack>
  );
}

const spanNames = ['24h', '7d', '30d', '90d'] as const;

function AccountLedger({ id }: OfAccount) {
  const { t } = useTranslation();
  return (
    <LedgerTable
      accountId={id}
      empty={
        <EmptyState
          icon={IconCoins}
          title={t('operator.people.accounts.noLedger')}
          hint={t('operator.people.accounts.noLedgerHint')}
        />
      }
    />
  );
}

function AccountRequests({ id }: OfAccount) {
  const [search] = useSearchState();
  const span = useSpan('30d');
  const ofAccount = { ...span.query, accountId: id };
  const { result, model, tag } = search;
  return (
    <Stack gap="md">
      <TagsPanel path="/admin/tags" query={ofAccount} />
      <RequestList
        ofOne
        query={{ ...ofAccount, result, model, tag: tagFilter(tag) }}
        filters={
          <>
            <SpanPicker names={spanNames} otherwise="30d" />
            <ResultFilter />
          </>
        }
      />
    </Stack>
  );
}
