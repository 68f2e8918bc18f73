/** Cells and lines of CSV files (RFC 4180), safe to open in a spreadsheet. Pure. */

/** Spreadsheets run cells that begin with these characters: https://owasp.org/www-community/attacks/CSV_Injection */
const runs = /^[=+\-@\t\r]/;
const plainNumber = /^-?\d+(\.\d+)?$/;

function csvCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'number' ? numberText(value) : String(value);
  const safe = runs.test(text) && !plainNumber.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** At most three places: a measured time has many more, which say nothing. */
const numberText = (value: number) => String(Math.round(value * 1_000) / 1_000);

/** With its line end. */
export const csvLine = (cells: readonly unknown[]): string => `${cells.map(csvCell).join(',')}\r\n`;
