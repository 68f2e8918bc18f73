/** The result files behind the page of conformance: a suite compares its counts with them, or writes them with RECORD_RESULTS=yes. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = 'plugins/docs/conformance';

export interface Row {
  /** What was before the gateway, or on its other side: a client, a pair of protocols, a family of vendors. */
  readonly what: string;
  /** Absent: it is a part of this repository. */
  readonly version?: string;
  /** The day of the run that wrote the row. */
  readonly date: string;
  readonly counts: Readonly<Record<string, number>>;
}

export type Result = Omit<Row, 'date'>;

const pathOf = (suite: string) => join(folder, `${suite}.tsv`);

/** Lines of `what`, version, date, and counts as `12 tests, 1 skipped`. */
export function rowsOf(suite: string): Row[] {
  if (!existsSync(pathOf(suite))) return [];
  const [, ...lines] = readFileSync(pathOf(suite), 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [what, version, date, counts] = line.split('\t') as [string, string, string, string];
    const parsed = counts.split(', ').map((count) => {
      const [number, name] = count.split(/ (.*)/) as [string, string];
      return [name, Number(number)] as const;
    });
    return { what, ...(version === '' ? {} : { version }), date, counts: Object.fromEntries(parsed) };
  });
}

/** Fails where the page says something else than this run has seen. A row that is not on it is named, since the page claims nothing of it. */
export function hold(suite: string, results: readonly Result[], command: string): void {
  if (process.env['RECORD_RESULTS'] !== undefined) {
    record(suite, results);
    return;
  }
  const advice = `RECORD_RESULTS=yes ${command}, then npm run docs`;
  const known = new Map(rowsOf(suite).map(({ what, version, counts }) => [what, { what, version, counts }]));
  for (const { what, version, counts } of results) {
    const shown = known.get(what);
    if (shown === undefined) console.log(`"${what}" is not in ${pathOf(suite)}: ${advice}`);
    else assert.deepEqual(shown, { what, version, counts }, `${pathOf(suite)} says something else: ${advice}`);
  }
}

/** A line a row; rows of other runs of the suite stay. */
function record(suite: string, results: readonly Result[]): void {
  const date = new Date().toISOString().slice(0, 10);
  const rows = new Map(rowsOf(suite).map((row) => [row.what, row]));
  for (const { what, version, counts } of results)
    rows.set(what, { what, ...(version === undefined ? {} : { version }), date, counts });
  const lines = [...rows.values()]
    .toSorted((one, other) => one.what.localeCompare(other.what, 'en'))
    .map(({ what, version = '', date: of, counts }) => {
      const listed = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
      return [what, version, of, listed.join(', ')].join('\t');
    });
  mkdirSync(folder, { recursive: true });
  writeFileSync(pathOf(suite), `${['what\tversion\tdate\tcounts', ...lines].join('\n')}\n`);
}
