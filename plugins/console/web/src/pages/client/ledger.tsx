/** Every movement of a client's money, with the balance after it. */
import { Anchor, Select, Text } from '@mantine/core';
import { IconListDetails } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { LedgerRow } from '../../api/types.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';

export const ledgerKinds = [
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
type Kind = (typeof ledgerKinds)[number];

export function Ledger() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const columns = useColumns();
  return (
    <Panel
      flush
      title={t('client.wallet.ledger')}
      hint={t('client.wallet.ledgerHint')}
      actions={
        <Select
          size="xs"
          w={170}
          clearable
          aria-label={t('client.wallet.kind')}
          placeholder={t('client.wallet.everyKind')}
          data={ledgerKinds.map((value) => ({ value, label: t(`client.wallet.kinds.${value}`) }))}
          value={search['kind'] ?? null}
          onChange={(kind) => change({ kind: kind ?? undefined })}
        />
      }
    >
      <DataTable
        label={t('client.wallet.ledger')}
        path="/wallet/ledger"
        query={{ kind: search['kind'] }}
        csv="/wallet/ledger.csv"
        columns={columns}
        rowKey={({ seq }) => seq}
        empty={
          <EmptyState
            icon={IconListDetails}
            title={t('client.wallet.noLedger')}
            hint={t('client.wallet.noLedgerHint')}
          />
        }
      />
    </Panel>
  );
}

function useColumns(): readonly Column<LedgerRow>[] {
  const { t } = useTranslation();
  const kindText = (kind: string) =>
    (ledgerKinds as readonly string[]).includes(kind) ? t(`client.wallet.kinds.${kind as Kind}`) : kind;
  return [
    { key: 'time', title: t('client.wallet.time'), cell: ({ at }) => <Time at={at} /> },
    { key: 'kind', title: t('client.wallet.kind'), cell: ({ kind }) => kindText(kind) },
    { key: 'note', title: t('client.wallet.note'), cell: (row) => <Note row={row} /> },
    { key: 'change', title: t('client.wallet.change'), right: true, cell: (row) => <Change row={row} /> },
    {
      key: 'after',
      title: t('client.wallet.after'),
      right: true,
      cell: ({ balanceAfter }) => <Money of={balanceAfter} />,
    },
  ];
}

function Note({ row }: { readonly row: LedgerRow }) {
  const { t } = useTranslation();
  return (
    <Text fz="sm" component="div" className="breaks">
      {row.reason}{' '}
      {row.requestId !== null && (
        <Anchor
          fz="sm"
          renderRoot={(props) => <Link {...props} to="/usage" search={{ open: row.requestId as string }} />}
        >
          {t('client.usage.request')}
        </Anchor>
      )}
    </Text>
  );
}

/** A hold moves nothing of the balance: what it sets aside is shown instead. */
function Change({ row }: { readonly row: LedgerRow }) {
  const { t } = useTranslation();
  if (/[1-9]/.test(row.amount)) return <Money of={row.amount} signed />;
  if (!/[1-9]/.test(row.held)) return <Money of={row.amount} />;
  return (
    <Text span fz="sm" c="dimmed" title={t('client.wallet.held')}>
      (<Money of={row.held} signed />)
    </Text>
  );
}
