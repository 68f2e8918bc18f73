/** The columns of the client's calls. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { RequestRow } from '../../api/types.ts';
import { durationColumn, moneyColumn, textColumn, timeColumn } from '../../parts/columns.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { tokensColumn } from '../../parts/tokens.tsx';
import { ResultBadge } from './result-badge.tsx';

export function useRequestColumns(): readonly Column<RequestRow>[] {
  const { t } = useTranslation();
  return [
    timeColumn('receivedAt', t('shell.word.time'), { sort: 'time' }),
    textColumn('model', t('shell.word.model')),
    textColumn('operation', t('shell.word.operation'), { minor: true, cell: operationCell }),
    textColumn('status', t('shell.word.result'), { cell: (row) => <ResultBadge row={row} /> }),
    tokensColumn(t('client.usage.tokens')),
    durationColumn('first', t('shell.word.firstByte'), (row) => row.firstByteMs, { minor: true, sort: 'firstByte' }),
    durationColumn('total', t('client.usage.duration'), (row) => row.totalMs, { sort: 'duration' }),
    { ...moneyColumn<RequestRow>('cost', t('shell.word.cost'), (row) => row.cost), sort: 'cost' },
  ];
}

function operationCell({ operation }: RequestRow) {
  return (
    <Text span inherit c="dimmed">
      {operation}
    </Text>
  );
}
