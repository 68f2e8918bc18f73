/** What clients' and operators' tables of ledger rows have in common: columns, kinds of movement and their filter. */
import { Select } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { LedgerRow } from '../api/types.ts';
import { textColumn, timeColumn } from './columns.tsx';
import { Money } from './money.tsx';
import type { Column } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import { usageWords } from './tokens.tsx';

const kinds = ['CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE', 'CHARGE'] as const;
type Kind = (typeof kinds)[number];

interface LedgerColumns {
  /** Why the row is there. */
  readonly why: (row: LedgerRow) => ReactNode;
  /** Stands behind the time. */
  readonly account?: Column<LedgerRow>;
}

export function useLedgerColumns({ why, account }: LedgerColumns): readonly Column<LedgerRow>[] {
  const { t } = useTranslation();
  const nameOf = (kind: string) =>
    (kinds as readonly string[]).includes(kind) ? t(`shell.ledger.kinds.${kind as Kind}`) : kind;
  // All digits, so that a line can be checked: the change plus the balance of the line before is the balance after.
  const exact = (key: 'change' | 'balanceAfter', signed = false) =>
    textColumn<LedgerRow, 'change' | 'balanceAfter'>(key, t(`shell.ledger.${key}`), {
      right: true,
      ...(signed ? { main: true } : {}),
      cell: (row) => <Money of={row[key]} signed={signed} exact />,
    });
  return [
    timeColumn('at', t('shell.word.time')),
    ...(account === undefined ? [] : [account]),
    textColumn('kind', t('shell.ledger.kind'), { cell: ({ kind }) => nameOf(kind) }),
    textColumn('reason', t('shell.ledger.why'), { cell: why }),
    exact('change', true),
    exact('balanceAfter'),
  ];
}

/** Why a call was charged as it was; an answer in full needs no word. */
const callReasons = ['cut', 'client_left', 'no_usage', 'crash', 'absurd'] as const;
const servedPrefix = 'served by ';

/** What a charged call was: its model, key and tokens, in the reader's words. */
export function CallWords({ row }: { readonly row: LedgerRow }) {
  const { t, i18n } = useTranslation();
  const { model, keyName, usage, reason } = row;
  const known = callReasons.find((one) => one === reason);
  const served = reason?.startsWith(servedPrefix) ? reason.slice(servedPrefix.length) : undefined;
  const words = [
    model,
    keyName === null ? undefined : t('shell.ledger.byKey', { key: keyName }),
    usage === null ? undefined : usageWords(usage, t, i18n.language),
    known === undefined ? undefined : t(`shell.ledger.reasons.${known}`),
    served === undefined ? undefined : t('shell.ledger.servedBy', { source: served }),
  ];
  return <span>{words.filter((word) => word !== undefined && word !== null && word !== '').join(' · ')}</span>;
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
