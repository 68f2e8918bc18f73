/** Invitations to an account: made, sent again and taken back by an operator. */
import { Button, Group, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { MemberInvitation, MemberRole } from '../../../api/types.ts';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { Roles } from '../../client/members/change.tsx';
import {
  type HandedOver,
  type Handover,
  isEmail,
  isWaiting,
  useInvitationColumns,
} from '../../client/members/invitations.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { useAnswer } from '../parts/load.tsx';
import { staleMembers } from './member-dialogs.tsx';

interface InvitationsProps {
  /** The account in the API. */
  readonly path: string;
  /** A link that an operator hands over. */
  readonly onLink: (made: HandedOver) => void;
}

interface InviteDialogProps extends InvitationsProps {
  readonly onClose: () => void;
}

export function InviteDialog({ path, onLink, onClose }: InviteDialogProps) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  const [role, setRole] = useState<MemberRole>('developer');
  const email = typed.trim();
  const isFine = isEmail(email);
  return (
    <Act
      opened
      onClose={onClose}
      title={t('client.members.inviteTitle')}
      action={t('client.members.invite')}
      missing={!isFine}
      stale={staleMembers(path)}
      act={async (reason) => {
        const { link } = await send<Handover>('POST', `${path}/members/invitations`, { email, role, reason });
        if (link === null) return t('client.members.inviteMailed');
        onLink({ email, link });
        return undefined;
      }}
    >
      <TextInput
        type="email"
        label={t('client.members.inviteEmail')}
        required
        data-autofocus
        maxLength={200}
        value={typed}
        error={email === '' || isFine ? undefined : t('operator.people.people.emailsWrong', { text: email })}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <Roles value={role} onChange={setRole} makesOwners />
    </Act>
  );
}

interface Chosen {
  readonly row: MemberInvitation;
  readonly action: 'resend' | 'withdraw';
}

export function WaitingInvitations({ path, onLink }: InvitationsProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const [chosen, setChosen] = useState<Chosen>();
  const list = useAnswer<{ readonly rows: readonly MemberInvitation[] }>(`${path}/members/invitations`);
  const columns = useInvitationColumns();
  const rows = list.data?.rows;
  const actions: Column<MemberInvitation> = {
    key: 'actions',
    title: t('shell.word.actions'),
    right: true,
    cell: (row) => isWaiting(row) && <Actions row={row} onChoose={setChosen} />,
  };
  return (
    <Panel flush title={t('client.members.waiting')}>
      {rows === undefined && list.isError ? (
        <div className="pad">
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        </div>
      ) : rows?.length === 0 ? (
        <Text fz="sm" c="dimmed" px="md" pb="md">
          {t('client.members.noneWaiting')}
        </Text>
      ) : (
        <RowsTable
          label={t('client.members.waiting')}
          rows={rows}
          columns={acts ? [...columns, actions] : columns}
          rowKey={({ id }) => id}
          whole
        />
      )}
      {chosen !== undefined && (
        <InvitationDialog {...chosen} path={path} onLink={onLink} onClose={() => setChosen(undefined)} />
      )}
    </Panel>
  );
}

interface ActionsProps {
  readonly row: MemberInvitation;
  readonly onChoose: (chosen: Chosen) => void;
}

function Actions({ row, onChoose }: ActionsProps) {
  const { t } = useTranslation();
  const { email } = row;
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={t('client.members.resendNamed', { email })}
        onClick={() => onChoose({ row, action: 'resend' })}
      >
        {t('client.members.resend')}
      </Button>
      <Button
        size="compact-xs"
        variant="subtle"
        color="red"
        aria-label={t('client.members.withdrawNamed', { email })}
        onClick={() => onChoose({ row, action: 'withdraw' })}
      >
        {t('client.members.withdraw')}
      </Button>
    </Group>
  );
}

function InvitationDialog({ row: { id, email }, action, path, onLink, onClose }: Chosen & InviteDialogProps) {
  const { t } = useTranslation();
  const of = `${path}/members/invitations/${encodeURIComponent(id)}`;
  const resend = async (reason: string) => {
    const { link } = await send<Handover>('POST', `${of}/resend`, { reason });
    if (link === null) return t('client.members.inviteMailed');
    onLink({ email, link });
    return undefined;
  };
  const withdraw = async (reason: string) => {
    await send('DELETE', of, { reason });
    return t('client.members.withdrawn');
  };
  return (
    <Act
      opened
      onClose={onClose}
      title={t(`client.members.${action}Named`, { email })}
      action={t(`client.members.${action}`)}
      danger={action === 'withdraw'}
      stale={staleMembers(path)}
      act={action === 'resend' ? resend : withdraw}
    />
  );
}
