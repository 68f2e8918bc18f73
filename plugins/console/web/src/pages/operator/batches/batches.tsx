/** Batches of all accounts; a row opens what one is and where it stands. */
import { IconStack2 } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { batchEndpoints, batchStates } from '../../../../../../common/domain/admin/batches.ts';
import { has, useMe } from '../../../api/session.ts';
import { moneyColumn, textColumn, timeColumn } from '../../../parts/columns.tsx';
import { countText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { BatchState } from '../../client/batches/batch-parts.tsx';
import { ChoiceFilter } from '../parts/filters.tsx';
import { AccountLink } from '../parts/names.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import { AccountFilter } from '../requests/seen-filters.tsx';
import type { OperatorBatch } from '../types.ts';
import { BatchStory } from './story.tsx';

const path = '/admin/batches';
const csvColumns = [
  ...['createdAt', 'id', 'accountId', 'keyId', 'endpoint', 'provider', 'state', 'outcome', 'total'],
  ...['succeeded', 'errored', 'cancelled', 'expired', 'cost', 'endedAt', 'cancelAt', 'expiresAt'],
];

export default function Batches() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const withAccounts = has(useMe(), 'accounts');
  const stay = { after: search['after'], page: search['page'] };
  const id = search['open'];
  return (
    <ResourcePage<OperatorBatch>
      texts="operator.batches"
      icon={IconStack2}
      source={{
        path,
        query: { accountId: search['accountId'], state: search['state'], endpoint: search['endpoint'] },
        csvOfAll: { file: 'batches', columns: csvColumns },
        refetchMs: 10_000,
      }}
      columns={useColumns()}
      onOpen={(row) => change({ ...stay, open: row.id })}
      filters={
        <>
          {withAccounts && <AccountFilter />}
          <ChoiceFilter
            name="state"
            label={t('operator.traffic.tasks.anyState')}
            data={batchStates.map((value) => ({ value, label: t(`client.batches.states.${value}`) }))}
          />
          <ChoiceFilter
            name="endpoint"
            label={t('operator.batches.anyEndpoint')}
            data={batchEndpoints.map((value) => ({ value, label: value }))}
          />
        </>
      }
      drawer={{
        title: t('client.batches.one'),
        content: id === undefined ? undefined : <BatchStory id={id} list={path} />,
        onClose: () => change({ ...stay, open: undefined }),
        size: 'lg',
      }}
    />
  );
}

function useColumns(): Column<OperatorBatch>[] {
  const { t, i18n } = useTranslation();
  const count = (value: number | null) => (value === null ? '–' : countText(value, i18n.language));
  return [
    timeColumn('createdAt', t('operator.column.created')),
    textColumn('accountId', t('shell.word.account'), {
      cell: ({ accountId }) => <AccountLink id={accountId} />,
    }),
    textColumn('endpoint', t('client.batches.endpoint'), {
      minor: true,
      cell: ({ endpoint }) => <span className="mono">{endpoint}</span>,
    }),
    {
      key: 'state',
      title: t('shell.word.state'),
      cell: (batch) => <BatchState batch={batch} />,
      plain: ({ outcome, state }) => outcome ?? state,
    },
    textColumn('provider', t('operator.batches.madeBy'), {
      minor: true,
      cell: ({ provider }) => provider ?? t('operator.batches.calls'),
    }),
    textColumn('total', t('operator.batches.lines'), {
      right: true,
      cell: ({ total }) => count(total),
    }),
    textColumn('errored', t('client.batches.errored'), {
      right: true,
      minor: true,
      cell: ({ errored }) => count(errored),
    }),
    moneyColumn('cost', t('operator.column.cost'), ({ cost }) => cost),
  ];
}
