/** Failures by their cause; each opens its requests. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Meter } from '../../../parts/bars.tsx';
import { textColumn } from '../../../parts/columns.tsx';
import { countText, shareText } from '../../../parts/format.ts';
import type { Column } from '../../../parts/rows-table.tsx';
import type { ChosenSpan } from '../../../parts/span.tsx';
import { CsvTable } from '../parts/csv-table.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { RowLink } from '../parts/names.tsx';
import type { CauseRow, FailureCauses } from '../types.ts';

export function Causes({ span }: { readonly span: ChosenSpan }) {
  const { t } = useTranslation();
  const causes = useAnswer<FailureCauses>('/admin/monitor/causes', span.query, 30_000);
  return (
    <>
      <Text c="dimmed" fz="xs" px="md" pt="xs">
        {t('operator.traffic.causes.hint')}
      </Text>
      <Loaded of={causes} height={120}>
        {({ rows }) => <Table rows={rows} span={span} />}
      </Loaded>
    </>
  );
}

function Table({ rows, span }: { readonly rows: readonly CauseRow[]; readonly span: ChosenSpan }) {
  const { t, i18n } = useTranslation();
  const ofResult = (result: CauseRow['result']) =>
    rows.reduce((sum, row) => (row.result === result ? sum + row.requests : sum), 0);
  const wholes = { client_error: ofResult('client_error'), upstream_error: ofResult('upstream_error') };
  const columns: Column<CauseRow>[] = [
    textColumn('cause', t('operator.traffic.causes.cause'), {
      cell: ({ cause }) => <span className="mono">{/^\d{3}$/.test(cause) ? `HTTP ${cause}` : cause}</span>,
    }),
    textColumn('result', t('shell.word.result'), {
      cell: ({ result }) => t(`operator.result.${result}`),
    }),
    textColumn('requests', t('shell.word.requests'), {
      right: true,
      cell: ({ cause, result, requests }) => (
        <RowLink to="/admin/requests" search={{ ...span.search, result, cause }}>
          {countText(requests, i18n.language)}
        </RowLink>
      ),
    }),
    {
      key: 'share',
      title: t('operator.traffic.causes.share'),
      right: true,
      cell: ({ result, requests }) => (
        <div>
          {shareText(requests, wholes[result], i18n.language)}
          <div className="bar-hint" aria-hidden>
            <Meter part={requests} whole={wholes[result]} label="" />
          </div>
        </div>
      ),
      plain: ({ result, requests }) => requests / wholes[result],
    },
  ];
  return (
    <CsvTable
      label={t('operator.traffic.causes.title')}
      rows={rows}
      columns={columns}
      rowKey={({ result, cause }) => `${result} ${cause}`}
      file="causes"
      empty={
        <Text c="dimmed" fz="sm" p="md">
          {t('operator.traffic.causes.none')}
        </Text>
      }
    />
  );
}
