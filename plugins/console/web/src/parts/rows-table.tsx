/** Rows in columns; on a small screen each row is a card of labelled lines. */
import { Skeleton, Table, UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Stands beside the cell and has buttons of its own, which the row's button cannot hold. */
  readonly beside?: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Left out on small screens. */
  readonly minor?: boolean;
}

export interface RowsTableProps<Row> {
  /** What is listed, for those who cannot see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** undefined: they are on their way. */
  readonly rows: readonly Row[] | undefined;
  readonly rowKey: (row: Row) => string;
  readonly onOpen?: ((row: Row) => void) | undefined;
  /** The rows are of the page before. */
  readonly stale?: boolean;
}

export function RowsTable<Row>({ label, columns, rows, rowKey, onOpen, stale = false }: RowsTableProps<Row>) {
  return (
    // Scrolls by itself where its columns do not fit, and can be reached by the keyboard to do so.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable
    <section className="table-box" data-stale={stale || undefined} aria-label={label} tabIndex={0}>
      <Table className="data-table" highlightOnHover={onOpen !== undefined}>
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
          {rows === undefined ? (
            <Placeholder columns={columns.length} />
          ) : (
            rows.map((row) => <OneRow key={rowKey(row)} row={row} columns={columns} onOpen={onOpen} />)
          )}
        </Table.Tbody>
      </Table>
    </section>
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
        <Table.Td key={column.key} data-right={column.right} data-minor={column.minor} data-label={column.title}>
          {index === 0 && open !== undefined ? (
            // The whole row opens on a click; the keyboard has this one button for it.
            <UnstyledButton className="row-button" fz="sm" aria-haspopup="dialog" title={t('shell.open')}>
              {column.cell(row)}
            </UnstyledButton>
          ) : (
            column.cell(row)
          )}
          {column.beside !== undefined && <Beside>{column.beside(row)}</Beside>}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

/** A click on what stands beside is no opening of the row. */
function Beside({ children }: { readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps the click to itself
    // biome-ignore lint/a11y/useKeyWithClickEvents: the button inside has the keys
    <span className="beside" onClick={(event) => event.stopPropagation()}>
      {children}
    </span>
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
