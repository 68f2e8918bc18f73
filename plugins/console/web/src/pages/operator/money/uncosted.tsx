/** Models with calls that the margin lacks, each with a link to write its own cost. */
import { useTranslation } from 'react-i18next';
import { moneyColumn, textColumn, useCountColumn } from '../../../parts/columns.tsx';
import { Panel } from '../../../parts/page.tsx';
import { RowsTable } from '../../../parts/rows-table.tsx';
import type { ChosenSpan } from '../../../parts/span.tsx';
import { useAnswer } from '../parts/load.tsx';
import { RowLink } from '../parts/names.tsx';
import type { Group } from '../types.ts';

interface Row {
  readonly model: string;
  readonly calls: number;
  readonly uncosted: string | null;
}

export function Uncosted({ span }: { readonly span: ChosenSpan }) {
  const { t } = useTranslation();
  const groups = useAnswer<{ rows: readonly Group[] }>('/admin/monitor/groups', {
    ...span.query,
    by: 'model',
    limit: 500,
  });
  const rows = groups.data?.rows.flatMap(({ group, uncosted, ownCostUnknown }) =>
    ownCostUnknown ? [{ model: group, calls: ownCostUnknown, uncosted }] : [],
  );
  const calls = useCountColumn<Row, 'calls'>('calls', t('shell.word.requests'));
  if (rows?.length === 0) return null;
  return (
    <Panel title={t('operator.sales.money.uncosted')} hint={t('operator.sales.money.uncostedHint')} flush>
      <RowsTable<Row>
        label={t('operator.sales.money.uncosted')}
        rows={rows}
        rowKey={({ model }) => model}
        columns={[
          textColumn('model', t('shell.word.model')),
          calls,
          moneyColumn('uncosted', t('operator.column.uncosted'), ({ uncosted }) => uncosted),
          {
            key: 'cost',
            title: t('shell.word.actions'),
            right: true,
            cell: ({ model }) => (
              <RowLink to="/admin/config" search={{ form: 'prices', entry: model }}>
                {t('operator.sales.money.setCost')}
              </RowLink>
            ),
          },
        ]}
      />
    </Panel>
  );
}
