/** Another name for the account that one acts in. */
import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { meQuery, queries } from '../../../api/session.ts';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';

export function RenameAccount({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button size="compact-xs" variant="subtle" onClick={() => setOpened(true)}>
        {t('client.members.rename')}
      </Button>
      <Modal opened={opened} onClose={() => setOpened(false)} title={t('client.members.renameTitle')}>
        {opened && <Form before={name} onClose={() => setOpened(false)} />}
      </Modal>
    </>
  );
}

function Form({ before, onClose }: { readonly before: string; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(before);
  const { busy, problem, run } = useWork((error) => error);
  const name = typed.trim();
  const save = async () => {
    await send('PATCH', '/account', { name });
    onClose();
    notifications.show({ message: t('client.members.renamed', { name }), color: 'teal' });
    await askAgain(queries, meQuery.queryKey);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(save);
      }}
    >
      <Stack>
        <TextInput
          label={t('shell.word.name')}
          required
          data-autofocus
          maxLength={100}
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy} disabled={name === '' || name === before}>
            {t('shell.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
