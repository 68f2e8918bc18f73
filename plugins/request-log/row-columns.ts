/** Makes columns of one batch of request rows, and their sums. It runs where the driver does, beside the thread that serves requests. Pure. */
import type { RequestRow } from '../common/domain/call-facts.ts';
import { type Column, type Columns, marksFor, putColumn } from '../common/rollups/columns.ts';
import {
  addRequest,
  noId,
  requestSumNames,
  type SummedRequest,
  SumsInMemory,
} from '../common/rollups/sums-in-memory.ts';

export interface RowsInput {
  /** The names of the parameters, in their order. */
  readonly names: readonly string[];
  /** A JSON array. */
  readonly rows: string;
  /** Ids of requests that have rows. */
  readonly present: readonly string[];
}

/** As JSON has it: what is undefined in the row is absent or null. */
type StoredRow = { readonly [Name in keyof RequestRow]?: RequestRow[Name] | null } & {
  readonly request_id: string;
  readonly received_at: string;
  readonly story?: unknown;
};

interface RowColumn extends Column<StoredRow> {
  /** The type that the database casts it to. */
  readonly cast?: 'jsonb' | 'text[]' | 'time';
}

const plain = (type: string, ...names: readonly (keyof StoredRow)[]): RowColumn[] =>
  names.map((name) => ({ name, type, of: (row) => row[name] }));

export const rowColumns: readonly RowColumn[] = [
  { name: 'id', type: 'uuid', of: (row) => row.request_id },
  { name: 'received_at', type: 'bigint', cast: 'time', of: (row) => Date.parse(row.received_at) },
  { name: 'account_id', type: 'uuid', of: (row) => row.account_id ?? noId },
  ...plain('uuid', 'key_id'),
  ...plain('text', 'operation', 'protocol', 'model', 'provider', 'upstream_model'),
  ...plain('text', 'outcome', 'error_kind', 'error_code', 'finish', 'upstream_id', 'person', 'project'),
  ...plain('boolean', 'streamed', 'usage_estimated'),
  ...plain('smallint', 'status', 'attempts'),
  ...plain('real', 'first_byte_ms', 'total_ms'),
  ...plain('integer', 'bytes_in'),
  ...plain('bigint', 'bytes_out'),
  { name: 'usage', type: 'text', cast: 'jsonb', of: (row) => jsonOf(row.usage) },
  { name: 'dropped', type: 'text', cast: 'text[]', of: (row) => arrayOf(row.dropped) },
  { name: 'story', type: 'text', cast: 'jsonb', of: (row) => jsonOf(row.story) },
];

const jsonOf = (value: unknown) => (value === undefined || value === null ? undefined : JSON.stringify(value));
const arrayOf = (texts: readonly string[] | null | undefined) =>
  texts && `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;

/** The parameters of a batch's statement. */
export function parametersOf({ names, rows, present }: RowsInput): string[] {
  const marks = marksFor(rows);
  const known = new Set(present);
  const added: StoredRow[] = [];
  const sums = new SumsInMemory();
  for (const row of JSON.parse(rows) as StoredRow[]) {
    if (known.has(row.request_id)) continue;
    known.add(row.request_id);
    added.push(row);
    addRequest(sums, requestOf(row));
  }
  const columns: Columns = { ...marks };
  for (const column of rowColumns) putColumn(columns, marks, column, added);
  sums.put(columns, marks, requestSumNames);
  return names.map((name) => columns[name]!);
}

export const idsIn = (rows: string): string[] => (JSON.parse(rows) as StoredRow[]).map((row) => row.request_id);

const requestOf = (row: StoredRow): SummedRequest => ({
  at: Date.parse(row.received_at),
  account: row.account_id,
  key: row.key_id,
  model: row.model,
  provider: row.provider,
  operation: row.operation,
  outcome: row.outcome,
  status: row.status!,
  errorKind: row.error_kind,
  errorCode: row.error_code,
  firstByteMs: row.first_byte_ms,
  totalMs: row.total_ms,
  person: row.person,
  project: row.project,
});
