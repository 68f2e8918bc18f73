/** Two ways to add people: invitations to sign up, each with its result, or a person with a role. */
import { Button, Group, Modal, Select, Stack, Table, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { Role } from '../../../api/types.ts';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { useErrorText } from '../../../parts/states.tsx';
import { Act } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
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

/** What came of one invitation: by mail, a link to hand over, or a fault. */
export interface Invited {
  readonly email: string;
  readonly handover: Handover | undefined;
  readonly fault: string | undefined;
}
interface InviteProps {
  readonly onClose: () => void;
  readonly onDone: (all: readonly Invited[]) => void;
}
const mostInvited = 200;

export function InviteDialog({ onClose, onDone }: InviteProps) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [text, setText] = useState('');
  const emails = [...new Set(text.split(/[\s,;]+/).filter((part) => part !== ''))];
  const wrong = emails.find((one) => !isEmail(one));
  const invite = async (email: string, reason: string): Promise<Invited> => {
    try {
      const handover = await send<Handover>('POST', '/admin/invitations', { email, reason });
      return { email, handover, fault: undefined };
    } catch (error) {
      return { email, handover: undefined, fault: textOf(error) };
    }
  };
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.people.inviteTitle')}
      text={t('operator.people.people.inviteText')}
      action={t('operator.people.people.invite')}
      missing={emails.length === 0 || emails.length > mostInvited || wrong !== undefined}
      act={async (reason) => {
        const all: Invited[] = [];
        for (const email of emails) all.push(await invite(email, reason));
        onDone(all);
        return undefined;
      }}
    >
      <Textarea
        label={t('operator.people.people.emails')}
        description={t('operator.people.people.emailsHint')}
        required
        data-autofocus
        autosize
        minRows={2}
        maxRows={10}
        maxLength={40_000}
        value={text}
        error={wrong !== undefined && t('operator.people.people.emailsWrong', { text: wrong })}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
    </Act>
  );
}

/** Each address with its own result. */
export function InvitedDialog({ all, onClose }: { readonly all: readonly Invited[]; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const links = all.flatMap(({ email, handover }) => (handover?.link ? [`${email}\t${handover.link}`] : []));
  return (
    <Modal opened onClose={onClose} title={t('operator.people.people.invitedTitle', { count: all.length })} size="lg">
      <Stack>
        {links.length > 0 && <Text fz="sm">{t('operator.people.people.linkText')}</Text>}
        <Table>
          <Table.Tbody>
            {all.map(({ email, handover, fault }) => (
              <Table.Tr key={email}>
                <Table.Td className="wrap-any">{email}</Table.Td>
                <Table.Td className="wrap-any">
                  {fault !== undefined ? (
                    <Word color="red">{fault}</Word>
                  ) : handover?.link ? (
                    <CopyButton text={handover.link} wide />
                  ) : (
                    t('operator.people.people.mailedTo')
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        <Group justify="flex-end">
          {links.length > 0 && (
            <CopyButton text={links.join('\n')} label={t('operator.people.people.copyLinks')} wide />
          )}
          <Button onClick={onClose}>{t('shell.done')}</Button>
        </Group>
      </Stack>
    </Modal>
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
