/** Batches: state, counts, progress and cost of each; a new one from a file of requests. */
import { Button, Drawer } from '@mantine/core';
import { IconPlus, IconStack2 } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { useLiveInterval } from '../../../api/live.ts';
import { has, useMe } from '../../../api/session.ts';
import type { BatchRow } from '../../../api/types.ts';
import { moneyColumn, textColumn, timeColumn } from '../../../parts/columns.tsx';
import { DataTable } from '../../../parts/data-table.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { BatchState, Done, madeOf } from './batch-parts.tsx';
import { BatchDetails } from './details.tsx';
import { NewBatch } from './new-batch.tsx';

export default function Batches() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const stay = { after: search['after'], page: search['page'] };
  const create = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => change({ ...stay, new: '1' })}>
      {t('client.batches.create')}
    </Button>
  );
  const id = search['open'];
  return (
    <Page title={t('client.batchesTitle')} hint={t('client.batches.hint')} actions={create}>
      <Panel flush>
        <DataTable
          label={t('client.batchesTitle')}
          path="/batches"
          columns={useColumns()}
          rowKey={(row) => row.id}
          onOpen={(row) => change({ ...stay, open: row.id })}
          refetchMs={useLiveInterval(5_000) || 5_000}
          empty={
            <EmptyState
              icon={IconStack2}
              title={t('client.batches.none')}
              hint={t('client.batches.noneHint')}
              action={create}
            />
          }
        />
      </Panel>
      <Drawer
        opened={id !== undefined}
        onClose={() => change({ ...stay, open: undefined })}
        title={t('client.batches.one')}
        size="lg"
      >
        {id !== undefined && <BatchDetails id={id} onStarted={(started) => change({ ...stay, open: started })} />}
      </Drawer>
      <Drawer
        opened={search['new'] !== undefined}
        onClose={() => change({ ...stay, new: undefined })}
        title={t('client.batches.create')}
        size="lg"
      >
        {search['new'] !== undefined && <NewBatch onStarted={(started) => change({ new: undefined, open: started })} />}
      </Drawer>
    </Page>
  );
}

function useColumns(): Column<BatchRow>[] {
  const { t } = useTranslation();
  const withCost = has(useMe(), 'wallet');
  return [
    timeColumn('createdAt', t('client.batches.created')),
    textColumn('endpoint', t('client.batches.endpoint'), {
      cell: ({ endpoint }) => <span className="mono">{endpoint}</span>,
    }),
    {
      key: 'state',
      title: t('client.batches.state'),
      cell: (batch) => <BatchState batch={batch} />,
      plain: ({ outcome, state }) => outcome ?? state,
    },
    {
      key: 'done',
      title: t('client.batches.done'),
      right: true,
      cell: (batch) => <Done batch={batch} />,
      plain: madeOf,
    },
    textColumn('errored', t('client.batches.errored'), {
      right: true,
      cell: (batch) => batch.errored,
    }),
    ...(withCost ? [moneyColumn<BatchRow>('cost', t('client.batches.cost'), ({ cost }) => cost)] : []),
  ];
}
