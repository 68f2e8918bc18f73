/** A long list: paged on the server, filtered by the address bar, with what to say when it is empty or fails. */
import { keepPreviousData, type QueryKey, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { addressOf, get, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { Pager } from './pager.tsx';
import { RowsTable, type RowsTableProps } from './rows-table.tsx';
import { useSearchState } from './search-state.ts';
import { ErrorState } from './states.tsx';

export type { Column } from './rows-table.tsx';

interface DataTableProps<Row> extends Omit<RowsTableProps<Row>, 'rows' | 'stale' | 'whole' | 'footer'> {
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
  const [search] = useSearchState();
  const asked = { ...query, limit, after: search['after'] };
  const list = useQuery({
    queryKey: [...listKey(path), asked],
    queryFn: ({ signal }) => get<Page<Row>>(path, asked, signal),
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
  const csv = props.csv === undefined ? undefined : addressOf(props.csv, query);
  return (
    <div aria-busy={list.isFetching}>
      <RowsTable
        label={props.label}
        columns={props.columns}
        rows={list.data?.rows}
        rowKey={props.rowKey}
        onOpen={props.onOpen}
        stale={list.isPlaceholderData}
        whole={isAlone}
        footer={
          isAlone && csv === undefined ? undefined : (
            <Pager next={next} csv={csv} shown={list.data?.rows.length ?? 0} limit={limit} total={total} />
          )
        }
      />
    </div>
  );
}

/** undefined: not known. */
function useTotal(path: string | undefined, query: Query, isWanted: boolean): number | undefined {
  return useQuery({
    queryKey: ['total', path, query],
    queryFn: ({ signal }) => get<{ readonly requests: number }>(path!, query, signal),
    placeholderData: keepPreviousData,
    staleTime: 15_000,
    enabled: path !== undefined && isWanted,
  }).data?.requests;
}
