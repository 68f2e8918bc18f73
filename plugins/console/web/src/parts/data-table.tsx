/** A long list: paged on the server, filtered by the address bar, with what to say when it is empty or fails. */
import { Text } from '@mantine/core';
import { keepPreviousData, type QueryKey, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { get, linkTo, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { countText } from './format.ts';
import { Pager } from './pager.tsx';
import { type Column, RowsTable, type RowsTableProps } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import { ErrorState } from './states.tsx';

export type { Column } from './rows-table.tsx';

interface DataTableProps<Row> extends Omit<RowsTableProps<Row>, 'rows' | 'stale' | 'whole' | 'sorting' | 'footer'> {
  /** Path of the list under /console/api. */
  readonly path: string;
  readonly query?: Query;
  /** Shown where there is no row: what to do next. */
  readonly empty: ReactNode;
  /** Path of the same rows as CSV. */
  readonly csv?: string;
  readonly limit?: number;
  /** Path of the sums of the same rows, for their number; asked for only where there is more than one page. */
  readonly sums?: string;
  /** Asks again after so many milliseconds. */
  readonly refetchMs?: number | false;
}

/** Key under which a list is kept, for those who change rows. */
export const listKey = (path: string): QueryKey => ['list', path];

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { path, query = {}, limit = 25 } = props;
  const { t, i18n } = useTranslation();
  const [search] = useSearchState();
  const sorting = useServerSorting(props.columns);
  const requested = { ...query, ...sorting?.query, limit, after: search['after'] };
  const list = useQuery({
    queryKey: [...listKey(path), requested],
    queryFn: ({ signal }) => get<SortedPage<Row>>(path, requested, signal),
    placeholderData: keepPreviousData,
    ...(props.refetchMs === undefined ? {} : { refetchInterval: props.refetchMs }),
  });
  const next = list.data?.next ?? null;
  const isAlone = next === null && search['after'] === undefined;
  const total = useTotal(props.sums, query, !isAlone);
  if (list.isError && list.data === undefined)
    return (
      <div className="pad">
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      </div>
    );
  if (list.data?.rows.length === 0 && search['after'] === undefined) return <>{props.empty}</>;
  const csv = props.csv === undefined ? undefined : linkTo(props.csv, query);
  const sortedOf = list.data?.sortedOf ?? null;
  return (
    <div aria-busy={list.isFetching}>
      {sortedOf !== null && (
        <Text role="status" fz="xs" c="dimmed" px="md" pt="xs">
          {t('shell.sort.bound', { rows: countText(sortedOf, i18n.language) })}
        </Text>
      )}
      <RowsTable
        label={props.label}
        columns={props.columns}
        rows={list.data?.rows}
        rowKey={props.rowKey}
        onOpen={props.onOpen}
        stale={list.isPlaceholderData}
        whole={isAlone}
        sorting={sorting}
        footer={
          isAlone && csv === undefined ? undefined : (
            <Pager next={next} csv={csv} shown={list.data?.rows.length ?? 0} limit={limit} total={total} />
          )
        }
      />
    </div>
  );
}

interface SortedPage<Row> extends Page<Row> {
  /** Only the newest so many rows were sorted. */
  readonly sortedOf?: number | null;
}

const usual = { by: 'time', order: 'desc' } as const;

/** The order in the address bar: largest first, then smallest first, then the usual one. undefined: the server has one order. */
function useServerSorting<Row>(columns: readonly Column<Row>[]) {
  const [search, change] = useSearchState();
  if (columns.every(({ sort }) => sort === undefined)) return undefined;
  const by = columns.find(({ sort }) => sort !== undefined && sort === search['sort'])?.sort ?? usual.by;
  const order = search['order'] === 'asc' ? 'asc' : usual.order;
  const onSort = (wanted: string) => {
    const isNext = wanted === by && order === 'asc';
    const isTurned = wanted === by && order === 'desc';
    const isUsual = isNext || (wanted === usual.by && !isTurned);
    change({ sort: isUsual ? undefined : wanted, order: isTurned ? 'asc' : undefined });
  };
  const isUsual = by === usual.by && order === usual.order;
  return { by, order, onSort, query: isUsual ? {} : { sort: by, order } } as const;
}

/** undefined: not known. */
function useTotal(path: string | undefined, query: Query, isWanted: boolean): number | undefined {
  const { data } = useQuery({
    queryKey: ['total', path, query],
    queryFn: ({ signal }) => get<{ readonly requests: number; readonly refused?: number }>(path!, query, signal),
    placeholderData: keepPreviousData,
    staleTime: 15_000,
    enabled: path !== undefined && isWanted,
  });
  return data && data.requests + (data.refused ?? 0);
}
