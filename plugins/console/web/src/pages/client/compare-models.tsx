/** Models side by side: price, success, first byte, speed. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import type { ComparedModel, ModelRow } from '../../api/types.ts';
import { TextLink } from '../../parts/entry-frame.tsx';
import { countText } from '../../parts/format.ts';
import { useMeasuredColumns } from '../../parts/measured-columns.tsx';
import { Panel } from '../../parts/page.tsx';
import { MainPrice, mainAmount } from '../../parts/price.tsx';
import { type Column, RowsTable } from '../../parts/rows-table.tsx';

interface CompareProps {
  /** undefined: they are being fetched. */
  readonly models: readonly ModelRow[] | undefined;
  readonly onOpen: (row: ModelRow) => void;
}

export function CompareModels({ models, onOpen }: CompareProps) {
  const { t, i18n } = useTranslation();
  const { data } = useQuery({
    queryKey: ['models', 'comparison'],
    queryFn: ({ signal }) => get<{ readonly rows: readonly ComparedModel[] }>('/models/comparison', {}, signal),
  });
  const measures = new Map(data?.rows.map((row) => [row.model, row]));
  const measured = useMeasuredColumns<ModelRow>(({ id }) => measures.get(id));
  const columns: readonly Column<ModelRow>[] = [
    {
      key: 'model',
      title: t('shell.word.model'),
      cell: ({ id }) => <span className="mono">{id}</span>,
      plain: ({ id }) => id,
    },
    {
      key: 'context',
      title: t('client.models.context'),
      right: true,
      minor: true,
      plain: ({ contextTokens }) => contextTokens,
      cell: ({ contextTokens }) => (
        <span className="number">{contextTokens === null ? '–' : countText(contextTokens, i18n.language, true)}</span>
      ),
    },
    ...measured,
    {
      key: 'price',
      title: t('client.models.price'),
      right: true,
      plain: (row) => mainAmount(row),
      cell: ({ prices, kind }) =>
        prices === null ? (
          <Text fz="xs" c="dimmed" span>
            {t('client.models.notSold')}
          </Text>
        ) : (
          <MainPrice sheet={prices} kind={kind} />
        ),
    },
  ];
  const isQuiet = data?.rows.every(({ succeeded }) => succeeded === null) === true;
  return (
    <Panel flush title={t('client.compare.title')} hint={t('client.compare.hint')}>
      {isQuiet && (
        <Text role="status" fz="sm" px="md" pb="sm">
          {t('client.compare.quiet')} <TextLink to="/playground">{t('client.compare.try')}</TextLink>
        </Text>
      )}
      <RowsTable
        label={t('client.compare.title')}
        rows={models}
        columns={columns}
        rowKey={({ id }) => id}
        onOpen={onOpen}
      />
    </Panel>
  );
}
