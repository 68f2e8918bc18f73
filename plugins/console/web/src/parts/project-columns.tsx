/** Columns of a list of projects, for clients and operators. */
import { Badge, Group, Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { ProjectRow } from '../api/types.ts';
import { moneyColumn, textColumn, timeColumn, useCountColumn } from './columns.tsx';
import './project-texts.ts';
import { RegionsMark } from './project-regions.tsx';
import type { Column } from './rows-table.tsx';

export function useProjectColumns(): Column<ProjectRow>[] {
  const { t } = useTranslation();
  return [
    textColumn('name', t('shell.word.name'), {
      cell: ({ name, regions }) => (
        <Group gap={6} wrap="nowrap" component="span">
          <Text span inherit truncate>
            {name}
          </Text>
          {regions !== null && <RegionsMark of={regions} />}
        </Group>
      ),
    }),
    textColumn('ownerName', t('client.projects.owner'), { minor: true }),
    useCountColumn<ProjectRow, 'keys'>('keys', t('shell.word.keys')),
    {
      key: 'models',
      title: t('shell.word.models'),
      minor: true,
      cell: ({ models }) => (
        <Text span inherit title={models?.join('\n')}>
          {models?.join(', ') ?? t('client.projects.allModels')}
        </Text>
      ),
    },
    moneyColumn('spent', t('client.projects.spent'), ({ cost30d }) => cost30d),
    {
      key: 'state',
      title: t('shell.word.state'),
      cell: ({ archivedAt }) => t(archivedAt === null ? 'client.projects.inUse' : 'client.projects.archived'),
    },
    timeColumn('createdAt', t('shell.word.created'), { minor: true }),
  ];
}

/** Behind the name of a key that belongs to no person. */
export function ServiceMark() {
  const { t } = useTranslation();
  return (
    <Tooltip label={t('client.projects.serviceHint')}>
      <Badge size="xs" radius="sm" variant="default" tt="none" fw={500}>
        {t('client.projects.service')}
      </Badge>
    </Tooltip>
  );
}
