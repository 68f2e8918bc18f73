/** Rows of the ledger, of everybody or of one account, each with the balance after it. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { type Column, DataTable } from '../../../parts/data-table.tsx';
import { Money } from '../../../parts/money.tsx';
import { Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import { AllRowsCsv } from '../parts/all-rows-csv.tsx';
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx';
import { AccountLink, RequestLink } from '../parts/names.tsx';
import { SpanPicker, useSpan } from '../parts/span.tsx';
import { isNothing } from '../sums/usd.ts';
import type { LedgerRow } from '../types.ts';

const kinds = [
  'CREDIT',
  'DEBIT',
  'PURCHASE',
  'REFUND',
  'PAYOUT',
  'LAPSE',
  'HOLD',
  'EXTEND',
  'SETTLE',
  'VOID',
  'EXPIRE',
] as const;
type Kind = (typeof kinds)[number];
const csvColumns = [
  'at',
  'seq',
  'accountId',
  'kind',
  'amount',
  'held',
  'balanceAfter',
  'requestId',
  'reference',
  'reason',
];
const spanNames = ['24h', '7d', '30d', '90d'] as const;

interface LedgerTableProps {
  readonly path: string;
  readonly empty: ReactNode;
  /** Of one account: its name is not repeated in each row. */
  readonly accountId?: string;
  /** Path of the CSV, where the API has one; otherwise it is made here. */
  readonly csv?: string;
}

export function LedgerTable({ path, empty, accountId, csv }: LedgerTableProps) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const span = useSpan('30d');
  const query = { ...span.query, kind: search['kind'] };
  return (
    <Panel flush>
      <FilterBar>
        <SpanPicker names={spanNames} otherwise="30d" />
        <ChoiceFilter
          name="kind"
          label={t('operator.sales.money.anyKind')}
          data={kinds.map((value) => ({ value, label: t(`operator.sales.money.kinds.${value}`) }))}
        />
        {csv === undefined && <AllRowsCsv path={path} query={query} file="ledger" columns={csvColumns} />}
      </FilterBar>
      <DataTable<LedgerRow>
        label={t('operator.sales.money.ledger')}
        path={path}
        query={query}
        columns={useColumns(accountId === undefined)}
        rowKey={({ seq, accountId: of }) => `${of} ${seq}`}
        empty={empty}
        {...(csv === undefined ? {} : { csv })}
      />
    </Panel>
  );
}

function useColumns(ofAll: boolean): Column<LedgerRow>[] {
  const { t } = useTranslation();
  const account: Column<LedgerRow> = {
    key: 'account',
    title: t('operator.column.account'),
    cell: ({ accountId }) => <AccountLink id={accountId} />,
  };
  const nameOf = (kind: string) =>
    kinds.includes(kind as Kind) ? t(`operator.sales.money.kinds.${kind as Kind}`) : kind;
  return [
    { key: 'time', title: t('operator.column.time'), cell: ({ at }) => <Time at={at} /> },
    ...(ofAll ? [account] : []),
    { key: 'kind', title: t('operator.column.kind'), cell: ({ kind }) => nameOf(kind) },
    { key: 'reason', title: t('operator.column.reason'), cell: why },
    {
      key: 'amount',
      title: t('operator.column.amount'),
      right: true,
      cell: ({ amount }) => (isNothing(amount) ? '–' : <Money of={amount} signed />),
    },
    {
      key: 'held',
      title: t('operator.sales.money.held'),
      right: true,
      minor: true,
      cell: ({ held }) => (isNothing(held) ? '–' : <Money of={held} signed />),
    },
    {
      key: 'after',
      title: t('operator.sales.money.balanceAfter'),
      right: true,
      cell: ({ balanceAfter }) => <Money of={balanceAfter} />,
    },
  ];
}

/** Why the row is there: the request that it pays for, or the words that somebody gave. */
function why({ requestId, reason, reference }: LedgerRow) {
  if (requestId !== null)
    return (
      <span>
        <RequestLink id={requestId} /> {reason}
      </span>
    );
  return (
    <Text fz="sm" lineClamp={2} maw={360} title={reference ?? undefined}>
      {reason ?? reference ?? '–'}
    </Text>
  );
}
