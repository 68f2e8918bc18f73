/** A long list: paged on the server, filtered by the address bar, cards instead of columns on a small screen. */
import { ActionIcon, Button, Group, Skeleton, Table, Text, Tooltip, UnstyledButton } from '@mantine/core';
import { IconChevronLeft, IconChevronRight, IconChevronsLeft, IconDownload } from '@tabler/icons-react';
import { keepPreviousData, type QueryKey, useQuery } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { addressOf, get, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { useSearchState } from './search-state.ts';
import { ErrorState } from './states.tsx';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Left out on small screens. */
  readonly minor?: boolean;
}

interface DataTableProps<Row> {
  /** What is listed, for those who cannot see it. */
  readonly label: string;
  /** Path of the list under /console/api. */
  readonly path: string;
  readonly query?: Query;
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  /** Shown where there is no row: what to do next. */
  readonly empty: ReactNode;
  readonly onOpen?: (row: Row) => void;
  /** Path of the same rows as CSV. */
  readonly csv?: string;
  readonly limit?: number;
  /** Asks again after so many milliseconds. */
  readonly refetchMs?: number | false;
}

/** Key under which a list is kept, for those who change rows. */
export const listKey = (path: string): QueryKey => ['list', path];

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { path, query = {}, columns, limit = 25 } = props;
  const [search] = useSearchState();
  const asked = { ...query, limit, after: search['after'] };
  const list = useQuery({
    queryKey: [...listKey(path), asked],
    queryFn: ({ signal }) => get<Page<Row>>(path, asked, signal),
    placeholderData: keepPreviousData,
    ...(props.refetchMs === undefined ? {} : { refetchInterval: props.refetchMs }),
  });
  if (list.isError && list.data === undefined)
    return (
      <div className="pad">
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      </div>
    );
  if (list.data?.rows.length === 0 && search['after'] === undefined) return <>{props.empty}</>;
  return (
    <div aria-busy={list.isFetching}>
      <div className="table-box" data-stale={list.isPlaceholderData || undefined}>
        <Table className="data-table" aria-label={props.label} highlightOnHover={props.onOpen !== undefined}>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Table.Th key={column.key} data-right={column.right} data-minor={column.minor}>
                  {column.title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {list.data === undefined ? (
              <Placeholder columns={columns.length} />
            ) : (
              list.data.rows.map((row) => <Row key={props.rowKey(row)} row={row} {...props} />)
            )}
          </Table.Tbody>
        </Table>
      </div>
      <Pager next={list.data?.next ?? null} csv={props.csv === undefined ? undefined : addressOf(props.csv, query)} />
    </div>
  );
}

function Row<Row>({ row, columns, onOpen }: DataTableProps<Row> & { readonly row: Row }) {
  const { t } = useTranslation();
  const open = onOpen === undefined ? undefined : () => onOpen(row);
  return (
    <Table.Tr onClick={open} data-opens={open !== undefined || undefined}>
      {columns.map((column, index) => (
        <Table.Td key={column.key} data-right={column.right} data-minor={column.minor} data-label={column.title}>
          {index === 0 && open !== undefined ? (
            // The whole row opens on a click; the keyboard has this one button for it.
            <UnstyledButton className="row-button" fz="sm" aria-haspopup="dialog" title={t('shell.open')}>
              {column.cell(row)}
            </UnstyledButton>
          ) : (
            column.cell(row)
          )}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

function Placeholder({ columns }: { readonly columns: number }) {
  const lines = Array.from({ length: 6 }, (_, line) => `line-${line}`);
  return lines.map((line) => (
    <Table.Tr key={line}>
      <Table.Td colSpan={columns}>
        <Skeleton height={14} my={3} />
      </Table.Td>
    </Table.Tr>
  ));
}

function Pager({ next, csv }: { readonly next: string | null; readonly csv: string | undefined }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  // Cursors of the pages before this one; a page that was opened by its address knows the first one alone.
  const before = useRef<(string | undefined)[]>([]);
  const page = Number(search['page'] ?? 1);
  const first = search['after'] === undefined;
  if (first) before.current = [];
  if (first && next === null && csv === undefined) return null;
  const forward = () => {
    before.current.push(search['after']);
    change({ after: next ?? undefined, page: String(page + 1) });
  };
  const back = () => {
    const after = before.current.pop();
    change({ after, page: after === undefined ? undefined : String(page - 1) });
  };
  return (
    <Group justify="space-between" px="md" py="xs" className="pager">
      {csv === undefined ? (
        <span />
      ) : (
        <Tooltip label={t('shell.csvLabel')}>
          <Button
            component="a"
            href={csv}
            download
            size="compact-xs"
            variant="subtle"
            color="gray"
            leftSection={<IconDownload size={14} />}
          >
            {t('shell.csv')}
          </Button>
        </Tooltip>
      )}
      <Group gap={4}>
        <Text fz="xs" c="dimmed" mr={4}>
          {t('shell.page.number', { page })}
        </Text>
        <ActionIcon
          variant="default"
          size="sm"
          disabled={first}
          aria-label={t('shell.page.first')}
          onClick={() => change({ after: undefined, page: undefined })}
        >
          <IconChevronsLeft size={14} />
        </ActionIcon>
        <ActionIcon variant="default" size="sm" disabled={first} aria-label={t('shell.page.previous')} onClick={back}>
          <IconChevronLeft size={14} />
        </ActionIcon>
        <ActionIcon
          variant="default"
          size="sm"
          disabled={next === null}
          aria-label={t('shell.page.next')}
          onClick={forward}
        >
          <IconChevronRight size={14} />
        </ActionIcon>
      </Group>
    </Group>
  );
}
