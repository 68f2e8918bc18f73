/** A table of rows that are all in the page, with its CSV. */
import type { ReactNode } from 'react';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { toCsv } from '../sums/rows-csv.ts';
import { SaveCsv } from './save-csv.tsx';
import { saveText } from './save-text.ts';

interface CsvTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** The sum of the rows; not in the CSV. */
  readonly total?: Row | undefined;
  /** Name of the CSV, without its ending. */
  readonly file: string;
  /** Shown where there is no row. */
  readonly empty: ReactNode;
  readonly onOpen?: ((row: Row) => void) | undefined;
  readonly groupOf?: ((row: Row) => string) | undefined;
}

export function CsvTable<Row extends object>({ file, empty, ...table }: CsvTableProps<Row>) {
  const { columns, rows } = table;
  if (rows.length === 0) return <>{empty}</>;
  const save = () => {
    const saved = columns.flatMap(({ key, plain }) => (plain === undefined ? [] : [{ key, plain }]));
    const lines = rows.map((row) => saved.map(({ plain }) => plain(row)));
    const heads = saved.map(({ key }) => key);
    saveText(`${file}.csv`, 'text/csv;charset=utf-8', toCsv(heads, lines));
  };
  return <RowsTable {...table} footer={<SaveCsv onSave={save} />} />;
}
