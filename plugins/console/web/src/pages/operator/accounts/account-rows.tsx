/** The history of one account: ledger, requests, tasks. */
import { IconCoins } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { LedgerTable } from '../money/ledger-table.tsx';
import { RequestList } from '../requests/request-table.tsx';
import { ResultFilter } from '../requests/result-filter.tsx';

interface OfAccount {
  readonly id: string;
}
const spanNames = ['24h', '7d', '30d', '90d'] as const;

export function AccountLedger({ id }: OfAccount) {
  const { t } = useTranslation();
  return (
    <LedgerTable
      accountId={id}
      empty={
        <EmptyState
          icon={IconCoins}
          title={t('operator.people.accounts.noLedger')}
          hint={t('operator.people.accounts.noLedgerHint')}
        />
      }
    />
  );
}

export function AccountRequests({ id }: OfAccount) {
  const [search] = useSearchState();
  const span = useSpan('30d');
  return (
    <RequestList
      ofOne
      query={{ ...span.query, accountId: id, result: search['result'], model: search['model'] }}
      filters={
        <>
          <SpanPicker names={spanNames} otherwise="30d" />
          <ResultFilter />
        </>
      }
    />
  );
}
