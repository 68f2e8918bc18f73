/** Dialogs of an account's members: another role, and removing one with or without their keys. */
import { Select } from '@mantine/core';
import type { QueryKey } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { MemberRole } from '../../../api/types.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { Roles } from '../../client/members/change.tsx';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';
import type { AccountMember } from '../types.ts';

/** What a change of members makes old: the account's owner, its keys, and invitations by those who go. */
export const staleMembers = (path: string): QueryKey[] => [
  answerKey(path),
  answerKey(`${path}/members`),
  answerKey(`${path}/members/invitations`),
  listKey(`${path}/keys`),
];

export const nameOf = ({ name, email }: AccountMember): string => name || email;

interface MemberDialogProps {
  readonly of: AccountMember;
  /** The account in the API. */
  readonly path: string;
  readonly onClose: () => void;
}

export function RoleDialog({ of, path, onClose }: MemberDialogProps) {
  const { t } = useTranslation();
  const [role, setRole] = useState<MemberRole>(of.role);
  return (
    <Act
      opened
      onClose={onClose}
      title={t('client.members.changeNamed', { name: nameOf(of) })}
      action={t('client.members.change')}
      missing={role === of.role}
      stale={staleMembers(path)}
      act={async (reason) => {
        await send('PATCH', `${path}/members/${encodeURIComponent(of.id)}`, { role, reason });
        return t('client.members.changed');
      }}
    >
      <Roles value={role} onChange={setRole} makesOwners />
    </Act>
  );
}

const revoke = 'revoke';
/** Roles that may have keys. */
const holders: readonly MemberRole[] = ['owner', 'admin', 'developer'];

interface RemoveDialogProps extends MemberDialogProps {
  /** Members of the account. */
  readonly others: readonly AccountMember[];
}

export function RemoveDialog({ of, others, path, onClose }: RemoveDialogProps) {
  const { t } = useTranslation();
  const [receiver, setReceiver] = useState<string>(revoke);
  const receivers = others.filter(({ id, role }) => id !== of.id && holders.includes(role));
  const choices = [
    { value: revoke, label: t('client.members.keysRevoke') },
    ...receivers.map((row) => ({
      value: row.id,
      label: t('operator.people.accounts.keysTo', { name: nameOf(row) }),
    })),
  ];
  const hasKeys = of.keys > 0 && receivers.length > 0;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('client.members.removeTitle', { name: nameOf(of) })}
      text={t('client.members.removeWords')}
      action={t('client.members.remove')}
      danger
      stale={staleMembers(path)}
      act={async (reason) => {
        const keys = receiver === revoke ? revoke : { handTo: receiver };
        await send('DELETE', `${path}/members/${encodeURIComponent(of.id)}`, { keys, reason });
        return t('client.members.removed');
      }}
    >
      {hasKeys ? (
        <Select
          label={t('shell.word.keys')}
          allowDeselect={false}
          data={choices}
          value={receiver}
          onChange={(value) => setReceiver(value ?? revoke)}
        />
      ) : undefined}
    </Act>
  );
}
