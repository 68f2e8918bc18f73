/** Rows in columns, with sorting and a choice of columns; on a small screen each row is a card of labelled lines. */
import { Group, Skeleton, Table, UnstyledButton } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react';
import {
  columnVisibilityFeature,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { type KeyboardEvent, lazy, type ReactNode, type RefObject, Suspense, useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { ColumnChoice, OrderChoice, type ServerSorting } from './table-menus.tsx';
import { isElsewhere, isTyping } from './typing.ts';

/** The value in a CSV file, and the one that rows are sorted by. */
export type Cell = string | number | boolean | null | undefined;

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Its value as text or number; without it the column is neither sorted by nor in the CSV that a page makes. */
  readonly plain?: (row: Row) => Cell;
  /** The server's name of the order by this column. */
  readonly sort?: string;
  /** Stands beside the cell and has buttons of its own, which the row's button cannot hold. */
  readonly beside?: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Left out on small screens. */
  readonly minor?: boolean;
  /** Stands beside the first cell on small screens; else the last column does. */
  readonly main?: boolean;
}

export interface RowsTableProps<Row> {
  /** Name of the listed rows, for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** undefined: they are being fetched. */
  readonly rows: readonly Row[] | undefined;
  readonly rowKey: (row: Row) => string;
  readonly onOpen?: ((row: Row) => void) | undefined;
  /** The rows are of the page before. */
  readonly stale?: boolean;
  /** Whether `rows` are all rows there are: a part of a list is not sorted. */
  readonly whole?: boolean;
  /** The server sorts: then by the columns that it knows an order of, and by no others. */
  readonly sorting?: ServerSorting | undefined;
  /** The sum of the rows. */
  readonly total?: Row | undefined;
  /** Heads the rows that follow one another with the same group, until the reader sorts them. */
  readonly groupOf?: ((row: Row) => string) | undefined;
  /** Stands below the rows. */
  readonly footer?: ReactNode;
}

const features = tableFeatures({ columnVisibilityFeature, rowSortingFeature, sortedRowModel: createSortedRowModel() });
const noRows: never[] = [];
const VirtualRows = lazy(() => import('./virtual-rows.tsx'));
/** From here on only the rows that can be seen are in the page. */
const virtualFrom = 100;

export function RowsTable<Row extends object>(props: RowsTableProps<Row>) {
  const { label, columns, rows, rowKey, onOpen, stale = false, whole = true, sorting, total, groupOf, footer } = props;
  const [hidden, setHidden] = useLocalStorage<readonly string[]>({
    key: `console-hidden-columns-${columns.map(({ key }) => key).join('-')}`,
    defaultValue: noRows,
    getInitialValueInEffect: false,
  });
  const table = useTable({
    features,
    data: (rows as Row[] | undefined) ?? noRows,
    columns: columns.map(({ key, plain }) => ({
      id: key,
      accessorFn: (row: Row) => plain?.(row) ?? undefined,
      enableSorting: whole && sorting === undefined && plain !== undefined,
      sortFn: compareCells,
      sortUndefined: 'last' as const,
    })),
    getRowId: rowKey,
    state: { columnVisibility: Object.fromEntries(hidden.map((key) => [key, false])) },
  });
  const box = useRef<HTMLElement>(null);
  useRowKeys(box, onOpen !== undefined);
  const shown = columns.filter(({ key }) => !hidden.includes(key));
  const toRow = (row: Sorted<Row>) => <OneRow key={row.id} row={row.original} columns={shown} onOpen={onOpen} />;
  const sorted = table.getRowModel().rows;
  const isSorted = shown.some(({ key }) => table.getColumn(key)?.getIsSorted() !== false);
  const all = isSorted || groupOf === undefined ? sorted.map(toRow) : grouped(sorted, groupOf, shown.length, toRow);
  const canChoose = columns.length > 4;
  return (
    <>
      {/* Scrolls by itself where its columns do not fit, and can be reached by the keyboard to do so. */}
      <section
        ref={box}
        className="table-box"
        data-stale={stale || undefined}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable
        tabIndex={0}
        onKeyDown={onOpen === undefined ? undefined : walkRows}
      >
        <Table className="data-table" highlightOnHover={onOpen !== undefined} highlightOnHoverColor="var(--hover)">
          <Table.Thead>
            <Table.Tr>
              {shown.map((column) => (
                <Heading
                  key={column.key}
                  column={column}
                  {...sortingOf(column, sorting, table.getColumn(column.key))}
                />
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows === undefined && <Placeholder columns={shown.length} />}
            {sorted.length < virtualFrom ? (
              all
            ) : (
              <Suspense fallback={all.slice(0, virtualFrom)}>
                <VirtualRows>{all}</VirtualRows>
              </Suspense>
            )}
          </Table.Tbody>
          {total !== undefined && (
            <Table.Tfoot>
              <OneRow row={total} columns={shown} onOpen={undefined} />
            </Table.Tfoot>
          )}
        </Table>
      </section>
      {(canChoose || footer !== undefined) && (
        <Group justify="space-between" px="md" py="xs" className="pager">
          {footer ?? <span />}
          {sorting !== undefined && <OrderChoice columns={columns} sorting={sorting} />}
          {canChoose && <ColumnChoice columns={columns} hidden={hidden} onChange={setHidden} />}
        </Group>
      )}
    </>
  );
}

interface Sorted<Row> {
  readonly original: Row;
  readonly id: string;
}

/** Each group's name above its rows. */
function grouped<Row>(
  rows: readonly Sorted<Row>[],
  groupOf: (row: Row) => string,
  columns: number,
  toRow: (row: Sorted<Row>) => ReactNode,
): ReactNode[] {
  return rows.flatMap((row, index) => {
    const group = groupOf(row.original);
    const before = rows[index - 1];
    if (before !== undefined && groupOf(before.original) === group) return [toRow(row)];
    return [<GroupRow key={`group ${group}`} name={group} columns={columns} />, toRow(row)];
  });
}

/** j and k, or the arrows inside of the table, go from row to row; Enter presses the button of a row. */
function walkRows(event: KeyboardEvent<HTMLElement>): void {
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (step === undefined || isTyping(event.target) || hasModifier(event)) return;
  if (goTo(event.currentTarget, step)) event.preventDefault();
}

/** j and k from anywhere on the page, for its first table with rows that open. */
function useRowKeys(box: RefObject<HTMLElement | null>, opens: boolean): void {
  useEffect(() => {
    if (!opens) return undefined;
    const onKeyDown = (event: globalThis.KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key];
      const here = box.current;
      if (step === undefined || here === null || event.defaultPrevented || hasModifier(event)) return;
      if (isElsewhere(event.target) || document.querySelector('.table-box:has(.row-button)') !== here) return;
      if (goTo(here, step)) event.preventDefault();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [box, opens]);
}

const hasModifier = ({ ctrlKey, metaKey, altKey }: Pick<KeyboardEvent, 'ctrlKey' | 'metaKey' | 'altKey'>) =>
  ctrlKey || metaKey || altKey;

function goTo(box: HTMLElement, step: number): boolean {
  const rows = [...box.querySelectorAll<HTMLElement>('.row-button')];
  const place = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[place === -1 && step < 0 ? rows.length - 1 : place + step];
  next?.focus();
  return next !== undefined;
}

/** Amounts and counts by size, times and names by text. */
function compareCells(left: { getValue(id: string): unknown }, right: { getValue(id: string): unknown }, id: string) {
  const [a, b] = [left.getValue(id), right.getValue(id)];
  const difference = Number(a) - Number(b);
  return Number.isNaN(difference) ? String(a).localeCompare(String(b)) : difference;
}

interface HeadingSorting {
  readonly order: false | 'asc' | 'desc';
  /** undefined: there is no order by it. */
  readonly onSort: (() => void) | undefined;
}

interface LocalSorting {
  getCanSort(): boolean;
  getIsSorted(): false | 'asc' | 'desc';
  toggleSorting(): void;
}

function sortingOf<Row>(
  { sort }: Column<Row>,
  server: ServerSorting | undefined,
  local: LocalSorting | undefined,
): HeadingSorting {
  if (server === undefined)
    return {
      order: local?.getIsSorted() ?? false,
      onSort: local?.getCanSort() === true ? () => local.toggleSorting() : undefined,
    };
  return {
    order: sort === server.by && server.order,
    onSort: sort === undefined ? undefined : () => server.onSort(sort),
  };
}

type HeadingProps<Row> = HeadingSorting & { readonly column: Column<Row> };

function Heading<Row>({ column, order, onSort }: HeadingProps<Row>) {
  const { title, right, minor } = column;
  const Arrow = order === 'asc' ? IconChevronUp : IconChevronDown;
  const direction = { asc: 'ascending', desc: 'descending' } as const;
  return (
    <Table.Th data-right={right} data-minor={minor} aria-sort={order === false ? undefined : direction[order]}>
      {onSort === undefined ? (
        title
      ) : (
        <UnstyledButton className="sort-button" onClick={onSort}>
          {title}
          <Arrow size={12} className="sort-arrow" data-on={order !== false || undefined} aria-hidden />
        </UnstyledButton>
      )}
    </Table.Th>
  );
}

interface OneRowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly onOpen: ((row: Row) => void) | undefined;
}

function OneRow<Row>({ row, columns, onOpen }: OneRowProps<Row>) {
  const { t } = useTranslation();
  const open = onOpen === undefined ? undefined : () => onOpen(row);
  return (
    <Table.Tr onClick={open} data-opens={open !== undefined || undefined}>
      {columns.map((column, index) => (
        <Table.Td
          key={column.key}
          data-right={column.right}
          data-minor={column.minor}
          data-main={column.main}
          data-label={column.title}
        >
          {index === 0 && open !== undefined ? (
            // A click anywhere opens the row; the keyboard has this one button for it.
            <UnstyledButton className="row-button" fz="sm" aria-haspopup="dialog" title={t('shell.open')}>
              {column.cell(row)}
            </UnstyledButton>
          ) : (
            column.cell(row)
          )}
          {column.beside !== undefined && (
            // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps the click from opening the row
            // biome-ignore lint/a11y/useKeyWithClickEvents: the button inside has the keys
            <span className="beside" onClick={(event) => event.stopPropagation()}>
              {column.beside(row)}
            </span>
          )}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

function GroupRow({ name, columns }: { readonly name: string; readonly columns: number }) {
  return (
    <Table.Tr className="table-group">
      <Table.Th colSpan={columns} scope="rowgroup">
        {name}
      </Table.Th>
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
