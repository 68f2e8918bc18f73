/** What the cache of answers gave in a span, by model: hits, and what they saved. */
import { Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../api/client.ts';
import type { AnswerCache as Answer } from '../api/types.ts';
import { moneyColumn, textColumn, useCountColumn } from './columns.tsx';
import { moneyText, shareText } from './format.ts';
import './insight-texts.ts';
import { Panel } from './page.tsx';
import { type Column, RowsTable } from './rows-table.tsx';

type Row = Answer['rows'][number];

/** Nothing where no call was one for the cache. */
export function AnswerCache({ path, query }: { readonly path: string; readonly query: Query }) {
  const { t, i18n } = useTranslation();
  const columns = useColumns();
  const { data } = useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => get<Answer>(path, query, signal),
    placeholderData: keepPreviousData,
  });
  if (data === undefined || data.rows.length === 0) return null;
  const share = shareText(data.hits, data.calls, i18n.language);
  const amount = moneyText(data.saved, i18n.language);
  const label = t('client.answerCache.title');
  return (
    <Panel flush title={label} hint={t('client.answerCache.hint')}>
      <Text fz="sm" px="md" pb="sm" data-testid="answer-cache">
        {t('client.answerCache.words', { share, amount })}
      </Text>
      <RowsTable
        label={label}
        rows={data.rows}
        columns={columns}
        rowKey={({ model, operation }) => `${operation} ${model}`}
      />
    </Panel>
  );
}

function useColumns(): readonly Column<Row>[] {
  const { t, i18n } = useTranslation();
  return [
    textColumn('model', t('shell.word.model')),
    textColumn('operation', t('shell.word.operation'), { minor: true }),
    useCountColumn<Row, 'hits'>('hits', t('client.answerCache.hits')),
    {
      key: 'share',
      title: t('client.answerCache.share'),
      right: true,
      plain: ({ hits, calls }) => (calls === 0 ? 0 : hits / calls),
      cell: ({ hits, calls }) => <span className="number">{shareText(hits, calls, i18n.language)}</span>,
    },
    moneyColumn<Row>('saved', t('client.cached.saved'), ({ saved }) => saved),
  ];
}
