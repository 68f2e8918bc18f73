/** What the cache of answers gave in a span, by model: hits, and what they saved. */
import { Box, Text, Title } from '@mantine/core';
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

interface AnswerCacheProps {
  readonly path: string;
  readonly query: Query;
}

/** Nothing where no call was one for the cache. */
export function AnswerCache(props: AnswerCacheProps) {
  const { t } = useTranslation();
  const data = useHits(props);
  if (data === undefined || data.rows.length === 0) return null;
  return (
    <Panel flush title={t('client.answerCache.title')} hint={t('client.answerCache.hint')}>
      <HitRows data={data} />
    </Panel>
  );
}

/** The same without a frame, below other rows. */
export function AnswerCacheTable(props: AnswerCacheProps) {
  const { t } = useTranslation();
  const data = useHits(props);
  if (data === undefined || data.rows.length === 0) return null;
  return (
    <Box component="section" pt="md">
      <Title order={3} fz="md" px="md">
        {t('client.answerCache.title')}
      </Title>
      <Text c="dimmed" fz="xs" px="md" pb="xs">
        {t('client.answerCache.hint')}
      </Text>
      <HitRows data={data} />
    </Box>
  );
}

function useHits({ path, query }: AnswerCacheProps): Answer | undefined {
  const { data } = useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => get<Answer>(path, query, signal),
    placeholderData: keepPreviousData,
  });
  return data;
}

function HitRows({ data }: { readonly data: Answer }) {
  const { t, i18n } = useTranslation();
  const columns = useColumns();
  const share = shareText(data.hits, data.calls, i18n.language);
  const amount = moneyText(data.saved, i18n.language);
  return (
    <>
      <Text fz="sm" px="md" pb="sm" data-testid="answer-cache">
        {t('client.answerCache.words', { share, amount })}
      </Text>
      <RowsTable
        label={t('client.answerCache.title')}
        rows={data.rows}
        columns={columns}
        rowKey={({ model, operation }) => `${operation} ${model}`}
      />
    </>
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
