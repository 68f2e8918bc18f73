/** Rows as CSV (RFC 4180), page by page, safe to open in a spreadsheet. */
import type { PageRequest } from '../../../common/domain/admin/pages.ts';
import { streamOf } from '../stream.ts';

/** Spreadsheets run cells that begin with these characters: https://owasp.org/www-community/attacks/CSV_Injection */
const runs = /^[=+\-@\t\r]/;
const plainNumber = /^-?\d+(\.\d+)?$/;
const pageRows = 500;

function csvCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'number' ? numberText(value) : String(value);
  const safe = runs.test(text) && !plainNumber.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** At most three places: a measured time has many more, which say nothing. */
const numberText = (value: number) => String(Math.round(value * 1_000) / 1_000);

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
  yield encoder.encode(`${columns.join(',')}\r\n`);
  let after: string | undefined;
  for (;;) {
    const { rows, next } = await pageOf({ limit: pageRows, after });
    if (rows.length > 0)
      yield encoder.encode(
        rows.map((row) => `${columns.map((column) => csvCell(row[column])).join(',')}\r\n`).join(''),
      );
    if (next === null) return;
    after = next;
  }
}
