/** One task in the gallery: what it made, or how far it is. */
import { Badge, Box, Button, Group, Paper, Text, UnstyledButton } from '@mantine/core';
import { IconAlertTriangle, IconClock, IconMovie, IconPhoto } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { TaskRow } from '../../api/types.ts';
import { Meter } from '../../parts/bars.tsx';
import { ExpiredResult } from '../../parts/expired-result.tsx';
import { Money } from '../../parts/money.tsx';
import { Time } from '../../parts/time.tsx';
import { TaskBadge } from './task-badge.tsx';

interface TaskCardProps {
  readonly task: TaskRow;
  readonly onOpen: () => void;
  readonly onCancel: () => void;
}

export function TaskCard({ task, onOpen, onCancel }: TaskCardProps) {
  const { t } = useTranslation();
  const running = task.state === 'queued' || task.state === 'running';
  const expiresAt = task.results[0]?.expiresAt;
  return (
    <Paper withBorder className="panel task" component="article">
      <UnstyledButton className="task-view" onClick={onOpen} aria-haspopup="dialog" aria-label={task.prompt}>
        <Preview task={task} />
        {task.results.length > 1 && (
          <Badge size="sm" radius="sm" variant="default" className="task-count">
            {t('client.tasks.results', { count: task.results.length })}
          </Badge>
        )}
      </UnstyledButton>
      <div className="task-text">
        <Group justify="space-between" gap="xs" wrap="nowrap">
          <TaskBadge state={task.state} />
          <Text fz="xs" c="dimmed" component="div" className="nowrap">
            <Time at={task.createdAt} relative />
          </Text>
        </Group>
        {running && (
          <Box mt={8}>
            <Meter part={task.progress} whole={100} label={t('client.tasks.progress', { percent: task.progress })} />
          </Box>
        )}
        <Text fz="sm" lineClamp={2} mt={8} title={task.prompt}>
          {task.prompt}
        </Text>
        {task.error !== null && (
          <Text fz="xs" mt={4} lineClamp={2} className="bad">
            {task.error.message}
          </Text>
        )}
        {expiresAt && (
          <Text fz="xs" c="dimmed" mt={4} component="div">
            {t('client.tasks.resultExpires')} <Time at={expiresAt} relative />
          </Text>
        )}
        <Group justify="space-between" mt={8} wrap="nowrap">
          <Text fz="xs" c="dimmed" truncate>
            {task.model}
          </Text>
          {task.cost !== null && (
            <Text fz="xs" className="number nowrap">
              <Money of={task.cost} />
            </Text>
          )}
          {task.cancellable && (
            <Button size="compact-xs" variant="default" onClick={onCancel}>
              {t('client.tasks.cancel')}
            </Button>
          )}
        </Group>
      </div>
    </Paper>
  );
}

function Preview({ task }: { readonly task: TaskRow }) {
  const result = task.results[0];
  if (result !== undefined && result.url === null) return <ExpiredResult />;
  if (result?.mediaType.startsWith('image/')) return <img src={result.url!} alt={task.prompt} loading="lazy" />;
  // The first picture of a video: a moment after its beginning, which is often black.
  if (result?.mediaType.startsWith('video/'))
    return <video src={`${result.url}#t=0.1`} preload="metadata" muted playsInline tabIndex={-1} />;
  const Picture =
    task.state === 'failed'
      ? IconAlertTriangle
      : task.state === 'queued'
        ? IconClock
        : task.kind === 'video'
          ? IconMovie
          : IconPhoto;
  return <Picture size={30} stroke={1.4} className="faint" aria-hidden />;
}
