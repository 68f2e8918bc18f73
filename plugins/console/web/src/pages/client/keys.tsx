/** The client's keys: made and shown once, changed, revoked. */
import { Button, Drawer, Modal, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { send } from '../../api/client.ts';
import { keysQuery } from '../../api/models.ts';
import type { KeyRow, KeyTerms, NewKey } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { DataTable, listKey } from '../../parts/data-table.tsx';
import { TextLink } from '../../parts/entry-frame.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import '../../parts/project-texts.ts';
import { useSearchState } from '../../parts/search-state.ts';
import { SecretOnce } from '../../parts/secret-once.tsx';
import SetUp from '../../parts/set-up.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { useKeyColumns } from './key-columns.tsx';
import { KeyForm } from './key-form.tsx';
import { RotateKey } from './rotate-key.tsx';

export default function Keys() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const [edited, setEdited] = useState<KeyRow>();
  const [revoked, setRevoked] = useState<KeyRow>();
  const [rotated, setRotated] = useState<KeyRow>();
  const changed = useKeysChanged();
  const columns = useKeyColumns({ onEdit: setEdited, onRotate: setRotated, onRevoke: setRevoked });
  const button = useRef<HTMLButtonElement>(null);
  const create = (
    <Button ref={button} leftSection={<IconPlus size={16} />} onClick={() => change({ new: '1' })}>
      {t('client.keys.create')}
    </Button>
  );
  return (
    <Page
      title={t('shell.word.keys')}
      hint={t('client.keys.hint')}
      actions={
        <>
          <TextLink to="/projects">{t('client.projects.title')}</TextLink>
          {create}
        </>
      }
    >
      <Panel flush>
        <DataTable
          label={t('shell.word.keys')}
          path="/keys"
          columns={columns}
          rowKey={({ id }) => id}
          empty={<EmptyState icon={IconKey} title={t('client.keys.none')} hint={t('client.keys.noneHint')} />}
        />
      </Panel>
      <CreateKey
        opened={search['new'] !== undefined}
        onClose={() => change({ new: undefined })}
        onDone={() => button.current?.focus()}
      />
      <EditKey row={edited} onClose={() => setEdited(undefined)} />
      <RotateKey row={rotated} onClose={() => setRotated(undefined)} onChanged={changed} />
      <RevokeKey row={revoked} onClose={() => setRevoked(undefined)} />
    </Page>
  );
}

function useKeysChanged() {
  const queries = useQueryClient();
  return () => Promise.all([askAgain(queries, listKey('/keys')), askAgain(queries, keysQuery.queryKey)]);
}

interface CreateKeyProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  /** The last dialog is closed. */
  readonly onDone: () => void;
}

/** Terms → the key, once → how to set a client up with it. Then the key is forgotten. */
function CreateKey({ opened, onClose, onDone }: CreateKeyProps) {
  const { t } = useTranslation();
  const changed = useKeysChanged();
  const [made, setMade] = useState<NewKey>();
  const [saved, setSaved] = useState(false);
  const create = async (terms: KeyTerms) => {
    const key = await send<NewKey>('POST', '/keys', terms);
    setSaved(false);
    setMade(key);
    onClose();
    await changed();
  };
  return (
    <>
      <Drawer opened={opened} onClose={onClose} title={t('client.keys.create')}>
        {opened && <KeyForm button={t('client.keys.create')} onSend={create} />}
      </Drawer>
      <SecretOnce title={t('client.keys.made')} secret={saved ? undefined : made?.key} onSaved={() => setSaved(true)} />
      <Modal
        opened={saved && made !== undefined}
        onClose={() => setMade(undefined)}
        returnFocus={false}
        onExitTransitionEnd={onDone}
        title={t('client.keys.setUp')}
        size="xl"
      >
        <Text fz="sm" c="dimmed" mb="md">
          {t('client.keys.setUpHint')}
        </Text>
        {made !== undefined && <SetUp secret={made.key} />}
      </Modal>
    </>
  );
}

function EditKey({ row, onClose }: { readonly row: KeyRow | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const changed = useKeysChanged();
  const save = async (terms: KeyTerms) => {
    await send('PATCH', `/keys/${row!.id}`, terms);
    notifications.show({ message: t('client.keys.saved'), color: 'teal' });
    onClose();
    await changed();
  };
  return (
    <Drawer opened={row !== undefined} onClose={onClose} title={t('client.keys.edit')}>
      {row !== undefined && <KeyForm key={row.id} row={row} button={t('shell.save')} onSend={save} />}
    </Drawer>
  );
}

function RevokeKey({ row, onClose }: { readonly row: KeyRow | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const changed = useKeysChanged();
  const revoke = async () => {
    await send('DELETE', `/keys/${row!.id}`);
    notifications.show({ message: t('client.keys.gone'), color: 'teal' });
    await changed();
  };
  return (
    <Confirm
      opened={row !== undefined}
      title={t('client.keys.revokeTitle', { name: row?.name ?? '' })}
      action={t('shell.word.revoke')}
      danger
      onConfirm={revoke}
      onClose={onClose}
    >
      {t('client.keys.revokeWords')}
    </Confirm>
  );
}
