/** The processes that serve this gateway: version, since when, last sign of life, journal, leases. */

import { Text } from '@mantine/core';
import { IconServer } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { moneyColumn, textColumn, timeColumn, useCountColumn } from '../../../parts/columns.tsx';
import { countText, durationText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { Word } from '../parts/badges.tsx';
import { useAnswer } from '../parts/load.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import { useNow } from '../parts/use-now.ts';
import type { NodeRow } from '../sale-types.ts';

const lateMs = 60_000;

interface NodesAnswer {
  readonly rows: readonly NodeRow[];
  /** null: pages are read from the database itself. */
  readonly replica: { readonly isUsed: boolean; readonly lagMs: number | null } | null;
}

export default function Nodes() {
  const nodes = useAnswer<NodesAnswer>('/admin/nodes', {}, 5_000);
  return (
    <ResourcePage
      texts="operator.traffic.nodes"
      icon={IconServer}
      source={{ answer: nodes, file: 'nodes' }}
      columns={useColumns(nodes.dataUpdatedAt)}
      rowKey={({ name }) => name}
      panelActions={<Replica of={nodes.data?.replica} />}
    />
  );
}

function useColumns(answeredAt: number): Column<NodeRow>[] {
  const { t, i18n } = useTranslation();
  const journal = ({ journalPending }: NodeRow) => {
    if (journalPending === null) return t('operator.traffic.nodes.journalUnknown');
    if (journalPending === 0) return t('operator.traffic.nodes.journalClear');
    return t('operator.traffic.nodes.journalPending', {
      count: journalPending,
      shown: countText(journalPending, i18n.language),
    });
  };
  return [
    textColumn('name', t('shell.word.name'), { cell: (node) => <Name of={node} /> }),
    textColumn('version', t('operator.traffic.nodes.version')),
    timeColumn('startedAt', t('operator.traffic.nodes.started'), { relative: true }),
    timeColumn('seenAt', t('operator.traffic.nodes.seen'), {
      cell: (node) => <Seen of={node} answeredAt={answeredAt} />,
    }),
    textColumn('journalPending', t('operator.traffic.nodes.journal'), { cell: journal }),
    useCountColumn('leases', t('operator.traffic.nodes.leases')),
    moneyColumn('leased', t('operator.traffic.nodes.leased'), ({ leased }) => leased),
  ];
}

/** Where pages are read, and how far behind that may be. */
function Replica({ of }: { readonly of: NodesAnswer['replica'] | undefined }) {
  const { t } = useTranslation();
  if (of === undefined || of === null) return null;
  const shown = of.lagMs === null ? t('operator.traffic.nodes.lagUnknown') : durationText(of.lagMs);
  return (
    <Text fz="sm" c="dimmed">
      {t(of.isUsed ? 'operator.traffic.nodes.replica' : 'operator.traffic.nodes.replicaUnused', { shown })}
    </Text>
  );
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
function Seen({ of: { seenAt, silentMs }, answeredAt }: { readonly of: NodeRow; readonly answeredAt: number }) {
  const { t } = useTranslation();
  const ageMs = silentMs + Math.max(0, useNow(1_000) - answeredAt);
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
