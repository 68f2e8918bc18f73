/** Rows as CSV, for lists that are wholly in the page. Pure. */

/** RFC 4180, with the byte order mark that spreadsheets want; a cell that they would run begins with an apostrophe. */
export function toCsv(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return `\u{feff}${[head, ...rows].map((row) => row.map(cellText).join(',')).join('\r\n')}\r\n`;
}
export type Cell = string | number | boolean | null | undefined;

function cellText(cell: Cell): string {
  // A measured time has many more places, which say nothing.
  if (typeof cell === 'number') return String(Math.round(cell * 1_000) / 1_000);
  const text = String(cell ?? '');
  // A negative amount is a number and no formula.
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^-\d+(\.\d+)?$/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
