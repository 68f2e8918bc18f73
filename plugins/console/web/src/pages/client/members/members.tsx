/** Members of the account: who they are, their roles, invitations, and what they did. */
import { Badge, Button, Group, SegmentedControl, Skeleton, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconHistory, IconUserPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../../../api/client.ts';
import { useRight } from '../../../api/rights.ts';
import { useMe, usePerson } from '../../../api/session.ts';
import type { MemberActRow, MemberRow } from '../../../api/types.ts';
import { moneyColumn, textColumn, timeColumn, useCountColumn } from '../../../parts/columns.tsx';
import { Confirm } from '../../../parts/confirm.tsx';
import { DataTable } from '../../../parts/data-table.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState, ErrorState } from '../../../parts/states.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { RemoveMember, RoleDrawer } from './change.tsx';
import { Invite, Waiting } from './invitations.tsx';
import { membersKey } from './keys.ts';
import { RenameAccount } from './rename.tsx';
import '../../../parts/company-texts.ts';
import '../../../parts/member-texts.ts';

const Company = lazy(() => import('./company.tsx'));

export default function Members() {
  const { t } = useTranslation();
  const { account, accounts } = useMe();
  const [search, setSearch] = useSearchState();
  const [inviting, setInviting] = useState(false);
  const manages = useRight('members');
  const signsIn = useRight('signIn');
  const renames = useRight('account');
  const audits = useRight('audit');
  const show = shownOf(search['show'], { audits, signsIn });
  return (
    <Page
      title={t('client.members.title')}
      hint={t('client.members.hint')}
      actions={
        <>
          {account !== null && (account.role !== 'owner' || accounts.length > 1) && <Leave name={account.name} />}
          {manages && (
            <Button leftSection={<IconUserPlus size={16} />} onClick={() => setInviting(true)}>
              {t('client.members.invite')}
            </Button>
          )}
        </>
      }
    >
      {account !== null && (
        <Group gap="xs">
          <Text fz="sm" className="breaks">
            {account.name} · {t(`client.members.role.${account.role}`)}
          </Text>
          {renames && <RenameAccount name={account.name} />}
        </Group>
      )}
      {manages && (
        <Group>
          <SegmentedControl
            value={show}
            onChange={(wanted) => setSearch({ show: wanted === 'members' ? undefined : wanted })}
            data={[
              { value: 'members', label: t('client.members.title') },
              ...(audits ? [{ value: 'log', label: t('client.members.log') }] : []),
              ...(signsIn ? [{ value: 'sign-in', label: t('client.company.title') }] : []),
            ]}
          />
        </Group>
      )}
      {show === 'log' && <Log />}
      {show === 'sign-in' && (
        <Suspense fallback={<Skeleton height={320} />}>
          <Company />
        </Suspense>
      )}
      {manages && show === 'members' && (
        <>
          <People />
          <Steady>
            <Waiting />
          </Steady>
        </>
      )}
      <Invite opened={inviting} onClose={() => setInviting(false)} />
    </Page>
  );
}

function shownOf(wanted: string | undefined, may: { readonly audits: boolean; readonly signsIn: boolean }) {
  if (wanted === 'log' && may.audits) return 'log';
  return wanted === 'sign-in' && may.signsIn ? 'sign-in' : 'members';
}

function People() {
  const { t } = useTranslation();
  const me = usePerson();
  const [changed, setChanged] = useState<MemberRow>();
  const [removed, setRemoved] = useState<MemberRow>();
  const members = useQuery({
    queryKey: membersKey,
    queryFn: () => get<{ readonly rows: readonly MemberRow[] }>('/members'),
  });
  const columns: readonly Column<MemberRow>[] = [
    {
      key: 'name',
      title: t('shell.word.name'),
      cell: ({ id, name, email }) => (
        <Group gap={6} wrap="nowrap">
          <Text inherit truncate>
            {name || email}
          </Text>
          {id === me.id && (
            <Badge size="sm" radius="sm" variant="light" tt="none">
              {t('client.members.you')}
            </Badge>
          )}
        </Group>
      ),
      plain: ({ name, email }) => name || email,
    },
    textColumn('email', t('client.members.inviteEmail')),
    {
      key: 'role',
      title: t('client.members.roleWord'),
      cell: ({ role }) => t(`client.members.role.${role}`),
      plain: ({ role }) => role,
    },
    useCountColumn<MemberRow, 'keys'>('keys', t('shell.word.keys')),
    timeColumn('keysUsedAt', t('client.members.lastUsed'), { relative: true }),
    moneyColumn('spent30d', t('client.members.spent'), ({ spent30d }) => spent30d),
    timeColumn('since', t('client.members.since'), { minor: true }),
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: (row) => row.id !== me.id && <Actions row={row} onChange={setChanged} onRemove={setRemoved} />,
    },
  ];
  return (
    <Panel flush>
      {members.isError ? (
        <div className="pad">
          <ErrorState error={members.error} onRetry={() => void members.refetch()} />
        </div>
      ) : (
        <RowsTable
          label={t('client.members.title')}
          rows={members.data?.rows}
          columns={columns}
          rowKey={({ id }) => id}
          whole
        />
      )}
      <RoleDrawer of={changed} onClose={() => setChanged(undefined)} />
      <RemoveMember of={removed} onClose={() => setRemoved(undefined)} />
    </Panel>
  );
}

interface ActionsProps {
  readonly row: MemberRow;
  readonly onChange: (row: MemberRow) => void;
  readonly onRemove: (row: MemberRow) => void;
}

/** Owners are for owners to change. */
function Actions({ row, onChange, onRemove }: ActionsProps) {
  const { t } = useTranslation();
  const { account } = useMe();
  if (row.role === 'owner' && account?.role !== 'owner') return null;
  const name = row.name || row.email;
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={t('client.members.changeNamed', { name })}
        onClick={() => onChange(row)}
      >
        {t('client.members.change')}
      </Button>
      <Button size="compact-xs" variant="subtle" color="red" onClick={() => onRemove(row)}>
        {t('client.members.remove')}
      </Button>
    </Group>
  );
}

function Leave({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button variant="default" onClick={() => setOpened(true)}>
        {t('client.members.leave')}
      </Button>
      <Confirm
        opened={opened}
        title={t('client.members.leaveTitle', { name })}
        action={t('client.members.leave')}
        danger
        onConfirm={async () => {
          await send('POST', '/members/leave');
          notifications.clean();
          location.assign('/console/');
        }}
        onClose={() => setOpened(false)}
      >
        {t('client.members.leaveWords')}
      </Confirm>
    </>
  );
}

function Log() {
  const { t } = useTranslation();
  const columns: readonly Column<MemberActRow>[] = [
    timeColumn('at', t('shell.word.time')),
    textColumn('actor', t('client.members.actor')),
    textColumn('action', t('client.members.action')),
    {
      key: 'subject',
      title: t('client.members.subject'),
      cell: ({ subject, changes }) => [subject, ...changes.map(changeText)].join(' · '),
    },
    textColumn('result', t('client.members.result')),
  ];
  return (
    <Panel flush>
      <DataTable
        label={t('client.members.log')}
        path="/members/audit"
        columns={columns}
        rowKey={({ id }) => id}
        empty={<EmptyState icon={IconHistory} title={t('client.members.noLog')} hint={t('client.members.noLogHint')} />}
      />
    </Panel>
  );
}

const changeText = ({ field, before, after }: MemberActRow['changes'][number]) =>
  before === null ? `${field}: ${after ?? '–'}` : `${field}: ${before} → ${after ?? '–'}`;
