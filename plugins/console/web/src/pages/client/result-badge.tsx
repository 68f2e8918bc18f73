/** How a request ended, in one word; a colour only where it did not end well. */
import { Badge, Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { RequestResult, RequestRow } from '../../api/types.ts';
import { resultOf } from '../../parts/result-of.ts';
import { TaskBadge } from './task-badge.tsx';

const colors: Record<Exclude<RequestResult, 'ok'>, string> = {
  client_error: 'orange',
  upstream_error: 'red',
  left: 'gray',
};

export function ResultBadge({
  row,
}: {
  readonly row: Pick<RequestRow, 'status' | 'outcome' | 'errorCode' | 'errorKind' | 'task'>;
}) {
  const { t } = useTranslation();
  const result = resultOf(row);
  // Its answer was good; what it ordered is not there, or not yet.
  if (result === 'ok' && row.task !== null && row.task !== 'succeeded') return <TaskBadge state={row.task} />;
  if (result === 'ok')
    return (
      <Text span fz="inherit" c="dimmed" className="nowrap">
        {t('client.result.ok')}
      </Text>
    );
  const badge = (
    <Badge color={colors[result]} variant="light" size="sm" className="nowrap">
      {`${row.status} ${t(`client.result.${result}`)}`}
    </Badge>
  );
  const why = row.errorCode ?? row.errorKind;
  return why === null ? badge : <Tooltip label={why}>{badge}</Tooltip>;
}
