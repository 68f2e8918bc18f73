/** The processes that serve this gateway: version, since when, last sign of life, journal, leases. */
import { Text } from '@mantine/core';
import { IconServer } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { Word } from '../parts/badges.tsx';
import { type CsvColumn, CsvTable } from '../parts/csv-table.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { useNow } from '../parts/use-now.ts';
import type { NodeRow } from '../sale-types.ts';

const lateMs = 60_000;

export default function Nodes() {
  const { t } = useTranslation();
  const nodes = useAnswer<{ rows: readonly NodeRow[] }>('/admin/nodes', {}, 5_000);
  const columns = useColumns(nodes.dataUpdatedAt);
  return (
    <Page title={t('operator.traffic.nodes.title')} hint={t('operator.traffic.nodes.intro')}>
      <Panel flush>
        <Loaded of={nodes}>
          {({ rows }) => (
            <CsvTable
              label={t('operator.traffic.nodes.title')}
              rows={rows}
              columns={columns}
              rowKey={({ name }) => name}
              file="nodes"
              empty={
                <EmptyState
                  icon={IconServer}
                  title={t('operator.traffic.nodes.empty')}
                  hint={t('operator.traffic.nodes.emptyHint')}
                />
              }
            />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

function useColumns(toldAt: number): CsvColumn<NodeRow>[] {
  const { t, i18n } = useTranslation();
  const journal = ({ journalPending }: NodeRow) => {
    if (journalPending === null) return t('operator.traffic.nodes.journalUnknown');
    if (journalPending === 0) return t('operator.traffic.nodes.journalClear');
    return t('operator.traffic.nodes.journalPending', { shown: countText(journalPending, i18n.language) });
  };
  return [
    { key: 'name', title: t('operator.column.name'), cell: (node) => <Name of={node} />, plain: ({ name }) => name },
    {
      key: 'version',
      title: t('operator.traffic.nodes.version'),
      cell: ({ version }) => version ?? '–',
      plain: ({ version }) => version,
    },
    {
      key: 'startedAt',
      title: t('operator.traffic.nodes.started'),
      cell: ({ startedAt }) => <Time at={startedAt} relative />,
      plain: ({ startedAt }) => startedAt,
    },
    {
      key: 'seenAt',
      title: t('operator.traffic.nodes.seen'),
      cell: (node) => <Seen of={node} toldAt={toldAt} />,
      plain: ({ seenAt }) => seenAt,
    },
    {
      key: 'journalPending',
      title: t('operator.traffic.nodes.journal'),
      cell: journal,
      plain: ({ journalPending }) => journalPending,
    },
    {
      key: 'leases',
      title: t('operator.traffic.nodes.leases'),
      right: true,
      cell: ({ leases }) => countText(leases, i18n.language),
      plain: ({ leases }) => leases,
    },
    {
      key: 'leased',
      title: t('operator.traffic.nodes.leased'),
      right: true,
      cell: ({ leased }) => <Money of={leased} />,
      plain: ({ leased }) => leased,
    },
  ];
}

function Name({ of: { name, self } }: { readonly of: NodeRow }) {
  const { t } = useTranslation();
  return (
    <Text span fz="sm" fw={550} className="mono">
      {name} {self && <Word color="blue">{t('operator.traffic.nodes.self')}</Word>}
    </Text>
  );
}

/** Its heartbeat's age by the gateway's own clock, growing while one looks; one that was silent for a while is marked. */
function Seen({ of: { seenAt, silentMs }, toldAt }: { readonly of: NodeRow; readonly toldAt: number }) {
  const { t } = useTranslation();
  const ageMs = silentMs + Math.max(0, useNow(1_000) - toldAt);
  const isLate = ageMs > lateMs;
  return (
    <span title={isLate ? t('operator.traffic.nodes.lateHint') : undefined}>
      <Time at={neverSeen(seenAt) ? null : seenAt} relative absent={t('operator.traffic.nodes.left')} />{' '}
      {isLate && <Word color="red">{t('operator.traffic.nodes.late')}</Word>}
    </span>
  );
}

/** It left in good order, and something is still leased to it. */
const neverSeen = (seenAt: string) => Date.parse(seenAt) === 0;
