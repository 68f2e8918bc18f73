/** The members of one account, and invitations to it; an operator changes, removes and invites. */

import { Button, Drawer, Group, Stack } from '@mantine/core';
import { IconUserPlus, IconUsers } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { moneyColumn, textColumn, timeColumn, useCountColumn } from '../../../parts/columns.tsx';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { EmptyState, ErrorState } from '../../../parts/states.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { type HandedOver, LinkOf } from '../../client/members/invitations.tsx';
import { useActs } from '../parts/act.tsx';
import { useAnswer } from '../parts/load.tsx';
import { RowLink, shortId } from '../parts/names.tsx';
import type { AccountMember } from '../types.ts';
import { InviteDialog, WaitingInvitations } from './account-invitations.tsx';
import { nameOf, RemoveDialog, RoleDialog } from './member-dialogs.tsx';
import '../../../parts/member-texts.ts';

interface AccountMembersProps {
  /** The account in the API. */
  readonly path: string;
}

export default function AccountMembers({ path }: AccountMembersProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const [inviting, setInviting] = useState(false);
  const [made, setMade] = useState<HandedOver>();
  return (
    <Stack>
      {acts && (
        <Group justify="flex-end">
          <Button
            variant="default"
            size="xs"
            leftSection={<IconUserPlus size={14} />}
            onClick={() => setInviting(true)}
          >
            {t('client.members.invite')}
          </Button>
        </Group>
      )}
      <Members path={path} />
      <Steady>
        <WaitingInvitations path={path} onLink={setMade} />
      </Steady>
      {inviting && <InviteDialog path={path} onClose={() => setInviting(false)} onLink={setMade} />}
      <Drawer opened={made !== undefined} onClose={() => setMade(undefined)} title={t('client.members.inviteTitle')}>
        {made !== undefined && <LinkOf made={made} onClose={() => setMade(undefined)} />}
      </Drawer>
    </Stack>
  );
}

function Members({ path }: AccountMembersProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const [changed, setChanged] = useState<AccountMember>();
  const [removed, setRemoved] = useState<AccountMember>();
  const members = useAnswer<{ readonly rows: readonly AccountMember[] }>(`${path}/members`);
  const columns = useColumns();
  const rows = members.data?.rows;
  const actions: Column<AccountMember> = {
    key: 'actions',
    title: t('shell.word.actions'),
    right: true,
    cell: (row) => <Actions row={row} onChange={setChanged} onRemove={setRemoved} />,
  };
  return (
    <Panel flush>
      {rows === undefined && members.isError ? (
        <div className="pad">
          <ErrorState error={members.error} onRetry={() => void members.refetch()} />
        </div>
      ) : rows?.length === 0 ? (
        <EmptyState
          icon={IconUsers}
          title={t('operator.people.accounts.noMembers')}
          hint={t('operator.people.accounts.noMembersHint')}
        />
      ) : (
        <RowsTable
          label={t('client.members.title')}
          rows={rows}
          columns={acts ? [...columns, actions] : columns}
          rowKey={({ id }) => id}
          whole
        />
      )}
      {changed !== undefined && <RoleDialog of={changed} path={path} onClose={() => setChanged(undefined)} />}
      {removed !== undefined && (
        <RemoveDialog of={removed} others={rows ?? []} path={path} onClose={() => setRemoved(undefined)} />
      )}
    </Panel>
  );
}

function useColumns(): Column<AccountMember>[] {
  const { t } = useTranslation();
  return [
    {
      key: 'name',
      title: t('shell.word.name'),
      cell: (row) => (
        <RowLink to="/admin/people" search={{ text: row.email || row.id }}>
          {nameOf(row) || shortId(row.id)}
        </RowLink>
      ),
      plain: nameOf,
    },
    textColumn('email', t('client.members.inviteEmail')),
    {
      key: 'role',
      title: t('client.members.roleWord'),
      cell: ({ role }) => t(`client.members.role.${role}`),
      plain: ({ role }) => role,
    },
    useCountColumn<AccountMember, 'keys'>('keys', t('shell.word.keys')),
    timeColumn('keysUsedAt', t('client.members.lastUsed'), { relative: true }),
    timeColumn('signedInAt', t('operator.people.people.seen'), { relative: true }),
    moneyColumn('spent30d', t('client.members.spent'), ({ spent30d }) => spent30d),
    timeColumn('since', t('client.members.since'), { minor: true }),
  ];
}

interface ActionsProps {
  readonly row: AccountMember;
  readonly onChange: (row: AccountMember) => void;
  readonly onRemove: (row: AccountMember) => void;
}

function Actions({ row, onChange, onRemove }: ActionsProps) {
  const { t } = useTranslation();
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={t('client.members.changeNamed', { name: nameOf(row) })}
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
