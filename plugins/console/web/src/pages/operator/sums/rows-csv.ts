/** Rows as CSV, for lists that are wholly in the page. Pure. */

/** RFC 4180, with the byte order mark that spreadsheets want; a cell that they would run begins with an apostrophe. */
export function toCsv(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return `\u{feff}${[head, ...rows].map((row) => row.map(cellText).join(',')).join('\r\n')}\r\n`;
}
export type Cell = string | number | boolean | null | undefined;

function cellText(cell: Cell): string {
  if (typeof cell === 'number') return String(cell);
  const text = String(cell ?? '');
  // A negative amount is a number and no formula.
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^-\d+(\.\d+)?$/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
