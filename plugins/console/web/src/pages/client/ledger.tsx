/** Every movement of a client's money, with the balance after it. */
import { Anchor, Text } from '@mantine/core';
import { IconListDetails } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { LedgerRow } from '../../api/types.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { KindFilter, useLedgerColumns } from '../../parts/ledger.tsx';
import { Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState } from '../../parts/states.tsx';

export function Ledger() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const columns = useLedgerColumns({ why: (row) => <Note row={row} /> });
  return (
    <Panel flush title={t('client.wallet.ledger')} hint={t('client.wallet.ledgerHint')} actions={<KindFilter />}>
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
