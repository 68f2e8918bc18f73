/** Rows of tasks, of all accounts or of one; what waits can be cancelled. */
import { Button, Drawer, Group, Image, Progress, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Query, send } from '../../../api/client.ts';
import { useLiveRefresh } from '../../../api/live.ts';
import { type Column, DataTable, listKey } from '../../../parts/data-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { TaskWord } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { AccountLink, RequestLink, shortId } from '../parts/names.tsx';
import type { OperatorTask } from '../types.ts';

interface TaskTableProps {
  readonly query: Query;
  readonly empty: ReactNode;
}

const path = '/admin/tasks';

export function TaskTable({ query, empty }: TaskTableProps) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState<OperatorTask>();
  useLiveRefresh('tasks', listKey(path));
  const columns: Column<OperatorTask>[] = [
    { key: 'time', title: t('operator.column.created'), cell: ({ createdAt }) => <Time at={createdAt} /> },
    { key: 'account', title: t('operator.column.account'), cell: ({ accountId }) => <AccountLink id={accountId} /> },
    {
      key: 'kind',
      title: t('operator.column.kind'),
      minor: true,
      cell: ({ kind }) => t(`operator.traffic.tasks.kind.${kind}`),
    },
    { key: 'model', title: t('operator.column.model'), cell: ({ model }) => model },
    { key: 'state', title: t('operator.column.state'), cell: ({ state }) => <TaskWord state={state} /> },
    { key: 'progress', title: t('operator.traffic.tasks.progress'), right: true, cell: progressCell },
    {
      key: 'prompt',
      title: t('operator.traffic.tasks.prompt'),
      minor: true,
      cell: ({ prompt }) => (
        <Text fz="sm" lineClamp={1} maw={320}>
          {prompt}
        </Text>
      ),
    },
  ];
  return (
    <>
      <DataTable<OperatorTask>
        label={t('operator.traffic.tasks.title')}
        path={path}
        query={query}
        csv={`${path}.csv`}
        columns={columns}
        rowKey={({ id }) => id}
        empty={empty}
        onOpen={setOpened}
        refetchMs={10_000}
      />
      <Drawer opened={opened !== undefined} onClose={() => setOpened(undefined)} title={opened?.id}>
        {opened !== undefined && <Detail task={opened} onDone={() => setOpened(undefined)} />}
      </Drawer>
    </>
  );
}

function progressCell({ progress, state }: OperatorTask) {
  if (state !== 'running') return `${progress} %`;
  return (
    <Group gap={6} wrap="nowrap" justify="flex-end">
      <Progress value={progress} w={70} aria-label={`${progress} %`} />
      {progress} %
    </Group>
  );
}

interface DetailProps {
  readonly task: OperatorTask;
  readonly onDone: () => void;
}

function Detail({ task, onDone }: DetailProps) {
  const { t } = useTranslation();
  const [asks, setAsks] = useState(false);
  const acts = useActs();
  return (
    <Stack>
      <Facts
        of={[
          [t('operator.column.state'), <TaskWord key="state" state={task.state} />],
          [t('operator.column.account'), <AccountLink key="account" id={task.accountId} />],
          [t('operator.column.model'), task.model],
          [t('operator.column.created'), <Time key="created" at={task.createdAt} />],
          [t('operator.traffic.tasks.completed'), <Time key="completed" at={task.completedAt} />],
          [t('operator.traffic.tasks.openRequest'), <RequestLink key="request" id={task.requestId} />],
          [t('operator.traffic.tasks.prompt'), task.prompt],
          task.error !== null && [t('operator.traffic.requests.error'), `${task.error.code}: ${task.error.message}`],
        ]}
      />
      {task.results.map(({ url, mediaType }) =>
        mediaType.startsWith('image/') ? (
          <Image key={url} src={url} alt={task.prompt} radius="md" />
        ) : (
          // biome-ignore lint/a11y/useMediaCaption: what was made has no words of its own
          <video key={url} src={url} controls width="100%" />
        ),
      )}
      {acts && task.cancellable && (
        <Group>
          <Button variant="default" size="xs" onClick={() => setAsks(true)}>
            {t('operator.traffic.tasks.cancel')}
          </Button>
        </Group>
      )}
      <Act
        opened={asks}
        onClose={() => setAsks(false)}
        title={t('operator.traffic.tasks.cancelTitle', { name: shortId(task.id) })}
        text={t('operator.traffic.tasks.cancelText')}
        action={t('operator.traffic.tasks.cancel')}
        danger
        stale={[listKey(path)]}
        act={async (reason) => {
          await send('DELETE', `/admin/tasks/${encodeURIComponent(task.id)}`, { reason });
          onDone();
          return t('operator.traffic.tasks.cancelled');
        }}
      />
    </Stack>
  );
}
