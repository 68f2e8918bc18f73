/** Who may sign in and what they may do; letting people in, changing roles, blocking, reset links. */

import { Button, Code, Group, Modal, Stack, Text } from '@mantine/core';
import { IconMailPlus, IconUserPlus, IconUsers } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMe } from '../../../api/session.ts';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filters.tsx';
import { AccountLink } from '../parts/names.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { Handover } from '../sale-types.ts';
import type { Person } from '../types.ts';
import { AddDialog, InviteDialog, type Invited, InvitedDialog } from './let-in.tsx';
import { PersonMenu } from './person-menu.tsx';

const roleNames = ['client', 'auditor', 'operator'] as const;
const csvColumns = [
  'id',
  'email',
  'name',
  'role',
  'blocked',
  'emailVerified',
  'twoFactor',
  'accountId',
  'createdAt',
  'seenAt',
];

export default function People() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const acts = useActs();
  const [dialog, setDialog] = useState<'add' | 'invite'>();
  const [handover, setHandover] = useState<Handover>();
  const query = { text: search['text'], role: search['role'] };
  const [invited, setInvited] = useState<readonly Invited[]>();
  const close = () => setDialog(undefined);
  // The link of one alone has its own dialog.
  const onInvited = (all: readonly Invited[]) => {
    const [first] = all;
    if (all.length === 1 && first?.handover !== undefined) setHandover(first.handover);
    else setInvited(all);
  };
  return (
    <ResourcePage<Person>
      texts="operator.people.people"
      icon={IconUsers}
      actions={acts ? <LetIn onPick={setDialog} /> : undefined}
      filters={
        <>
          <TextFilter name="text" label={t('operator.people.people.search')} />
          <ChoiceFilter
            name="role"
            label={t('operator.people.people.anyRole')}
            data={roleNames.map((value) => ({ value, label: t(`operator.people.people.role.${value}`) }))}
          />
        </>
      }
      source={{ path: '/admin/people', query, csvOfAll: { file: 'people', columns: csvColumns } }}
      columns={useColumns(acts, setHandover)}
    >
      {dialog === 'add' && <AddDialog onClose={close} onDone={setHandover} />}
      {dialog === 'invite' && <InviteDialog onClose={close} onDone={onInvited} />}
      {invited !== undefined && <InvitedDialog all={invited} onClose={() => setInvited(undefined)} />}
      <LinkDialog handover={handover} onClose={() => setHandover(undefined)} />
    </ResourcePage>
  );
}

function LetIn({ onPick }: { readonly onPick: (dialog: 'add' | 'invite') => void }) {
  const { t } = useTranslation();
  return (
    <>
      <Button leftSection={<IconMailPlus size={15} />} onClick={() => onPick('invite')}>
        {t('operator.people.people.invite')}
      </Button>
      <Button variant="default" leftSection={<IconUserPlus size={15} />} onClick={() => onPick('add')}>
        {t('operator.people.people.add')}
      </Button>
    </>
  );
}

const roleColors = { client: 'gray', auditor: 'blue', operator: 'violet' } as const;

function useColumns(acts: boolean, onLink: (handover: Handover) => void): Column<Person>[] {
  const { t } = useTranslation();
  const own = useMe().person?.id;
  const act: Column<Person> = {
    key: 'actions',
    title: t('shell.word.actions'),
    right: true,
    // Operators cannot change their own role or block themselves.
    cell: (person) => person.id !== own && <PersonMenu person={person} onLink={onLink} />,
  };
  return [
    textColumn('name', t('shell.word.name'), { cell: (person) => <Who of={person} isMe={person.id === own} /> }),
    textColumn('role', t('operator.people.people.roleTitleShort'), {
      cell: ({ role, blocked }) =>
        blocked ? (
          <Word color="red">{t('operator.people.people.blocked')}</Word>
        ) : (
          <Word color={roleColors[role]}>{t(`operator.people.people.role.${role}`)}</Word>
        ),
    }),
    textColumn('accountId', t('shell.word.account'), { cell: ({ accountId }) => <AccountLink id={accountId} /> }),
    textColumn('twoFactor', t('operator.people.people.twoFactor'), {
      minor: true,
      cell: ({ twoFactor }) => (twoFactor ? t('shell.yes') : t('shell.no')),
    }),
    timeColumn('seenAt', t('operator.people.people.seen'), { relative: true }),
    timeColumn('createdAt', t('operator.column.created'), { minor: true }),
    ...(acts ? [act] : []),
  ];
}

function Who({ of: { name, email, emailVerified }, isMe }: { readonly of: Person; readonly isMe: boolean }) {
  const { t } = useTranslation();
  return (
    <span>
      {name} {isMe && <Word color="blue">{t('operator.people.people.you')}</Word>}
      <Text span display="block" fz="xs" c="dimmed" className="wrap-any">
        {email} {!emailVerified && `(${t('operator.people.people.unverified')})`}
      </Text>
    </span>
  );
}

interface LinkDialogProps {
  /** undefined: closed. */
  readonly handover: Handover | undefined;
  readonly onClose: () => void;
}

function LinkDialog({ handover, onClose }: LinkDialogProps) {
  const { t } = useTranslation();
  const link = handover?.link ?? undefined;
  return (
    <Modal
      opened={handover !== undefined}
      onClose={onClose}
      title={t('operator.people.people.linkTitle')}
      closeOnClickOutside={link === undefined}
    >
      <Stack>
        <Text fz="sm">
          {link === undefined ? t('operator.people.people.mailed') : t('operator.people.people.linkText')}
        </Text>
        {link !== undefined && (
          <Group wrap="nowrap" align="flex-start" gap="xs">
            <Code block flex={1} className="wrap-any secret-text" data-testid="link">
              {link}
            </Code>
            <CopyButton text={link} wide focused />
          </Group>
        )}
        <Group justify="flex-end">
          <Button onClick={onClose}>{t('shell.done')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
