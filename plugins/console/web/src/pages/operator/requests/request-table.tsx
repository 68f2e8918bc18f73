/** Rows of requests, of all accounts or of one; a row opens its story beside the list. */
import { Drawer, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Query } from '../../../api/client.ts';
import { type Column, DataTable } from '../../../parts/data-table.tsx';
import { countText, durationText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import { ResultWord } from '../parts/badges.tsx';
import { AccountLink } from '../parts/names.tsx';
import type { OperatorRequest } from '../types.ts';
import { Story } from './story.tsx';

interface RequestTableProps {
  readonly query: Query;
  readonly empty: ReactNode;
  /** Of one account: its name is not repeated in each row. */
  readonly ofOne?: boolean;
}

export function RequestTable({ query, empty, ofOne = false }: RequestTableProps) {
  const { t } = useTranslation();
  const columns = useColumns(ofOne);
  const [search, change] = useSearchState();
  // The page of the list stays while a row is looked at.
  const stay = { after: search['after'], page: search['page'] };
  return (
    <>
      <DataTable<OperatorRequest>
        label={t('operator.traffic.requests.title')}
        path="/admin/requests"
        query={query}
        columns={columns}
        rowKey={({ id }) => id}
        empty={empty}
        onOpen={({ id }) => change({ ...stay, open: id })}
        refetchMs={15_000}
        csv="/admin/requests.csv"
      />
      <Drawer
        opened={search['open'] !== undefined}
        onClose={() => change({ ...stay, open: undefined })}
        title={t('operator.traffic.requests.detail')}
        size="xl"
      >
        {search['open'] !== undefined && <Story id={search['open']} />}
      </Drawer>
    </>
  );
}

function useColumns(ofOne: boolean): Column<OperatorRequest>[] {
  const { t, i18n } = useTranslation();
  const tokens = ({ usage }: OperatorRequest) => Object.values(usage ?? {}).reduce((sum, count) => sum + count, 0);
  const account: Column<OperatorRequest> = {
    key: 'account',
    title: t('operator.column.account'),
    cell: ({ accountId }) => <AccountLink id={accountId} />,
  };
  return [
    { key: 'time', title: t('operator.column.time'), cell: ({ receivedAt }) => <Time at={receivedAt} /> },
    ...(ofOne ? [] : [account]),
    { key: 'model', title: t('operator.column.model'), cell: modelCell },
    { key: 'provider', title: t('operator.column.provider'), minor: true, cell: ({ provider }) => provider ?? '–' },
    { key: 'result', title: t('operator.column.result'), cell: (row) => <ResultWord request={row} /> },
    {
      key: 'tokens',
      title: t('operator.column.tokens'),
      right: true,
      minor: true,
      cell: (row) => countText(tokens(row), i18n.language),
    },
    {
      key: 'wait',
      title: `${t('operator.column.firstByte')} · ${t('operator.column.total')}`,
      right: true,
      minor: true,
      cell: ({ firstByteMs, totalMs }) => `${durationText(firstByteMs)} · ${durationText(totalMs)}`,
    },
    { key: 'cost', title: t('operator.column.cost'), right: true, cell: ({ cost }) => <Money of={cost} /> },
  ];
}

function modelCell({ model, operation }: OperatorRequest) {
  return (
    <span>
      {model ?? '–'}{' '}
      <Text span fz="xs" c="dimmed">
        {operation}
      </Text>
    </span>
  );
}
