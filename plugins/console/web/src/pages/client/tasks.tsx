/** Images and videos that are made in the background: a gallery with state and progress. */
import { Button, Center, Group, SegmentedControl, Select, SimpleGrid } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconPhoto } from '@tabler/icons-react';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { get, linkTo, send } from '../../api/client.ts';
import { useLiveInterval, useLiveRefresh } from '../../api/live.ts';
import type { Page as Rows, TaskRow, TaskState } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Page } from '../../parts/page.tsx';
import { CsvButton } from '../../parts/pager.tsx';
import { SavedViews } from '../../parts/saved-views.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState, ErrorState, Waiting } from '../../parts/states.tsx';
import { TaskCard } from './task-card.tsx';
import { TaskDrawer } from './task-drawer.tsx';

const tasksKey = ['tasks'] as const;
const states: readonly TaskState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'];

export default function Tasks() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [search, change] = useSearchState();
  const [cancelled, setCancelled] = useState<TaskRow>();
  const cancel = async () => {
    await send('DELETE', `/tasks/${cancelled!.id}`);
    notifications.show({ message: t('client.tasks.cancelled'), color: 'teal' });
    await askAgain(queries, tasksKey);
  };
  return (
    <Page
      title={t('client.tasks.title')}
      hint={t('client.tasks.hint')}
      actions={<CsvButton address={linkTo('/tasks.csv', { kind: search['kind'], state: search['state'] })} />}
    >
      <Filters />
      <Gallery onOpen={({ id }) => change({ open: id })} onCancel={setCancelled} />
      <TaskDrawer id={search['open']} onClose={() => change({ open: undefined })} />
      <Confirm
        opened={cancelled !== undefined}
        title={t('client.tasks.cancelTitle')}
        action={t('client.tasks.cancel')}
        danger
        onConfirm={cancel}
        onClose={() => setCancelled(undefined)}
      >
        {t('client.tasks.cancelWords')}
      </Confirm>
    </Page>
  );
}

function Filters() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  return (
    <Group gap="xs">
      <SegmentedControl
        value={search['kind'] ?? 'all'}
        onChange={(kind) => change({ kind: kind === 'all' ? undefined : kind })}
        data={(['all', 'image', 'video'] as const).map((value) => ({ value, label: t(`client.tasks.${value}`) }))}
      />
      <Select
        aria-label={t('shell.word.state')}
        placeholder={t('client.tasks.everyState')}
        clearable
        w={170}
        data={states.map((value) => ({ value, label: t(`client.tasks.states.${value}`) }))}
        value={search['state'] ?? null}
        onChange={(state) => change({ state: state ?? undefined })}
      />
      <SavedViews />
    </Group>
  );
}

interface GalleryProps {
  readonly onOpen: (task: TaskRow) => void;
  readonly onCancel: (task: TaskRow) => void;
}

function Gallery({ onOpen, onCancel }: GalleryProps) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const filter = { kind: search['kind'], state: search['state'] };
  useLiveRefresh('tasks', tasksKey);
  const tasks = useInfiniteQuery({
    queryKey: [...tasksKey, filter],
    queryFn: ({ pageParam, signal }) =>
      get<Rows<TaskRow>>('/tasks', { ...filter, limit: 24, after: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: useLiveInterval(5000),
  });
  if (tasks.isPending) return <Waiting />;
  if (tasks.isError) return <ErrorState error={tasks.error} onRetry={() => void tasks.refetch()} />;
  const rows = tasks.data.pages.flatMap((page) => page.rows);
  if (rows.length === 0)
    return <EmptyState icon={IconPhoto} title={t('client.tasks.none')} hint={t('client.tasks.noneHint')} />;
  return (
    <>
      <SimpleGrid type="container" cols={{ base: 1, '480px': 2, '760px': 3, '1100px': 4 }} spacing="md">
        {rows.map((task) => (
          <TaskCard key={task.id} task={task} onOpen={() => onOpen(task)} onCancel={() => onCancel(task)} />
        ))}
      </SimpleGrid>
      {tasks.hasNextPage && (
        <Center>
          <Button variant="default" loading={tasks.isFetchingNextPage} onClick={() => void tasks.fetchNextPage()}>
            {t('client.tasks.more')}
          </Button>
        </Center>
      )}
    </>
  );
}
