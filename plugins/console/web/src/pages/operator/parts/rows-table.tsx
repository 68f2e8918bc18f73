/** A table of rows that are all in the page, with CSV; looks like the long lists. */
import { Button, Group, Table } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Column } from '../../../parts/data-table.tsx';
import { type Cell, toCsv } from '../sums/rows-csv.ts';
import { saveText } from './save-text.ts';

export interface RowsColumn<Row> extends Column<Row> {
  /** What stands in the CSV; absent: the column is left out of it. */
  readonly plain?: (row: Row) => Cell;
}

interface RowsTableProps<Row> {
  readonly label: string;
  readonly columns: readonly RowsColumn<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** Name of the CSV, without its ending; absent: there is none. */
  readonly file?: string;
  readonly empty?: ReactNode;
}

export function RowsTable<Row>({ label, columns, rows, rowKey, file, empty }: RowsTableProps<Row>) {
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  return (
    <div>
      <div className="table-box">
        <Table className="data-table" aria-label={label}>
          <Table.Thead>
            <Table.Tr>
              {columns.map(({ key, title, right, minor }) => (
                <Table.Th key={key} data-right={right} data-minor={minor}>
                  {title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={rowKey(row)}>
                {columns.map(({ key, title, right, minor, cell }) => (
                  <Table.Td key={key} data-right={right} data-minor={minor} data-label={title}>
                    {cell(row)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {file !== undefined && rows.length > 0 && (
        <Group px="md" py="xs" className="pager">
          <RowsCsv columns={columns} rows={rows} file={file} />
        </Group>
      )}
    </div>
  );
}

function RowsCsv<Row>({ columns, rows, file }: Required<Pick<RowsTableProps<Row>, 'columns' | 'rows' | 'file'>>) {
  const { t } = useTranslation();
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
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      color="gray"
      leftSection={<IconDownload size={14} />}
      title={t('shell.csvLabel')}
      onClick={save}
    >
      {t('shell.csv')}
    </Button>
  );
}
