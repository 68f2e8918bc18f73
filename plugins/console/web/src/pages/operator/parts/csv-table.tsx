/** A table of rows that are all in the page, with its CSV. */
import { Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { type Cell, toCsv } from '../sums/rows-csv.ts';
import { SaveCsv } from './save-csv.tsx';
import { saveText } from './save-text.ts';

export interface CsvColumn<Row> extends Column<Row> {
  /** What stands in the CSV; absent: the column is left out of it. */
  readonly plain?: (row: Row) => Cell;
}

interface CsvTableProps<Row> {
  readonly label: string;
  readonly columns: readonly CsvColumn<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** Name of the CSV, without its ending. */
  readonly file: string;
  /** Shown where there is no row. */
  readonly empty: ReactNode;
  readonly onOpen?: (row: Row) => void;
}

export function CsvTable<Row>({ label, columns, rows, rowKey, file, empty, onOpen }: CsvTableProps<Row>) {
  if (rows.length === 0) return <>{empty}</>;
  return (
    <div>
      <RowsTable label={label} columns={columns} rows={rows} rowKey={rowKey} onOpen={onOpen} />
      <Group px="md" py="xs" className="pager">
        <RowsCsv columns={columns} rows={rows} file={file} />
      </Group>
    </div>
  );
}

function RowsCsv<Row>({ columns, rows, file }: Pick<CsvTableProps<Row>, 'columns' | 'rows' | 'file'>) {
  const save = () => {
    const told = columns.filter(({ plain }) => plain !== undefined);
    const lines = rows.map((row) => told.map(({ plain }) => plain!(row)));
    saveText(
      `${file}.csv`,
      'text/csv;charset=utf-8',
      toCsv(
        told.map(({ key }) => key),
        lines,
      ),
    );
  };
  return <SaveCsv onSave={save} />;
}
