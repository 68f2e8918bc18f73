/** What a row of the client's calls shows. */
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
    timeColumn('receivedAt', t('client.usage.time'), { sort: 'time' }),
    textColumn('model', t('client.usage.model')),
    textColumn('operation', t('client.usage.operation'), { minor: true, cell: operationCell }),
    textColumn('status', t('client.usage.result'), { cell: (row) => <ResultBadge row={row} /> }),
    tokensColumn(t('client.usage.tokens')),
    durationColumn('first', t('client.usage.first'), (row) => row.firstByteMs, { minor: true, sort: 'firstByte' }),
    durationColumn('total', t('client.usage.duration'), (row) => row.totalMs, { sort: 'duration' }),
    { ...moneyColumn<RequestRow>('cost', t('client.usage.cost'), (row) => row.cost), sort: 'cost' },
  ];
}

function operationCell({ operation }: RequestRow) {
  return (
    <Text span inherit c="dimmed">
      {operation}
    </Text>
  );
}
