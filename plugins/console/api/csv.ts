/** Rows as CSV (RFC 4180), page by page, safe to open in a spreadsheet. */
import type { PageRequest } from '../../common/domain/admin/pages.ts';

/** Spreadsheets run cells that begin with these characters: https://owasp.org/www-community/attacks/CSV_Injection */
const runs = /^[=+\-@\t\r]/;
const plainNumber = /^-?\d+(\.\d+)?$/;
const mostRows = 100_000;
const pageRows = 500;

function csvCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const safe = runs.test(text) && !plainNumber.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

type PageOf<Row> = (page: PageRequest) => Promise<{ readonly rows: readonly Row[]; readonly next: string | null }>;

/** Streams every page, up to 100,000 rows. */
export function csvAnswer<Row extends object>(
  name: string,
  columns: readonly (keyof Row & string)[],
  pageOf: PageOf<Row>,
): Response {
  const lines = csvLines(columns, pageOf);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await lines.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await lines.return(undefined);
    },
  });
  return new Response(body, {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'cache-control': 'no-store',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  });
}

async function* csvLines<Row extends object>(columns: readonly (keyof Row & string)[], pageOf: PageOf<Row>) {
  yield `${columns.join(',')}\r\n`;
  let after: string | undefined;
  for (let sent = 0; sent < mostRows; ) {
    const { rows, next } = await pageOf({ limit: pageRows, after });
    if (rows.length > 0)
      yield rows.map((row) => `${columns.map((column) => csvCell(row[column])).join(',')}\r\n`).join('');
    sent += rows.length;
    if (next === null) return;
    after = next;
  }
}
