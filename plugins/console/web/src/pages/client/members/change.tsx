/** Another role for a member, and removing one. */
import { Button, Drawer, Group, Modal, Radio, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { useMe } from '../../../api/session.ts';
import type { MemberRole, MemberRow } from '../../../api/types.ts';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { useMembersChanged } from './keys.ts';

const roles = ['owner', 'admin', 'billing', 'developer', 'viewer'] as const;

interface RolesProps {
  readonly value: MemberRole;
  readonly onChange: (role: MemberRole) => void;
  /** By default as the role in the own account says. */
  readonly makesOwners?: boolean;
}

/** Owners and operators alone make owners. */
export function Roles({ value, onChange, makesOwners }: RolesProps) {
  const { t } = useTranslation();
  const { account } = useMe();
  const offersOwner = makesOwners ?? account?.role === 'owner';
  return (
    <Radio.Group label={t('client.members.roleWord')} value={value} onChange={(role) => onChange(role as MemberRole)}>
      <Stack gap="xs" mt={6}>
        {roles
          .filter((role) => role !== 'owner' || offersOwner)
          .map((role) => (
            <Radio
              key={role}
              value={role}
              label={t(`client.members.role.${role}`)}
              description={t(`client.members.roleHint.${role}`)}
            />
          ))}
      </Stack>
    </Radio.Group>
  );
}

interface OfMember {
  readonly of: MemberRow | undefined;
  readonly onClose: () => void;
}

export function RoleDrawer({ of, onClose }: OfMember) {
  const { t } = useTranslation();
  return (
    <Drawer opened={of !== undefined} onClose={onClose} title={t('client.members.change')}>
      {of !== undefined && <RoleForm row={of} onClose={onClose} />}
    </Drawer>
  );
}

function RoleForm({ row, onClose }: { readonly row: MemberRow; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const [role, setRole] = useState<MemberRole>(row.role);
  const changed = useMembersChanged();
  const { busy, problem, run } = useWork((error) => error);
  const save = async () => {
    await send('PATCH', `/members/${row.id}`, { role });
    onClose();
    await changed(t('client.members.changed'));
  };
  return (
    <Stack>
      <Text fz="sm" className="breaks">
        {row.name} {row.email}
      </Text>
      <Roles value={role} onChange={setRole} />
      {problem !== undefined && <ErrorState error={problem} />}
      <Group justify="flex-end">
        <Button loading={busy} disabled={role === row.role} onClick={() => void run(save)}>
          {t('shell.save')}
        </Button>
      </Group>
    </Stack>
  );
}

export function RemoveMember({ of, onClose }: OfMember) {
  const { t } = useTranslation();
  const [keys, setKeys] = useState<'revoke' | 'take'>('revoke');
  const changed = useMembersChanged();
  const { busy, problem, run } = useWork((error) => error);
  const remove = async () => {
    await send('POST', `/members/${of!.id}/remove`, { keys });
    onClose();
    await changed(t('client.members.removed'));
  };
  return (
    <Modal
      opened={of !== undefined}
      onClose={onClose}
      title={t('client.members.removeTitle', { name: of?.name || of?.email })}
    >
      <Stack>
        <Text fz="sm">{t('client.members.removeWords')}</Text>
        {of !== undefined && of.keys > 0 && (
          <Radio.Group
            label={t('shell.word.keys')}
            value={keys}
            onChange={(value) => setKeys(value === 'take' ? 'take' : 'revoke')}
          >
            <Stack gap="xs" mt={6}>
              <Radio value="revoke" label={t('client.members.keysRevoke')} />
              <Radio value="take" label={t('client.members.keysTake')} />
            </Stack>
          </Radio.Group>
        )}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t('shell.cancel')}
          </Button>
          <Button color="red" loading={busy} onClick={() => void run(remove)}>
            {t('client.members.remove')}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
