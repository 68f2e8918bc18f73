/** Two ways to add people: an invitation to sign up, or a person with a role. */
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { Role } from '../../../api/types.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { Act } from '../parts/act.tsx';
import type { Handover } from '../sale-types.ts';

interface LetInProps {
  readonly onClose: () => void;
  readonly onDone: (handover: Handover) => void;
}
const isEmail = (text: string) => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text.trim());
const roleNames = ['client', 'auditor', 'operator'] as const;

function EmailField({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const { t } = useTranslation();
  return (
    <TextInput
      type="email"
      label={t('operator.people.people.email')}
      required
      data-autofocus
      maxLength={200}
      value={value}
      error={value === '' || isEmail(value) ? undefined : t('operator.people.people.emailWrong')}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

export function InviteDialog({ onClose, onDone }: LetInProps) {
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.people.inviteTitle')}
      text={t('operator.people.people.inviteText')}
      action={t('operator.people.people.invite')}
      missing={!isEmail(email)}
      act={async (reason) => {
        onDone(await send<Handover>('POST', '/admin/invitations', { email: email.trim(), reason }));
        return undefined;
      }}
    >
      <EmailField value={email} onChange={setEmail} />
    </Act>
  );
}

export function AddDialog({ onClose, onDone }: LetInProps) {
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('client');
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.people.add')}
      text={t('operator.people.people.addText')}
      action={t('operator.people.people.add')}
      missing={!isEmail(email) || name.trim() === ''}
      stale={[listKey('/admin/people')]}
      act={async (reason) => {
        const wanted = { email: email.trim(), name: name.trim(), role, reason };
        onDone((await send<{ handover: Handover }>('POST', '/admin/people', wanted)).handover);
        return undefined;
      }}
    >
      <EmailField value={email} onChange={setEmail} />
      <TextInput
        label={t('shell.word.name')}
        required
        maxLength={100}
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <Select
        label={t('operator.people.people.roleTitleShort')}
        description={t(`operator.people.people.roleHint.${role}`)}
        data={roleNames.map((value) => ({ value, label: t(`operator.people.people.role.${value}`) }))}
        allowDeselect={false}
        value={role}
        onChange={(value) => setRole((value ?? 'client') as Role)}
      />
    </Act>
  );
}
