/** What clients' and operators' tables of ledger rows have in common: columns, kinds of movement and their filter. */
import { Select, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { LedgerRow } from '../api/types.ts';
import { Money } from './money.tsx';
import type { Column } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import { Time } from './time.tsx';

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

interface LedgerColumns {
  /** Why the row is there. */
  readonly why: (row: LedgerRow) => ReactNode;
  /** Stands behind the time: whose row it is. */
  readonly whose?: Column<LedgerRow>;
}

export function useLedgerColumns({ why, whose }: LedgerColumns): readonly Column<LedgerRow>[] {
  const { t } = useTranslation();
  const nameOf = (kind: string) =>
    (kinds as readonly string[]).includes(kind) ? t(`shell.ledger.kinds.${kind as Kind}`) : kind;
  return [
    { key: 'time', title: t('shell.ledger.time'), cell: ({ at }) => <Time at={at} /> },
    ...(whose === undefined ? [] : [whose]),
    { key: 'kind', title: t('shell.ledger.kind'), cell: ({ kind }) => nameOf(kind) },
    { key: 'why', title: t('shell.ledger.why'), cell: why },
    { key: 'change', title: t('shell.ledger.change'), right: true, cell: (row) => <Change row={row} /> },
    {
      key: 'after',
      title: t('shell.ledger.after'),
      right: true,
      cell: ({ balanceAfter }) => <Money of={balanceAfter} />,
    },
  ];
}

/** A hold moves nothing of the balance: what it sets aside is shown instead. */
function Change({ row: { amount, held } }: { readonly row: LedgerRow }) {
  const { t } = useTranslation();
  if (/[1-9]/.test(amount)) return <Money of={amount} signed />;
  if (!/[1-9]/.test(held)) return <Money of={amount} />;
  return (
    <Text span fz="sm" c="dimmed" title={t('shell.ledger.held')}>
      (<Money of={held} signed />)
    </Text>
  );
}

/** Narrows a table to one kind of movement, in the address bar. */
export function KindFilter() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  return (
    <Select
      size="xs"
      w={170}
      clearable
      aria-label={t('shell.ledger.kind')}
      placeholder={t('shell.ledger.everyKind')}
      data={kinds.map((value) => ({ value, label: t(`shell.ledger.kinds.${value}`) }))}
      value={search['kind'] ?? null}
      onChange={(kind) => change({ kind: kind ?? undefined })}
    />
  );
}
