/** Invitations to the account: made, sent again, taken back. */
import { Button, Drawer, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../../../api/client.ts';
import type { MemberInvitation, MemberRole } from '../../../api/types.ts';
import { textColumn } from '../../../parts/columns.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { Roles } from './change.tsx';
import { invitationsKey, useMembersChanged } from './keys.ts';

export interface Handover {
  readonly mailed: boolean;
  readonly link: string | null;
}
export interface HandedOver {
  readonly email: string;
  readonly link: string | null;
}

export const isEmail = (text: string) => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text.trim());

export function Invite({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Drawer opened={opened} onClose={onClose} title={t('client.members.inviteTitle')}>
      {opened && <InviteForm onClose={onClose} />}
    </Drawer>
  );
}

function InviteForm({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<MemberRole>('developer');
  const [made, setMade] = useState<HandedOver>();
  const changed = useMembersChanged();
  const { busy, problem, run } = useWork((error) => error);
  const invite = async () => {
    const { link } = await send<Handover>('POST', '/members/invitations', { email: email.trim(), role });
    if (link === null) onClose();
    else setMade({ email: email.trim(), link });
    await changed(t(link === null ? 'client.members.inviteMailed' : 'shell.done'));
  };
  if (made !== undefined) return <LinkOf made={made} onClose={onClose} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(invite);
      }}
    >
      <Stack>
        <TextInput
          type="email"
          label={t('client.members.inviteEmail')}
          required
          data-autofocus
          maxLength={200}
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
        <Roles value={role} onChange={setRole} />
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy} disabled={!isEmail(email)}>
            {t('client.members.invite')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function LinkOf({ made, onClose }: { readonly made: HandedOver; readonly onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Stack>
      <Text fz="sm">{t('client.members.inviteLink', { email: made.email })}</Text>
      <Text fz="sm" className="mono wrap-any">
        {made.link}
      </Text>
      <Group justify="flex-end">
        <CopyButton text={made.link ?? ''} wide />
        <Button onClick={onClose}>{t('shell.done')}</Button>
      </Group>
    </Stack>
  );
}

export function Waiting() {
  const { t } = useTranslation();
  const [made, setMade] = useState<HandedOver>();
  const list = useQuery({
    queryKey: invitationsKey,
    queryFn: () => get<{ readonly rows: readonly MemberInvitation[] }>('/members/invitations'),
  });
  const columns: readonly Column<MemberInvitation>[] = [
    ...useInvitationColumns(),
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: (row) => isWaiting(row) && <Actions row={row} onLink={setMade} />,
    },
  ];
  return (
    <Panel flush title={t('client.members.waiting')}>
      {list.isError ? (
        <div className="pad">
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        </div>
      ) : list.data?.rows.length === 0 ? (
        <Text fz="sm" c="dimmed" px="md" pb="md">
          {t('client.members.noneWaiting')}
        </Text>
      ) : (
        <RowsTable
          label={t('client.members.waiting')}
          rows={list.data?.rows}
          columns={columns}
          rowKey={({ id }) => id}
          whole
        />
      )}
      <Drawer opened={made !== undefined} onClose={() => setMade(undefined)} title={t('client.members.inviteTitle')}>
        {made !== undefined && <LinkOf made={made} onClose={() => setMade(undefined)} />}
      </Drawer>
    </Panel>
  );
}

export const isWaiting = ({ acceptedAt, expiresAt }: MemberInvitation) =>
  acceptedAt === null && Date.parse(expiresAt) > Date.now();

/** What an invitation is, in the lists of the account and of operators. */
export function useInvitationColumns(): readonly Column<MemberInvitation>[] {
  const { t } = useTranslation();
  return [
    textColumn('email', t('client.members.inviteEmail')),
    {
      key: 'role',
      title: t('client.members.roleWord'),
      cell: ({ role }) => t(`client.members.role.${role}`),
      plain: ({ role }) => role,
    },
    { key: 'state', title: t('shell.word.state'), cell: (row) => <State row={row} /> },
    textColumn('invitedBy', t('client.members.actor'), { minor: true }),
  ];
}

function State({ row }: { readonly row: MemberInvitation }) {
  const { t } = useTranslation();
  const word = row.acceptedAt !== null ? 'accepted' : isWaiting(row) ? 'expires' : 'expired';
  return (
    <>
      {t(`client.members.${word}`)} <Time at={row.acceptedAt ?? row.expiresAt} />
    </>
  );
}

interface ActionsProps {
  readonly row: MemberInvitation;
  readonly onLink: (made: HandedOver) => void;
}

function Actions({ row: { id, email }, onLink }: ActionsProps) {
  const { t } = useTranslation();
  const changed = useMembersChanged();
  const { busy, run } = useWork((error) => {
    notifications.show({ message: error instanceof Error ? error.message : String(error), color: 'red' });
    return undefined;
  });
  const resend = async () => {
    const { link } = await send<Handover>('POST', `/members/invitations/${id}/resend`);
    if (link !== null) onLink({ email, link });
    await changed(t(link === null ? 'client.members.inviteMailed' : 'shell.done'));
  };
  const withdraw = async () => {
    await send('DELETE', `/members/invitations/${id}`);
    await changed(t('client.members.withdrawn'));
  };
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      <Button
        size="compact-xs"
        variant="subtle"
        loading={busy}
        aria-label={t('client.members.resendNamed', { email })}
        onClick={() => void run(resend)}
      >
        {t('client.members.resend')}
      </Button>
      <Button
        size="compact-xs"
        variant="subtle"
        color="red"
        aria-label={t('client.members.withdrawNamed', { email })}
        onClick={() => void run(withdraw)}
      >
        {t('client.members.withdraw')}
      </Button>
    </Group>
  );
}
