/** Sums of rows added up in memory, as columns for one statement: the same as table.ts has them made by the database. Pure. */
import { type Columns, type Marks, putColumn } from './columns.ts';

/** The same as in table.ts, which loads the query builder. */
const quarterMs = 900_000;

interface Group {
  /** The quarter of an hour, in wall-clock milliseconds. */
  readonly at: number;
  /** A text for each dimension; what stands for none is in the table's own words. */
  readonly values: readonly string[];
  readonly sums: (bigint | undefined)[];
  readonly histograms: (Map<number, number> | undefined)[];
}

/** Sums of part 0 of one table. */
export class SumsInMemory {
  readonly #groups = new Map<string, Group>();

  /** The group of a row at `at` (wall-clock milliseconds); dimensions in the table's order. */
  groupOf(at: number, values: readonly string[]): Group {
    const quarter = at - (((at % quarterMs) + quarterMs) % quarterMs);
    const name = `${quarter}\x1f${values.join('\x1f')}`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { at: quarter, values, sums: [], histograms: [] };
      this.#groups.set(name, group);
    }
    return group;
  }

  /** Writes the columns `TABLE.at`, and `TABLE.NAME` for each dimension and measure. */
  put(columns: Columns, marks: Marks, table: SumNames): void {
    const groups = [...this.#groups.values()];
    const put = (name: string, type: string, of: (group: Group) => unknown) =>
      putColumn(columns, marks, { name: `${table.name}.${name}`, type, of }, groups);
    put('at', 'bigint', ({ at }) => at);
    for (const [index, name] of table.dimensions.entries()) put(name, 'text', ({ values }) => values[index]);
    for (const [index, name] of table.measures.entries())
      put(name, 'numeric', ({ sums, histograms }) => sums[index] ?? decimalOf(histograms[index]));
  }
}

export interface SumNames {
  readonly name: string;
  readonly dimensions: readonly string[];
  readonly measures: readonly string[];
}

export function add({ sums }: Pick<Group, 'sums'>, measure: number, amount: bigint): void {
  sums[measure] = (sums[measure] ?? 0n) + amount;
}

// -------------------------------------------------------------------------------------------------------------- requests

/** Those of the request log's sums. */
export const requestSumNames: SumNames = {
  name: 'request_sums',
  dimensions: ['account_id', 'key_id', 'model', 'provider', 'operation', 'result', 'cause', 'person', 'project'],
  measures: ['requests', 'first_byte', 'total'],
};

type Text = string | null | undefined;

/** What the request log sums up of a request. */
export interface SummedRequest {
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly account: Text;
  readonly key: Text;
  readonly model: Text;
  readonly provider: Text;
  readonly operation: Text;
  readonly outcome: Text;
  readonly status: number;
  readonly errorKind: Text;
  readonly errorCode: Text;
  readonly firstByteMs: number | null | undefined;
  readonly totalMs: number | null | undefined;
  readonly person: Text;
  readonly project: Text;
}

/** Stands for no account, and for no key. */
export const noId = '00000000-0000-0000-0000-000000000000';

export function addRequest(sums: SumsInMemory, request: SummedRequest): void {
  const { outcome, status } = request;
  const isFailure =
    outcome === 'failed' || (outcome !== 'client_left' && status >= (outcome === 'complete' ? 400 : 500));
  const group = sums.groupOf(request.at, [
    request.account?.toLowerCase() ?? noId,
    request.key?.toLowerCase() ?? noId,
    request.model ?? '',
    request.provider ?? '',
    request.operation ?? '',
    resultOf(outcome, status),
    isFailure ? (request.errorCode ?? request.errorKind ?? String(status)) : '',
    request.person ?? '',
    request.project ?? '',
  ]);
  add(group, 0, 1n);
  if (typeof request.firstByteMs === 'number') count(group, 1, request.firstByteMs);
  if (typeof request.totalMs === 'number') count(group, 2, request.totalMs);
}

function resultOf(outcome: Text, status: number): string {
  if (outcome === 'complete' && status < 400) return 'ok';
  if (outcome === 'complete' && status < 500) return 'client_error';
  return outcome === 'client_left' ? 'left' : 'upstream_error';
}

// ------------------------------------------------------------------------------------------------------------ histograms

/** The same as in the request log's histogram.ts and in migrations. */
const least = 0.1;
const ratioLog = 0.04879016416943205;
const cells = 372;
const digits = 12;

/** Counts a duration in milliseconds, as the database keeps it: with 24 bits. */
function count({ histograms }: Pick<Group, 'histograms'>, measure: number, milliseconds: number): void {
  const cell = cellOf(milliseconds);
  histograms[measure] ??= new Map();
  const counts = histograms[measure];
  counts.set(cell, (counts.get(cell) ?? 0) + 1);
}

export function cellOf(milliseconds: number): number {
  const place = Math.floor(Math.log(Math.max(Math.fround(milliseconds), least) / least) / ratioLog);
  return Math.min(Math.max(place, 0), cells - 1);
}

/** Twelve decimal digits for each cell, from the highest on; zeros behind the lowest as an exponent. */
function decimalOf(counts: ReadonlyMap<number, number> | undefined): string | undefined {
  if (counts === undefined) return undefined;
  const used = [...counts.keys()];
  const [lowest, highest] = [Math.min(...used), Math.max(...used)];
  let text = '';
  for (let cell = highest; cell >= lowest; cell--) text += String(counts.get(cell) ?? 0).padStart(digits, '0');
  return `${text}e${lowest * digits}`;
}
