/** The state of a task in a word. */
import { Badge } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { TaskState } from '../../api/types.ts';

const colors: Record<TaskState, string> = {
  queued: 'gray',
  running: 'blue',
  succeeded: 'teal',
  failed: 'red',
  cancelled: 'gray',
  expired: 'gray',
};

export function TaskBadge({ state }: { readonly state: TaskState }) {
  const { t } = useTranslation();
  return (
    <Badge size="sm" radius="sm" variant="light" color={colors[state]} className="nowrap">
      {t(`client.tasks.states.${state}`)}
    </Badge>
  );
}
