/** The client's projects: made, changed, archived, with what their calls cost. */
import { Button, Drawer, Group, MultiSelect, Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { notifications } from '@mantine/notifications';
import { IconFolder, IconPlus } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { ApiError, get, send } from '../../api/client.ts';
import { keysQuery, modelsQuery } from '../../api/models.ts';
import { useRight } from '../../api/rights.ts';
import { has, useMe, usePerson } from '../../api/session.ts';
import type { MemberRow, ProjectRow } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { DataTable, listKey } from '../../parts/data-table.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { useProjectColumns } from '../../parts/project-columns.tsx';
import { RegionsField } from '../../parts/project-regions.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { EmptyState, ErrorState } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';

const Budgets = lazy(() => import('./budgets.tsx'));

export default function Projects() {
  const { t } = useTranslation();
  const readsAll = useRight('allUsage');
  const hasBudgets = has(useMe(), 'budgets') && readsAll;
  const manages = useRight('projects');
  const [edited, setEdited] = useState<ProjectRow | 'new'>();
  const [archived, setArchived] = useState<ProjectRow>();
  const changed = useProjectsChanged();
  const restore = async ({ id }: ProjectRow) => {
    await send('POST', `/projects/${id}/restore`);
    await changed(t('client.projects.restored'));
  };
  const columns = useProjectColumns();
  const actions: Column<ProjectRow> = {
    key: 'actions',
    title: t('shell.word.actions'),
    right: true,
    cell: (row) => <RowActions row={row} onEdit={setEdited} onArchive={setArchived} onRestore={restore} />,
  };
  return (
    <Page
      title={t('client.projects.title')}
      hint={t('client.projects.hint')}
      actions={
        manages && (
          <Button leftSection={<IconPlus size={16} />} onClick={() => setEdited('new')}>
            {t('client.projects.create')}
          </Button>
        )
      }
    >
      <Panel flush>
        <DataTable
          label={t('client.projects.title')}
          path="/projects"
          columns={manages ? [...columns, actions] : columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState icon={IconFolder} title={t('client.projects.none')} hint={t('client.projects.noneHint')} />
          }
        />
      </Panel>
      {hasBudgets && (
        <Suspense>
          <Budgets />
        </Suspense>
      )}
      <Edit of={edited} onClose={() => setEdited(undefined)} />
      <Confirm
        opened={archived !== undefined}
        title={t('client.projects.archiveTitle', { name: archived?.name ?? '' })}
        action={t('client.projects.archive')}
        danger
        onConfirm={async () => {
          await send('POST', `/projects/${archived!.id}/archive`);
          await changed(t('client.projects.archiveDone'));
        }}
        onClose={() => setArchived(undefined)}
      >
        {t('client.projects.archiveWords')}
      </Confirm>
    </Page>
  );
}

function useProjectsChanged() {
  const queries = useQueryClient();
  return (message: string) => {
    notifications.show({ message, color: 'teal' });
    return Promise.all([
      askAgain(queries, listKey('/projects')),
      askAgain(queries, listKey('/keys')),
      askAgain(queries, keysQuery.queryKey),
    ]);
  };
}

interface RowActionsProps {
  readonly row: ProjectRow;
  readonly onEdit: (row: ProjectRow) => void;
  readonly onArchive: (row: ProjectRow) => void;
  readonly onRestore: (row: ProjectRow) => Promise<void>;
}

function RowActions({ row, onEdit, onArchive, onRestore }: RowActionsProps) {
  const { t } = useTranslation();
  const { busy, run } = useWork((error) => {
    notifications.show({ message: error instanceof Error ? error.message : String(error), color: 'red' });
    return undefined;
  });
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={t('client.projects.editNamed', { name: row.name })}
        onClick={() => onEdit(row)}
      >
        {t('shell.edit')}
      </Button>
      {row.archivedAt === null ? (
        <Button size="compact-xs" variant="subtle" color="red" onClick={() => onArchive(row)}>
          {t('client.projects.archive')}
        </Button>
      ) : (
        <Button size="compact-xs" variant="subtle" loading={busy} onClick={() => void run(() => onRestore(row))}>
          {t('client.projects.restore')}
        </Button>
      )}
    </Group>
  );
}

function Edit({ of, onClose }: { readonly of: ProjectRow | 'new' | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const isNew = of === 'new';
  return (
    <Drawer
      opened={of !== undefined}
      onClose={onClose}
      title={t(isNew ? 'client.projects.create' : 'client.projects.edit')}
    >
      {of !== undefined && <Form row={isNew ? undefined : of} onClose={onClose} />}
    </Drawer>
  );
}

/** Members, and the owner that there is: one who has left the account stays until another is chosen. */
function useOwners(row: ProjectRow | undefined): { value: string; label: string }[] {
  const person = usePerson();
  const members = useQuery({
    queryKey: ['members'],
    queryFn: () => get<{ readonly rows: readonly MemberRow[] }>('/members'),
  }).data?.rows ?? [person];
  const owner = row?.owner ?? null;
  const left = owner === null || members.some(({ id }) => id === owner) ? [] : [{ id: owner, name: row?.ownerName }];
  return [...members, ...left].map(({ id, name }) => ({ value: id, label: name || id }));
}

/** Those that the server can find a fault in. */
const fields = new Set(['name', 'owner', 'regions']);
const orNull = (list: string[]) => (list.length === 0 ? null : list);

/** Who makes a project is in charge of it, unless another is chosen. */
function Form({ row, onClose }: { readonly row: ProjectRow | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const person = usePerson();
  const changed = useProjectsChanged();
  const models = useQuery(modelsQuery).data?.rows.map(({ id }) => id) ?? [];
  const owners = useOwners(row);
  const form = useForm({
    initialValues: {
      name: row?.name ?? '',
      models: row?.models ?? [],
      regions: row?.regions ?? [],
      owner: row === undefined ? (person.id as string | null) : row.owner,
    },
    validate: { name: (value) => (value.trim() === '' ? t('client.keys.nameMissing') : null) },
  });
  const { busy, problem, run } = useWork((error) => {
    if (!(error instanceof ApiError) || !fields.has(error.field ?? '')) return error;
    form.setFieldError(error.field!, error.message);
    return undefined;
  });
  const save = async ({ name, models, regions, owner }: typeof form.values) => {
    const terms = { name, owner, models: orNull(models), regions: orNull(regions) };
    await (row === undefined ? send('POST', '/projects', terms) : send('PATCH', `/projects/${row.id}`, terms));
    onClose();
    await changed(t(row === undefined ? 'client.projects.made' : 'client.projects.saved'));
  };
  return (
    <form onSubmit={form.onSubmit((values) => run(() => save(values)))}>
      <Stack>
        <TextInput
          label={t('shell.word.name')}
          description={row === undefined ? undefined : t('client.projects.nameHint')}
          maxLength={100}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <MultiSelect
          label={t('client.projects.models')}
          data={models}
          searchable
          clearable
          placeholder={form.values.models.length === 0 ? t('client.projects.allModels') : ''}
          {...form.getInputProps('models')}
        />
        <RegionsField {...form.getInputProps('regions')} />
        <Select
          label={t('client.projects.owner')}
          description={t('client.projects.ownerHint')}
          data={owners}
          clearable
          placeholder={t('client.projects.noOwner')}
          {...form.getInputProps('owner')}
        />
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy}>
            {row === undefined ? t('client.projects.create') : t('shell.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
