/** The audit log: changes with their person, time and reason. */
import { Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { TextFilter } from '../parts/filters.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { AuditRow } from '../sale-types.ts';
import { AuditEntry } from './entry.tsx';
import { ResultText, Subject } from './subject.tsx';

const names = ['actor', 'action', 'subject'] as const;

export default function Audit() {
  const { t } = useTranslation();
  const span = useSpan('30d');
  const [search] = useSearchState();
  const [opened, setOpened] = useState<AuditRow>();
  const filters = Object.fromEntries(names.map((name) => [name, search[name]]));
  return (
    <ResourcePage<AuditRow>
      texts="operator.people.audit"
      icon={IconHistory}
      actions={<SpanPicker names={['24h', '7d', '30d', '90d']} otherwise="30d" />}
      filters={names.map((name) => <TextFilter key={name} name={name} label={t(`operator.people.audit.${name}`)} />)}
      source={{
        path: '/admin/audit',
        csv: '/admin/audit.csv',
        query: { ...span.query, ...filters },
        refetchMs: 15_000,
      }}
      columns={useColumns()}
      onOpen={setOpened}
      drawer={{
        title: opened?.action,
        content: opened && <AuditEntry of={opened} />,
        onClose: () => setOpened(undefined),
        size: 'lg',
      }}
    />
  );
}

function useColumns(): Column<AuditRow>[] {
  const { t } = useTranslation();
  return [
    timeColumn('at', t('shell.word.time')),
    textColumn('actor', t('operator.people.audit.actor'), {
      cell: ({ actor, role }) => (
        <span>
          {actor}{' '}
          <Text span fz="xs" c="dimmed">
            {t(`operator.people.people.role.${role}`)}
          </Text>
        </span>
      ),
    }),
    textColumn('action', t('operator.people.audit.action'), {
      cell: ({ action }) => <span className="mono">{action}</span>,
    }),
    textColumn('subject', t('operator.people.audit.subject'), { cell: (row) => <Subject of={row} /> }),
    textColumn('reason', t('operator.column.reason'), {
      cell: ({ reason }) => (
        <Text fz="sm" maw={360} className="wrap-any">
          {reason ?? '–'}
        </Text>
      ),
    }),
    textColumn('address', t('operator.people.audit.address'), { minor: true }),
    textColumn('result', t('shell.word.result'), { cell: ({ result }) => <ResultText result={result} /> }),
  ];
}
