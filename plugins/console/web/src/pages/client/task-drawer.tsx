/** One task whole: pictures and player, prompt, cost, error. */
import { Alert, Anchor, Button, Code, Drawer, Group, Progress, Stack, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import type { TaskDetail } from '../../api/types.ts';
import { ExpiredResult } from '../../parts/expired-result.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Money } from '../../parts/money.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { TaskBadge } from './task-badge.tsx';

export function TaskDrawer({ id, onClose }: { readonly id: string | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const task = useQuery({
    queryKey: ['tasks', 'one', id],
    queryFn: ({ signal }) => get<TaskDetail>(`/tasks/${encodeURIComponent(id!)}`, {}, signal),
    enabled: id !== undefined,
  });
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      title={t(task.data?.kind === 'video' ? 'client.tasks.video' : 'client.tasks.image')}
    >
      {task.isPending && <Waiting />}
      {task.isError && <ErrorState error={task.error} onRetry={() => void task.refetch()} />}
      {task.data !== undefined && <Details task={task.data} />}
    </Drawer>
  );
}

function Details({ task }: { readonly task: TaskDetail }) {
  const { t } = useTranslation();
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t('shell.word.model'), <Code key="model">{task.model}</Code>],
    [t('shell.word.created'), <Time key="created" at={task.createdAt} />],
    [t('client.tasks.completed'), <Time key="completed" at={task.completedAt} />],
    [t('shell.word.cost'), <Money key="cost" of={task.cost} />],
    [
      t('client.tasks.request'),
      <Anchor
        key="request"
        fz="sm"
        renderRoot={(props) => <Link {...props} to="/usage" search={{ open: task.requestId }} />}
      >
        {t('shell.open')}
      </Anchor>,
    ],
  ];
  return (
    <Stack>
      <TaskBadge state={task.state} />
      {(task.state === 'queued' || task.state === 'running') && (
        <Progress value={task.progress} animated aria-label={t('client.tasks.progress', { percent: task.progress })} />
      )}
      {task.error !== null && (
        <Alert color="red" variant="light" title={task.error.code}>
          {task.error.message}
        </Alert>
      )}
      {task.results.map((result, index) => (
        <Result key={result.url ?? index} result={result} prompt={task.prompt} />
      ))}
      <Text fz="sm" className="breaks">
        {task.prompt}
      </Text>
      <FactList facts={facts} labelWidth={150} />
    </Stack>
  );
}

function Result({ result, prompt }: { readonly result: TaskDetail['results'][number]; readonly prompt: string }) {
  const { t } = useTranslation();
  if (result.url === null) return <ExpiredResult />;
  return (
    <Stack gap={6}>
      {result.mediaType.startsWith('video/') ? (
        // biome-ignore lint/a11y/useMediaCaption: a generated video has no captions
        <video src={result.url} controls playsInline className="media" aria-label={prompt} />
      ) : (
        <img src={result.url} alt={prompt} className="media" />
      )}
      <Group justify="space-between">
        <Text fz="xs" c="dimmed" component="div">
          {t('client.tasks.resultExpires')} <Time at={result.expiresAt} />
        </Text>
        <Button
          component="a"
          href={result.url}
          download
          size="compact-xs"
          variant="subtle"
          leftSection={<IconDownload size={14} />}
        >
          {t('client.tasks.download')}
        </Button>
      </Group>
    </Stack>
  );
}
