/** The history of one account: ledger, requests, tasks. */
import { IconArrowsExchange, IconCoins, IconPhotoCog } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { LedgerTable } from '../money/ledger-table.tsx';
import { FilterBar } from '../parts/filters.tsx';
import { SpanPicker, useSpan } from '../parts/span.tsx';
import { RequestTable } from '../requests/request-table.tsx';
import { ResultFilter } from '../requests/result-filter.tsx';
import { TaskTable } from '../tasks/task-table.tsx';

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
  const { t } = useTranslation();
  const [search] = useSearchState();
  const span = useSpan('30d');
  return (
    <Panel flush>
      <FilterBar>
        <SpanPicker names={spanNames} otherwise="30d" />
        <ResultFilter />
      </FilterBar>
      <RequestTable
        ofOne
        query={{ ...span.query, accountId: id, result: search['result'], model: search['model'] }}
        empty={
          <EmptyState
            icon={IconArrowsExchange}
            title={t('operator.traffic.requests.empty')}
            hint={t('operator.traffic.requests.emptyHint')}
          />
        }
      />
    </Panel>
  );
}

export function AccountTasks({ id }: OfAccount) {
  const { t } = useTranslation();
  return (
    <Panel flush>
      <TaskTable
        query={{ accountId: id }}
        empty={
          <EmptyState
            icon={IconPhotoCog}
            title={t('operator.traffic.tasks.empty')}
            hint={t('operator.traffic.tasks.emptyHint')}
          />
        }
      />
    </Panel>
  );
}
