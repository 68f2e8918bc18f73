/** Rows of requests, of all accounts or of one; a row opens its page beside the list. */

import { Text } from '@mantine/core';
import { IconArrowsExchange } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Query } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { durationColumn, moneyColumn, textColumn, timeColumn } from '../../../parts/columns.tsx';
import { hasFindingFilter } from '../../../parts/finding-filters.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { tokensColumn } from '../../../parts/tokens.tsx';
import { ResultWord } from '../parts/badges.tsx';
import { AccountLink } from '../parts/names.tsx';
import { ResourceList, SideDrawer } from '../parts/resource-page.tsx';
import type { OperatorRequest } from '../types.ts';
import { Story } from './story.tsx';

interface RequestListProps {
  readonly query: Query;
  readonly filters: ReactNode;
  /** All rows are of one account, which is not repeated in each. */
  readonly ofOne?: boolean;
}

export function RequestList({ query, filters, ofOne = false }: RequestListProps) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const id = search['open'];
  // The page of the list stays while a row is open.
  const stay = { after: search['after'], page: search['page'] };
  return (
    <>
      <ResourceList<OperatorRequest>
        texts="operator.traffic.requests"
        icon={IconArrowsExchange}
        source={{
          path: '/admin/requests',
          query,
          csv: '/admin/requests.csv',
          // Sums know neither tags nor findings.
          ...(query['tag'] === undefined && !hasFindingFilter(search) ? { sums: '/admin/monitor' } : {}),
          // Sorting anything but times reads many rows.
          refetchMs: (search['sort'] ?? 'time') === 'time' ? 15_000 : false,
        }}
        columns={useColumns(ofOne)}
        onOpen={(row) => change({ ...stay, open: row.id })}
        filters={filters}
      />
      <SideDrawer
        title={t('client.usage.request')}
        content={id === undefined ? undefined : <Story id={id} />}
        onClose={() => change({ ...stay, open: undefined })}
        size="xl"
      />
    </>
  );
}

function useColumns(ofOne: boolean): Column<OperatorRequest>[] {
  const { t } = useTranslation();
  const account = textColumn<OperatorRequest, 'accountId'>('accountId', t('shell.word.account'), {
    cell: ({ accountId }) => <AccountLink id={accountId} />,
  });
  return [
    timeColumn('receivedAt', t('shell.word.time'), { sort: 'time' }),
    ...(ofOne ? [] : [account]),
    textColumn('model', t('shell.word.model')),
    textColumn('operation', t('shell.word.operation'), { minor: true, cell: operationCell }),
    textColumn('provider', t('shell.word.provider'), { minor: true }),
    textColumn('status', t('shell.word.result'), { cell: (row) => <ResultWord request={row} /> }),
    ...(has(useMe(), 'guardrails')
      ? [textColumn<OperatorRequest, 'guardrails'>('guardrails', t('operator.column.guardrails'), { minor: true })]
      : []),
    tokensColumn(t('operator.column.tokens'), { minor: true }),
    durationColumn('firstByteMs', t('shell.word.firstByte'), (row) => row.firstByteMs, {
      minor: true,
      sort: 'firstByte',
    }),
    durationColumn('totalMs', t('operator.column.total'), (row) => row.totalMs, { sort: 'duration' }),
    { ...moneyColumn<OperatorRequest>('cost', t('operator.column.cost'), ({ cost }) => cost), sort: 'cost' },
  ];
}

function operationCell({ operation }: OperatorRequest) {
  return (
    <Text span inherit c="dimmed">
      {operation}
    </Text>
  );
}
