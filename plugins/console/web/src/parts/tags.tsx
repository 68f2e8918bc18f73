/** What calls came to by their tags: by the values of a name, or by the models of the tag that the address bar has. Nothing without tags. */
import { Button, Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../api/client.ts';
import { useLiveInterval } from '../api/live.ts';
import type { TagSums } from '../api/types.ts';
import { moneyColumn, textColumn, useCountColumn } from './columns.tsx';
import { Panel } from './page.tsx';
import { type Column, RowsTable } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import './insight-texts.ts';

type Row = TagSums['rows'][number];

/** The filter of a list: one tag. A name alone is the choice of what is summed up. */
export const tagFilter = (tag: string | undefined) => (tag?.includes('=') === true ? tag : undefined);

export function TagsPanel({ path, query }: { readonly path: string; readonly query: Query }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const { names = [] } = useTagSums(path, query) ?? {};
  const tag = search['tag'] ?? names[0];
  const rows = useTagSums(path, { ...query, tag }, tag !== undefined)?.rows;
  const columns = useColumns(tagFilter(tag) === undefined ? t('client.tags.value') : t('shell.word.model'));
  if (tag === undefined || names.length === 0) return null;
  const [name, value] = tag.split('=') as [string, string?];
  return (
    <Panel
      flush
      title={t('client.tags.title')}
      hint={t('client.tags.hint')}
      actions={
        <>
          {value !== undefined && (
            <Button size="xs" variant="subtle" color="gray" onClick={() => change({ tag: name })}>
              {t('shell.clearFilters')}
            </Button>
          )}
          <Select
            size="xs"
            w={180}
            aria-label={t('client.tags.name')}
            allowDeselect={false}
            data={[...new Set([...names, name])]}
            value={name}
            onChange={(chosen) => change({ tag: chosen ?? undefined })}
          />
        </>
      }
    >
      <RowsTable<Row>
        label={value === undefined ? name : tag}
        columns={columns}
        rows={rows}
        rowKey={({ group }) => group}
        whole
        onOpen={value === undefined ? ({ group }) => change({ tag: `${name}=${group}` }) : undefined}
      />
    </Panel>
  );
}

function useTagSums(path: string, query: Query, enabled = true): TagSums | undefined {
  return useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => get<TagSums>(path, query, signal),
    placeholderData: keepPreviousData,
    refetchInterval: useLiveInterval(30_000),
    enabled,
  }).data;
}

function useColumns(group: string): Column<Row>[] {
  const { t } = useTranslation();
  return [
    textColumn('group', group, {
      cell: ({ group: value }) => (value === '*' ? t('client.tags.others') : value),
    }),
    useCountColumn('requests', t('client.tags.charged')),
    useCountColumn('tokens', t('client.usage.tokens')),
    moneyColumn('cost', t('shell.word.cost'), ({ cost }) => cost),
  ];
}
