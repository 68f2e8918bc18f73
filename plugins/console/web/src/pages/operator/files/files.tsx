/** Uploaded files of all accounts, and results of batches; one can be deleted. */
import { Group, Stack, Text } from '@mantine/core';
import { IconFile } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { ApiError, send } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { bytesText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import '../../client/file-texts.ts';
import { ActButton, useActs } from '../parts/act.tsx';
import { Facts } from '../parts/facts.tsx';
import { ChoiceFilter } from '../parts/filters.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { AccountLink } from '../parts/names.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import { AccountFilter } from '../requests/seen-filters.tsx';
import type { OperatorFile, OperatorFileDetail } from '../types.ts';

const path = '/admin/files';
const purposes = ['batch', 'batch_output', 'user_data', 'assistants', 'vision', 'fine-tune', 'evals'];
const csvColumns = ['createdAt', 'id', 'accountId', 'name', 'purpose', 'mediaType', 'bytes', 'expiresAt'];

export default function Files() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const withAccounts = has(useMe(), 'accounts');
  const stay = { after: search['after'], page: search['page'] };
  const id = search['open'];
  const close = () => change({ ...stay, open: undefined });
  return (
    <ResourcePage<OperatorFile>
      texts="operator.files"
      icon={IconFile}
      source={{
        path,
        query: { accountId: search['accountId'], purpose: search['purpose'] },
        csvOfAll: { file: 'files', columns: csvColumns },
      }}
      columns={useColumns()}
      onOpen={(row) => change({ ...stay, open: row.id })}
      filters={
        <>
          {withAccounts && <AccountFilter />}
          <ChoiceFilter
            name="purpose"
            label={t('operator.files.anyPurpose')}
            data={purposes.map((value) => ({ value, label: value }))}
          />
        </>
      }
      drawer={{
        title: t('operator.files.detail'),
        content: id === undefined ? undefined : <Detail id={id} onDone={close} />,
        onClose: close,
      }}
    />
  );
}

function useColumns(): Column<OperatorFile>[] {
  const { t, i18n } = useTranslation();
  return [
    textColumn('name', t('shell.word.name')),
    textColumn('accountId', t('shell.word.account'), {
      cell: ({ accountId }) => <AccountLink id={accountId} />,
    }),
    textColumn('purpose', t('client.files.purpose'), {
      cell: ({ purpose }) => <span className="mono">{purpose}</span>,
    }),
    textColumn('bytes', t('client.files.size'), {
      right: true,
      cell: ({ bytes }) => bytesText(bytes, i18n.language),
    }),
    timeColumn('expiresAt', t('client.files.expires'), { relative: true, minor: true }),
    timeColumn('createdAt', t('client.files.created')),
  ];
}

function Detail({ id, onDone }: { readonly id: string; readonly onDone: () => void }) {
  const { t } = useTranslation();
  const answer = useAnswer<OperatorFileDetail>(`${path}/${encodeURIComponent(id)}`);
  if (answer.error instanceof ApiError && answer.error.status === 404)
    return <Text fz="sm">{t('operator.files.gone')}</Text>;
  return <Loaded of={answer}>{(file) => <Known file={file} onDone={onDone} />}</Loaded>;
}

function Known({ file, onDone }: { readonly file: OperatorFileDetail; readonly onDone: () => void }) {
  const { t, i18n } = useTranslation();
  const acts = useActs();
  return (
    <Stack>
      <Facts
        of={[
          [t('shell.word.name'), file.name],
          [t('shell.word.account'), <AccountLink key="account" id={file.accountId} />],
          [
            t('client.files.purpose'),
            <span key="purpose" className="mono">
              {file.purpose}
            </span>,
          ],
          [t('operator.files.mediaType'), file.mediaType],
          [t('client.files.size'), bytesText(file.bytes, i18n.language)],
          [t('operator.files.accountBytes'), bytesText(file.accountBytes, i18n.language)],
          [t('client.files.created'), <Time key="created" at={file.createdAt} />],
          [t('client.files.expires'), <Time key="expires" at={file.expiresAt} />],
          [
            'Id',
            <span key="id" className="mono">
              {file.id}
            </span>,
          ],
        ]}
      />
      {acts && (
        <Group>
          <ActButton
            title={t('client.files.removeTitle', { name: file.name })}
            text={t('operator.files.removeText')}
            action={t('operator.files.remove')}
            danger
            stale={[listKey(path)]}
            act={async (reason) => {
              await send('DELETE', `${path}/${encodeURIComponent(file.id)}`, { reason });
              onDone();
              return t('client.files.removed');
            }}
          />
        </Group>
      )}
    </Stack>
  );
}
