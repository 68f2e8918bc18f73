/** What prompt caches saved in a span, by model. */
import { Box, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../api/client.ts';
import type { CachedTokens as Answer } from '../api/types.ts';
import { moneyColumn, textColumn } from './columns.tsx';
import { countText, moneyText, shareText } from './format.ts';
import './insight-texts.ts';
import { Panel } from './page.tsx';
import { type Column, RowsTable } from './rows-table.tsx';
import { EmptyState, Waiting } from './states.tsx';

type Row = Answer['rows'][number];

interface CachedProps {
  readonly path: string;
  readonly query: Query;
}

function useCached({ path, query }: CachedProps): Answer | undefined {
  return useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => get<Answer>(path, query, signal),
    placeholderData: keepPreviousData,
  }).data;
}

/** Nothing where nothing came from a cache. */
export function CachedTokens(props: CachedProps) {
  const { t } = useTranslation();
  const data = useCached(props);
  if (data === undefined || data.rows.length === 0) return null;
  return (
    <Panel flush title={t('client.cached.title')} hint={t('client.cached.hint')}>
      <CachedRows data={data} />
    </Panel>
  );
}

/** The same without a frame. */
export function CachedTable(props: CachedProps) {
  const { t } = useTranslation();
  const data = useCached(props);
  if (data === undefined) return <Waiting height={120} />;
  if (data.rows.length === 0) return <EmptyState title={t('client.usage.none')} hint={t('client.cached.hint')} />;
  return (
    <Box pt="sm">
      <CachedRows data={data} />
    </Box>
  );
}

function CachedRows({ data }: { readonly data: Answer }) {
  const { t, i18n } = useTranslation();
  const columns = useColumns();
  const share = shareText(data.cached, data.prompt, i18n.language);
  const amount = moneyText(data.saved, i18n.language);
  return (
    <>
      <Text fz="sm" px="md" pb="sm" data-testid="cached">
        {t('client.cached.words', { share, amount })}
      </Text>
      <RowsTable label={t('client.cached.title')} rows={data.rows} columns={columns} rowKey={({ model }) => model} />
    </>
  );
}

function useColumns(): readonly Column<Row>[] {
  const { t, i18n } = useTranslation();
  return [
    textColumn('model', t('shell.word.model')),
    {
      key: 'cached',
      title: t('client.cached.tokens'),
      right: true,
      plain: ({ cached }) => cached,
      cell: ({ cached }) => <span className="number">{countText(cached, i18n.language)}</span>,
    },
    {
      key: 'share',
      title: t('client.cached.share'),
      right: true,
      minor: true,
      plain: ({ cached, prompt }) => (prompt === 0 ? 0 : cached / prompt),
      cell: ({ cached, prompt }) => <span className="number">{shareText(cached, prompt, i18n.language)}</span>,
    },
    moneyColumn<Row>('saved', t('client.cached.saved'), ({ saved }) => saved),
  ];
}
