/** Rows as CSV, page by page. */
import type { PageRequest } from '../../../common/domain/admin/pages.ts';
import { csvLine } from '../../../common/kit/pages/csv.ts';
import { streamOf } from '../stream.ts';

const pageRows = 500;

type Cell = string | number | boolean | null | undefined;
/** What a row has for these columns; a list or an object has no cell of its own. */
type Cells<Row> = { [Name in keyof Row]-?: NonNullable<Row[Name]> extends Cell ? Name : never }[keyof Row] & string;

type PageOf<Row> = (page: PageRequest) => Promise<{ readonly rows: readonly Row[]; readonly next: string | null }>;

/** Streams every page, each when the reader has taken the one before. A failure breaks the download off, so that a part is not taken for the whole. */
export function csvAnswer<Row extends object>(
  name: string,
  columns: readonly Cells<NoInfer<Row>>[],
  pageOf: PageOf<Row>,
): Response {
  return new Response(streamOf(csvLines(columns, pageOf)), {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'cache-control': 'no-store',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  });
}

async function* csvLines<Row extends object>(columns: readonly Cells<Row>[], pageOf: PageOf<Row>) {
  const encoder = new TextEncoder();
  yield encoder.encode(csvLine(columns));
  let after: string | undefined;
  for (;;) {
    const { rows, next } = await pageOf({ limit: pageRows, after });
    if (rows.length > 0)
      yield encoder.encode(rows.map((row) => csvLine(columns.map((column) => row[column]))).join(''));
    if (next === null) return;
    after = next;
  }
}
