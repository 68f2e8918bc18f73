/** Rows of tasks, of all accounts or of one; what waits can be cancelled. */

import { Box, Group, Image, Stack, Text } from '@mantine/core';
import { IconPhotoCog } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Query, send } from '../../../api/client.ts';
import { useLiveRefresh } from '../../../api/live.ts';
import { Meter } from '../../../parts/bars.tsx';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { ExpiredResult } from '../../../parts/expired-result.tsx';
import { Time } from '../../../parts/time.tsx';
import { ActButton, useActs } from '../parts/act.tsx';
import { TaskWord } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { AccountLink, RequestLink, shortId } from '../parts/names.tsx';
import { ResourceList, SideDrawer } from '../parts/resource-page.tsx';
import type { OperatorTask } from '../types.ts';

const path = '/admin/tasks';

export function TaskList({ query, filters }: { readonly query: Query; readonly filters?: ReactNode }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState<OperatorTask>();
  const close = () => setOpened(undefined);
  useLiveRefresh('tasks', listKey(path));
  return (
    <>
      <ResourceList<OperatorTask>
        texts="operator.traffic.tasks"
        icon={IconPhotoCog}
        source={{ path, query, csv: `${path}.csv`, refetchMs: 10_000 }}
        columns={[
          timeColumn('createdAt', t('operator.column.created')),
          textColumn('accountId', t('shell.word.account'), {
            cell: (task) => <AccountLink id={task.accountId} />,
          }),
          textColumn('kind', t('shell.word.kind'), {
            minor: true,
            cell: ({ kind }) => t(`operator.traffic.tasks.kind.${kind}`),
          }),
          textColumn('model', t('shell.word.model')),
          textColumn('state', t('shell.word.state'), { cell: ({ state }) => <TaskWord state={state} /> }),
          textColumn('progress', t('operator.traffic.tasks.progress'), { right: true, cell: progressCell }),
          textColumn('prompt', t('client.tasks.prompt'), {
            minor: true,
            cell: ({ prompt }) => (
              <Text fz="sm" lineClamp={1} maw={320}>
                {prompt}
              </Text>
            ),
          }),
        ]}
        onOpen={setOpened}
        filters={filters}
      />
      <SideDrawer title={opened?.id} onClose={close} content={opened && <Detail task={opened} onDone={close} />} />
    </>
  );
}

function progressCell({ progress, state }: OperatorTask) {
  if (state !== 'running') return `${progress} %`;
  return (
    <Group gap={6} wrap="nowrap" justify="flex-end">
      <Box w={70}>
        <Meter part={progress} whole={100} label={`${progress} %`} />
      </Box>
      {progress} %
    </Group>
  );
}

function Detail({ task, onDone }: { readonly task: OperatorTask; readonly onDone: () => void }) {
  const { t } = useTranslation();
  const acts = useActs();
  return (
    <Stack>
      <Facts
        of={[
          [t('shell.word.state'), <TaskWord key="state" state={task.state} />],
          [t('shell.word.account'), <AccountLink key="account" id={task.accountId} />],
          [t('shell.word.model'), task.model],
          [t('operator.column.created'), <Time key="created" at={task.createdAt} />],
          [t('operator.traffic.tasks.completed'), <Time key="completed" at={task.completedAt} />],
          [t('operator.traffic.tasks.openRequest'), <RequestLink key="request" id={task.requestId} />],
          [t('client.tasks.prompt'), task.prompt],
          task.error !== null && [t('shell.word.error'), `${task.error.code}: ${task.error.message}`],
        ]}
      />
      {task.results.map((result, index) => (
        <Result key={result.url ?? index} result={result} prompt={task.prompt} />
      ))}
      {acts && task.cancellable && (
        <Group>
          <ActButton
            title={t('operator.traffic.tasks.cancelTitle', { name: shortId(task.id) })}
            text={t('operator.traffic.tasks.cancelText')}
            action={t('operator.traffic.tasks.cancel')}
            danger
            stale={[listKey(path)]}
            act={async (reason) => {
              await send('DELETE', `/admin/tasks/${encodeURIComponent(task.id)}`, { reason });
              onDone();
              return t('client.tasks.cancelled');
            }}
          />
        </Group>
      )}
    </Stack>
  );
}

function Result({ result, prompt }: { readonly result: OperatorTask['results'][number]; readonly prompt: string }) {
  const { t } = useTranslation();
  const { url, mediaType, expiresAt } = result;
  if (url === null) return <ExpiredResult />;
  return (
    <Stack gap={4}>
      {mediaType.startsWith('image/') ? (
        <Image src={url} alt={prompt} radius="md" />
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: what was made has no words of its own
        <video src={url} controls width="100%" />
      )}
      <Text fz="xs" c="dimmed" component="div">
        {t('client.tasks.resultExpires')} <Time at={expiresAt} />
      </Text>
    </Stack>
  );
}
