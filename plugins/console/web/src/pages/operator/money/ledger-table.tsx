/** Ledger rows of all accounts or of one, each with the balance after it. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { DataTable } from '../../../parts/data-table.tsx';
import { CallWords, KindFilter, useLedgerColumns } from '../../../parts/ledger.tsx';
import { Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { FilterBar } from '../parts/filters.tsx';
import { AccountLink, RequestLink } from '../parts/names.tsx';
import type { LedgerRow } from '../types.ts';

export const ledgerPath = '/admin/ledger';
const spanNames = ['24h', '7d', '30d', '90d'] as const;

interface LedgerTableProps {
  readonly empty: ReactNode;
  /** The one account of all rows, which is not repeated in each. */
  readonly accountId?: string;
}

export function LedgerTable({ empty, accountId }: LedgerTableProps) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const span = useSpan('30d');
  const account = {
    key: 'account',
    title: t('shell.word.account'),
    cell: (row: LedgerRow) => <AccountLink id={row.accountId} />,
  };
  const columns = useLedgerColumns({ why, ...(accountId === undefined ? { account } : {}) });
  return (
    <Panel flush>
      <FilterBar>
        <SpanPicker names={spanNames} otherwise="30d" />
        <KindFilter />
      </FilterBar>
      <DataTable
        label={t('client.wallet.ledger')}
        path={ledgerPath}
        query={{ ...span.query, kind: search['kind'], accountId }}
        csv={`${ledgerPath}.csv`}
        columns={columns}
        rowKey={({ seq, accountId: of }) => `${of} ${seq}`}
        empty={empty}
      />
    </Panel>
  );
}

/** Why the row is there: the request that it pays for, or the reason that was given. */
function why(row: LedgerRow) {
  const { requestId, reason, reference, kind } = row;
  if (requestId !== null)
    return (
      <span>
        <RequestLink id={requestId} /> {kind === 'CHARGE' ? <CallWords row={row} /> : reason}
      </span>
    );
  return (
    <Text fz="sm" lineClamp={2} maw={360} title={reference ?? undefined}>
      {reason ?? reference ?? '–'}
    </Text>
  );
}
