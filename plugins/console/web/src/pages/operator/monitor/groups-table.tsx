/** Traffic by model, upstream, account, project or operation; every count opens its requests. */

import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Meter } from '../../../parts/bars.tsx';
import { textColumn } from '../../../parts/columns.tsx';
import { countText, durationText, shareText } from '../../../parts/format.ts';
import { projectName } from '../../../parts/project.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import type { ChosenSpan } from '../../../parts/span.tsx';
import { CsvTable } from '../parts/csv-table.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { useMarginColumns } from '../parts/margin.tsx';
import { AccountLink, RowLink } from '../parts/names.tsx';
import type { Group, GroupName } from '../types.ts';

interface GroupsTableProps {
  readonly by: GroupName;
  readonly span: ChosenSpan;
  readonly label: string;
}

/** Under which name the list of requests takes a group. */
const filterOf = {
  model: 'model',
  provider: 'provider',
  operation: 'operation',
  account: 'accountId',
  key: 'keyId',
  project: 'project',
};

export function GroupsTable({ by, span, label }: GroupsTableProps) {
  const { t } = useTranslation();
  const groups = useAnswer<{ rows: readonly Group[] }>(
    '/admin/monitor/groups',
    { ...span.query, by, limit: 50 },
    30_000,
  );
  const columns = useColumns(by, span, groups.data?.rows ?? []);
  return (
    <Loaded of={groups} height={180}>
      {({ rows }) => (
        <CsvTable
          label={label}
          rows={rows}
          columns={columns}
          rowKey={({ group }) => group}
          file={`by-${by}`}
          empty={
            <Text c="dimmed" fz="sm" p="md">
              {t('operator.traffic.monitor.empty')}
            </Text>
          }
        />
      )}
    </Loaded>
  );
}

function useColumns(by: GroupName, span: ChosenSpan, rows: readonly Group[]): Column<Group>[] {
  const { t, i18n } = useTranslation();
  const most = Math.max(1, ...rows.map(({ requests }) => requests));
  const search = (group: string, result?: string) => ({
    ...span.search,
    [filterOf[by]]: group,
    ...(result === undefined ? {} : { result }),
  });
  const counts: Column<Group>[] = [
    {
      key: by,
      title: t(`shell.word.${by}`),
      cell: ({ group }) =>
        by === 'account' ? (
          <AccountLink id={group} />
        ) : (
          <Text fz="sm">{by === 'project' ? projectName(group, t('shell.project.none')) : group || '–'}</Text>
        ),
      plain: ({ group }) => group,
    },
    textColumn('requests', t('shell.word.requests'), {
      right: true,
      cell: ({ group, requests }) => (
        <div>
          <RowLink to="/admin/requests" search={search(group)}>
            {countText(requests, i18n.language)}
          </RowLink>
          <div className="bar-hint" aria-hidden>
            <Meter part={requests} whole={most} label="" />
          </div>
        </div>
      ),
    }),
    {
      key: 'success',
      title: t('operator.column.success'),
      right: true,
      cell: ({ requests, results }) => shareText(results.ok, requests, i18n.language),
      plain: ({ results }) => results.ok,
    },
    {
      key: 'upstreamErrors',
      title: t('operator.column.errors'),
      right: true,
      cell: ({ group, results }) =>
        results.upstream_error === 0 ? (
          '0'
        ) : (
          <RowLink to="/admin/requests" search={search(group, 'upstream_error')}>
            {countText(results.upstream_error, i18n.language)}
          </RowLink>
        ),
      plain: ({ results }) => results.upstream_error,
    },
  ];
  const money = useMarginColumns(rows);
  return [
    ...counts,
    ...waits(t('shell.word.firstByte'), t('operator.column.total')),
    // Where no amount is known at all, its columns would be a row of dashes.
    ...(rows.some(({ cost }) => cost !== null) ? money : []),
  ];
}

function waits(firstByteTitle: string, totalTitle: string): Column<Group>[] {
  const both = (of: 'firstByte' | 'total', title: string): Column<Group> => ({
    key: `${of}P50Ms`,
    title: `${title} p50 · p95`,
    right: true,
    minor: true,
    cell: (row) => `${durationText(row[of].p50)} · ${durationText(row[of].p95)}`,
    plain: (row) => row[of].p50,
  });
  return [both('firstByte', firstByteTitle), both('total', totalTitle)];
}
