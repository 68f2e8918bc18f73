/** The keys of one account; an operator can revoke them, and give them another secret. */

import { ActionIcon, Autocomplete, Group, Stack, Text } from '@mantine/core';
import { IconEdit, IconKey, IconRefresh } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { ProjectRow, RotatedKey } from '../../../api/types.ts';
import { prefixColumn, textColumn, timeColumn, useDangerColumn } from '../../../parts/columns.tsx';
import { type Column, DataTable, listKey } from '../../../parts/data-table.tsx';
import { countText, exactMoneyText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { ServiceMark, useProjectColumns } from '../../../parts/project-columns.tsx';
import { SecretOnce } from '../../../parts/secret-once.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Secrets } from '../../client/key-columns.tsx';
import { type Overlap, overlapHours, RotationFields } from '../../client/rotate-key.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { AllRowsCsv } from '../parts/all-rows-csv.tsx';
import { Word } from '../parts/badges.tsx';
import { answerKey, useAnswer } from '../parts/load.tsx';
import { RowLink } from '../parts/names.tsx';
import { useProjects } from '../parts/projects.tsx';
import type { AccountKey } from '../types.ts';

const csvColumns = [
  'id',
  'name',
  'project',
  'person',
  'prefix',
  'models',
  'addresses',
  'limits',
  'cap',
  'images',
  'tags',
  'regions',
  'expiresAt',
  'createdAt',
  'lastUsedAt',
  'revokedAt',
  'rotatedAt',
];

/** The account's keys, and its projects where it has any. */
export function AccountKeys({ id }: { readonly id: string }) {
  return (
    <Stack>
      <Keys id={id} />
      <Projects path={`/admin/accounts/${encodeURIComponent(id)}/projects`} />
    </Stack>
  );
}

function Projects({ path }: { readonly path: string }) {
  const { t } = useTranslation();
  const columns = useProjectColumns();
  const first = useAnswer<{ readonly rows: readonly ProjectRow[] }>(path, { limit: '1' });
  if ((first.data?.rows.length ?? 0) === 0) return null;
  return (
    <Panel flush title={t('client.projects.title')}>
      <DataTable<ProjectRow>
        label={t('client.projects.title')}
        path={path}
        columns={columns}
        rowKey={(row) => row.id}
        empty={null}
      />
    </Panel>
  );
}

function Keys({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const acts = useActs();
  const [revoked, setRevoked] = useState<AccountKey>();
  const path = `/admin/accounts/${encodeURIComponent(id)}/keys`;
  const [moved, setMoved] = useState<AccountKey>();
  const [rotated, setRotated] = useState<AccountKey>();
  const columns = useColumns(acts ? { onProject: setMoved, onRotate: setRotated } : undefined);
  const revoke = useDangerColumn<AccountKey>(t('shell.word.revoke'), setRevoked, (key) => key.revokedAt === null);
  return (
    <Panel flush actions={<AllRowsCsv path={path} file="keys" columns={csvColumns} />}>
      <DataTable<AccountKey>
        label={t('operator.people.accounts.tabs.keys')}
        path={path}
        columns={acts ? [...columns, revoke] : columns}
        rowKey={(key) => key.id}
        empty={
          <EmptyState
            icon={IconKey}
            title={t('operator.people.accounts.noKeys')}
            hint={t('operator.people.accounts.noKeysHint')}
          />
        }
      />
      <Rotation of={rotated} path={path} onClose={() => setRotated(undefined)} />
      {moved !== undefined && <ProjectDialog of={moved} path={path} onClose={() => setMoved(undefined)} />}
      {revoked !== undefined && (
        <Act
          opened
          onClose={() => setRevoked(undefined)}
          title={t('operator.people.accounts.revokeTitle', { name: revoked.name })}
          text={t('operator.people.accounts.revokeText')}
          action={t('shell.word.revoke')}
          danger
          stale={[listKey(path)]}
          act={async (reason) => {
            await send('DELETE', `${path}/${encodeURIComponent(revoked.id)}`, { reason });
            return t('operator.people.accounts.revoked', { name: revoked.name });
          }}
        />
      )}
    </Panel>
  );
}

interface RowActs {
  readonly onProject: (key: AccountKey) => void;
  readonly onRotate: (key: AccountKey) => void;
}

function useColumns(acts: RowActs | undefined): Column<AccountKey>[] {
  const { t } = useTranslation();
  return [
    textColumn('name', t('shell.word.name'), {
      cell: ({ id, name, person }) => (
        <Group gap={6} wrap="nowrap" component="span">
          <RowLink to="/admin/requests" search={{ keyId: id, span: '30d' }}>
            {name}
          </RowLink>
          {person === null && <ServiceMark />}
        </Group>
      ),
    }),
    textColumn('project', t('shell.word.project'), {
      beside: acts && ((key) => <ProjectButton of={key} onClick={() => acts.onProject(key)} />),
    }),
    {
      ...prefixColumn<AccountKey>(t('operator.column.prefix')),
      cell: (key) => <Secrets row={key} />,
      beside: acts && ((key) => key.revokedAt === null && <RotateButton of={key} onClick={() => acts.onRotate(key)} />),
    },
    { key: 'state', title: t('shell.word.state'), cell: (key) => <KeyWord of={key} /> },
    { key: 'bounds', title: t('operator.people.accounts.keyLimits'), minor: true, cell: (key) => <Bounds of={key} /> },
    timeColumn('lastUsedAt', t('operator.column.lastUse'), { relative: true }),
    timeColumn('createdAt', t('operator.column.created'), { minor: true }),
  ];
}

function ProjectButton({ of: { name }, onClick }: { readonly of: AccountKey; readonly onClick: () => void }) {
  const { t } = useTranslation();
  const label = t('operator.people.accounts.projectTitle', { name });
  return (
    <ActionIcon size="xs" variant="subtle" color="gray" aria-label={label} title={label} onClick={onClick}>
      <IconEdit size={13} />
    </ActionIcon>
  );
}

function RotateButton({ of: { name }, onClick }: { readonly of: AccountKey; readonly onClick: () => void }) {
  const { t } = useTranslation();
  const label = t('client.rotation.title', { name });
  return (
    <ActionIcon size="xs" variant="subtle" color="gray" aria-label={label} title={label} onClick={onClick}>
      <IconRefresh size={13} />
    </ActionIcon>
  );
}

interface RotationProps {
  /** undefined: none is chosen. */
  readonly of: AccountKey | undefined;
  /** Path of the account's keys. */
  readonly path: string;
  readonly onClose: () => void;
}

/** The new secret stays on the page when the dialog has closed, until one says that it is kept. */
function Rotation({ of, path, onClose }: RotationProps) {
  const { t } = useTranslation();
  const [overlap, setOverlap] = useState<Overlap>('day');
  const [made, setMade] = useState<{ readonly name: string; readonly key: string }>();
  const rotate = async (reason: string, { id, name }: AccountKey) => {
    const body = { overlapHours: overlapHours[overlap], reason };
    const { key } = await send<RotatedKey>('POST', `${path}/${encodeURIComponent(id)}/rotate`, body);
    setMade({ name, key });
    return undefined;
  };
  return (
    <>
      {of !== undefined && (
        <Act
          opened
          onClose={onClose}
          title={t('client.rotation.title', { name: of.name })}
          action={t('client.rotation.rotate')}
          stale={[listKey(path)]}
          act={(reason) => rotate(reason, of)}
        >
          <RotationFields overlap={overlap} onChange={setOverlap} />
        </Act>
      )}
      <SecretOnce
        title={t('client.rotation.madeOf', { name: made?.name ?? '' })}
        secret={made?.key}
        onSaved={() => setMade(undefined)}
      />
    </>
  );
}

interface ProjectDialogProps {
  readonly of: AccountKey;
  /** Path of the account's keys. */
  readonly path: string;
  readonly onClose: () => void;
}

function ProjectDialog({ of: { id, name, project }, path, onClose }: ProjectDialogProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(project ?? '');
  const wanted = text.trim() || null;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.accounts.projectTitle', { name })}
      text={t('operator.people.accounts.projectText')}
      action={t('operator.people.accounts.projectAction')}
      stale={[listKey(path), answerKey('/admin/projects')]}
      act={async (reason) => {
        await send('POST', `${path}/${encodeURIComponent(id)}/project`, { project: wanted, reason });
        return t('operator.people.accounts.projectDone', { name, project: wanted ?? t('shell.project.none') });
      }}
    >
      <Autocomplete
        label={t('shell.word.project')}
        data={[...useProjects()]}
        maxLength={100}
        data-autofocus
        value={text}
        onChange={setText}
      />
    </Act>
  );
}

function KeyWord({ of: { revokedAt, expiresAt } }: { readonly of: AccountKey }) {
  const { t } = useTranslation();
  if (revokedAt !== null) return <Word color="red">{t('operator.people.accounts.keyRevoked')}</Word>;
  const isOver = expiresAt !== null && Date.parse(expiresAt) < Date.now();
  return isOver ? (
    <Word color="gray">{t('operator.people.accounts.keyExpired')}</Word>
  ) : (
    <Word color="teal">{t('operator.people.accounts.keyLive')}</Word>
  );
}

function Bounds({ of: { models, addresses, regions, cap, limits } }: { readonly of: AccountKey }) {
  const { t, i18n } = useTranslation();
  const parts = [
    ...(models ?? []),
    ...(addresses ?? []),
    ...(regions === null ? [] : [`${t('client.projects.regions')}: ${regions.join(', ')}`]),
    ...Object.entries(limits ?? {}).map(([name, count]) => `${name} ${countText(count, i18n.language)}`),
    ...(cap === null
      ? []
      : [
          t('operator.people.accounts.keyCap', {
            amount: exactMoneyText(cap.amount, i18n.language),
            every: t(`operator.people.accounts.every.${cap.every}`),
          }),
        ]),
  ];
  return (
    <Text fz="xs" c="dimmed" lineClamp={2} maw={260} title={parts.join(', ')}>
      {parts.join(', ') || '–'}
    </Text>
  );
}
