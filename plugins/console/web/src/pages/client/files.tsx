/** Files that the client has uploaded, or that batches have made for it: how long they are kept, downloads, deletion. */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconDownload, IconFile } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { linkTo, send } from '../../api/client.ts';
import { has, useMe } from '../../api/session.ts';
import type { FileRow } from '../../api/types.ts';
import { textColumn, timeColumn } from '../../parts/columns.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { DataTable, listKey } from '../../parts/data-table.tsx';
import { TextLink } from '../../parts/entry-frame.tsx';
import { bytesText } from '../../parts/format.ts';
import { Page, Panel } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { EmptyState } from '../../parts/states.tsx';
import './file-texts.ts';

export default function Files() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const withBatches = has(useMe(), 'batches');
  const [removed, setRemoved] = useState<FileRow>();
  const remove = async () => {
    await send('DELETE', `/files/${removed!.id}`);
    notifications.show({ message: t('client.files.removed'), color: 'teal' });
    await askAgain(queries, listKey('/files'));
  };
  return (
    <Page
      title={t('client.filesTitle')}
      hint={t('client.files.hint')}
      actions={withBatches && <TextLink to="/batches">{t('client.batchesTitle')}</TextLink>}
    >
      <Panel flush>
        <DataTable
          label={t('client.filesTitle')}
          path="/files"
          columns={useColumns(setRemoved)}
          rowKey={({ id }) => id}
          empty={<EmptyState icon={IconFile} title={t('client.files.none')} hint={t('client.files.noneHint')} />}
        />
      </Panel>
      <Confirm
        opened={removed !== undefined}
        title={t('client.files.removeTitle', { name: removed?.name ?? '' })}
        action={t('client.files.remove')}
        danger
        onConfirm={remove}
        onClose={() => setRemoved(undefined)}
      >
        {t('client.files.removeWords')}
      </Confirm>
    </Page>
  );
}

function useColumns(onRemove: (file: FileRow) => void): Column<FileRow>[] {
  const { t, i18n } = useTranslation();
  return [
    textColumn('name', t('shell.word.name'), {
      cell: ({ id, name }) => (
        <Text span inherit title={id}>
          {name}
        </Text>
      ),
    }),
    textColumn('purpose', t('client.files.purpose'), {
      cell: ({ purpose }) => <span className="mono">{purpose}</span>,
    }),
    textColumn('bytes', t('client.files.size'), {
      right: true,
      cell: ({ bytes }) => bytesText(bytes, i18n.language),
    }),
    timeColumn('createdAt', t('client.files.created'), { minor: true }),
    timeColumn('expiresAt', t('client.files.expires'), { relative: true }),
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: (file) => (
        <Group justify="flex-end" gap={4} wrap="nowrap">
          <DownloadButton id={file.id} name={file.name} />
          <Button
            size="compact-xs"
            variant="subtle"
            color="red"
            aria-label={t('client.files.removeNamed', { name: file.name })}
            onClick={() => onRemove(file)}
          >
            {t('client.files.remove')}
          </Button>
        </Group>
      ),
    },
  ];
}

/** By the session, so that no key is needed. */
export function DownloadButton({ id, name }: { readonly id: string; readonly name: string }) {
  const { t } = useTranslation();
  return (
    <Button
      component="a"
      href={linkTo(`/files/${encodeURIComponent(id)}/content`)}
      download={name}
      size="compact-xs"
      variant="subtle"
      aria-label={t('client.files.downloadNamed', { name })}
      leftSection={<IconDownload size={14} aria-hidden />}
    >
      {t('client.files.download')}
    </Button>
  );
}
