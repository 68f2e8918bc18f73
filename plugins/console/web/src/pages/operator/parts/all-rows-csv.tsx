/** A whole list as CSV where the API has no file: fetches page after page and shows the progress. */
import { notifications } from '@mantine/notifications';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../../../api/client.ts';
import { countText } from '../../../parts/format.ts';
import { useErrorText } from '../../../parts/states.tsx';
import { type Cell, toCsv } from '../sums/rows-csv.ts';
import type { Page } from '../types.ts';
import { SaveCsv } from './save-csv.tsx';
import { saveText } from './save-text.ts';

const pageRows = 500;
const mostRows = 100_000;

interface AllRowsCsvProps {
  readonly path: string;
  readonly query?: Query;
  /** Name of the file, without its ending. */
  readonly file: string;
  /** Members of a row, in the order of the columns. */
  readonly columns: readonly string[];
}

export function AllRowsCsv({ path, query = {}, file, columns }: AllRowsCsvProps) {
  const { t, i18n } = useTranslation();
  const errorText = useErrorText();
  const [fetched, setFetched] = useState<number>();
  const save = async () => {
    try {
      const { rows, isWhole } = await allRows(path, query, setFetched);
      const lines = rows.map((row) => columns.map((column) => cellOf(row[column])));
      if (!isWhole) {
        const message = t('operator.csvBound', { rows: countText(rows.length, i18n.language) });
        lines.push([message]);
        notifications.show({ message, color: 'red', autoClose: false });
      }
      saveText(`${file}.csv`, 'text/csv;charset=utf-8', toCsv(columns, lines));
    } catch (error) {
      notifications.show({ message: errorText(error), color: 'red' });
    } finally {
      setFetched(undefined);
    }
  };
  return <SaveCsv fetched={fetched} onSave={() => void save()} />;
}

type AnyRow = Readonly<Record<string, unknown>>;

async function allRows(path: string, query: Query, onProgress: (rows: number) => void) {
  const rows: AnyRow[] = [];
  let after: string | undefined;
  do {
    onProgress(rows.length);
    const page: Page<AnyRow> = await get(path, { ...query, limit: pageRows, after });
    rows.push(...page.rows);
    after = page.next ?? undefined;
  } while (after !== undefined && rows.length < mostRows);
  return { rows, isWhole: after === undefined };
}

function cellOf(value: unknown): Cell {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell);
}
