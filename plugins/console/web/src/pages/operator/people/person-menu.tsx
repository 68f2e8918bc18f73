/** What an operator changes about a person: role, whether they may sign in, a reset link. */
import { ActionIcon, Menu, Radio, Stack } from '@mantine/core';
import {
  IconDotsVertical,
  IconKey,
  IconLock,
  IconLockOpen,
  IconMailCheck,
  IconPlugConnectedX,
  IconUserCog,
} from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { Role } from '../../../api/types.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { Act } from '../parts/act.tsx';
import type { Handover } from '../sale-types.ts';
import type { Person } from '../types.ts';

type Dialog = 'role' | 'block' | 'reset' | 'release' | 'confirm';
interface PersonProps {
  readonly person: Person;
  readonly onLink: (handover: Handover) => void;
}
const roleNames = ['client', 'auditor', 'operator'] as const;
const pathOf = ({ id }: Person) => `/admin/people/${encodeURIComponent(id)}`;
const stale = [listKey('/admin/people')];

export function PersonMenu({ person, onLink }: PersonProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<Dialog>();
  const { name, blocked } = person;
  const close = () => setDialog(undefined);
  return (
    <>
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`${t('shell.more')}: ${name}`}>
            <IconDotsVertical size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconUserCog size={15} />} onClick={() => setDialog('role')}>
            {t('operator.people.people.changeRole')}
          </Menu.Item>
          <Menu.Item leftSection={<IconKey size={15} />} onClick={() => setDialog('reset')}>
            {t('operator.people.people.reset')}
          </Menu.Item>
          <Menu.Item leftSection={<IconPlugConnectedX size={15} />} onClick={() => setDialog('release')}>
            {t('operator.people.people.release')}
          </Menu.Item>
          {!person.emailVerified && (
            <Menu.Item leftSection={<IconMailCheck size={15} />} onClick={() => setDialog('confirm')}>
              {t('operator.people.people.confirm')}
            </Menu.Item>
          )}
          <Menu.Item
            color={blocked ? undefined : 'red'}
            leftSection={blocked ? <IconLockOpen size={15} /> : <IconLock size={15} />}
            onClick={() => setDialog('block')}
          >
            {blocked ? t('operator.people.people.unblock') : t('operator.people.people.block')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === 'role' && <RoleDialog person={person} onClose={close} />}
      {(dialog === 'release' || dialog === 'confirm') && (
        <IdentityDialog kind={dialog} person={person} onClose={close} />
      )}
      {dialog === 'block' && <BlockDialog person={person} onClose={close} />}
      {dialog === 'reset' && <ResetDialog person={person} onClose={close} onLink={onLink} />}
    </>
  );
}

interface DialogProps {
  readonly person: Person;
  readonly onClose: () => void;
}

function RoleDialog({ person, onClose }: DialogProps) {
  const { t } = useTranslation();
  const [role, setRole] = useState<Role>(person.role);
  const { name } = person;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.people.roleTitle', { name })}
      action={t('operator.people.people.changeRole')}
      missing={role === person.role}
      stale={stale}
      act={async (reason) => {
        await send('PATCH', pathOf(person), { role, reason });
        return t('operator.people.people.roleChanged', { name, role: t(`operator.people.people.role.${role}`) });
      }}
    >
      <Radio.Group
        label={t('operator.people.people.roleTitleShort')}
        value={role}
        onChange={(value) => setRole(value as Role)}
      >
        <Stack gap="xs" mt="xs">
          {roleNames.map((value) => (
            <Radio
              key={value}
              value={value}
              label={t(`operator.people.people.role.${value}`)}
              description={t(`operator.people.people.roleHint.${value}`)}
            />
          ))}
        </Stack>
      </Radio.Group>
    </Act>
  );
}

function IdentityDialog({ kind, person, onClose }: DialogProps & { readonly kind: 'release' | 'confirm' }) {
  const { t } = useTranslation();
  const { name, email } = person;
  return (
    <Act
      opened
      onClose={onClose}
      title={t(`operator.people.people.${kind}Title`, { name, email })}
      text={t(`operator.people.people.${kind}Text`)}
      action={t(`operator.people.people.${kind}`)}
      danger={kind === 'release'}
      stale={stale}
      act={async (reason) => {
        if (kind === 'release') await send('POST', `${pathOf(person)}/release`, { reason });
        else await send('PATCH', pathOf(person), { emailVerified: true, reason });
        return t(`operator.people.people.${kind}Done`, { name, email });
      }}
    />
  );
}

function BlockDialog({ person, onClose }: DialogProps) {
  const { t } = useTranslation();
  const { name, blocked } = person;
  const verb = blocked ? 'unblock' : 'block';
  return (
    <Act
      opened
      onClose={onClose}
      title={t(`operator.people.people.${verb}Title`, { name })}
      text={t(`operator.people.people.${verb}Text`)}
      action={t(`operator.people.people.${verb}`)}
      danger={!blocked}
      stale={stale}
      act={async (reason) => {
        await send('PATCH', pathOf(person), { blocked: !blocked, reason });
        return t(`operator.people.people.${verb}edDone`, { name });
      }}
    />
  );
}

function ResetDialog({ person, onClose, onLink }: DialogProps & Pick<PersonProps, 'onLink'>) {
  const { t } = useTranslation();
  const { name } = person;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.people.resetTitle', { name })}
      text={t('operator.people.people.resetText')}
      action={t('operator.people.people.reset')}
      act={async (reason) => {
        onLink(await send<Handover>('POST', `${pathOf(person)}/reset`, { reason }));
        return undefined;
      }}
    />
  );
}
