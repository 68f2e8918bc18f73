/** How each upstream of a model has done: success, first byte, speed, own cost. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { moneyColumn, textColumn, useCountColumn } from '../../../parts/columns.tsx';
import { useMeasuredColumns } from '../../../parts/measured-columns.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { useAnswer } from '../parts/load.tsx';
import type { ComparedVendor } from '../types.ts';

/** Nothing where no call was made in that time. */
export function Vendors({ model }: { readonly model: string }) {
  const { t } = useTranslation();
  const rows = useAnswer<{ readonly rows: readonly ComparedVendor[] }>(
    '/admin/monitor/vendors',
    { model },
    false,
    has(useMe(), 'requests'),
  ).data?.rows;
  const columns: readonly Column<ComparedVendor>[] = [
    textColumn('provider', t('shell.word.provider')),
    useCountColumn<ComparedVendor, 'requests'>('requests', t('shell.word.requests')),
    ...useMeasuredColumns<ComparedVendor>((row) => row),
    moneyColumn<ComparedVendor>('cost', t('client.compare.ownCost'), (row) => row.ownCostPerRequest),
  ];
  if (rows === undefined || rows.length === 0) return null;
  return (
    <section>
      <Text fz="sm" fw={550} mb="xs">
        {t('client.compare.vendors')}
      </Text>
      <RowsTable
        label={t('client.compare.vendors')}
        rows={rows}
        columns={columns}
        rowKey={({ provider }) => provider}
      />
    </section>
  );
}
