/** Counts the newest failures by cause from a bounded number of rows, since the kept sums do not have causes. */
import { type SQL, sql } from 'drizzle-orm';
import type { FailureCause, FailureCauses, FailureResult, RequestFilter } from '../common/domain/admin/requests.ts';

export type Row = Readonly<Record<string, unknown>>;
/** The newest rows of a filter, with these columns. */
export type Newest = (filter: RequestFilter, columns: SQL, limit: number, after?: string) => Promise<Row[]>;

const mostFailures = 2_000;
const failures: readonly FailureResult[] = ['upstream_error', 'client_error'];
const columns = sql`id::text as id, coalesce(error_code, error_kind, status::text) as cause`;

const resultsOf = ({ result }: RequestFilter) =>
  failures.filter((failure) => result === undefined || result === failure);

export async function causesOf(newest: Newest, filter: RequestFilter): Promise<FailureCauses> {
  const found = await Promise.all(
    resultsOf(filter).map(async (result) => {
      const rows = await newest({ ...filter, result }, columns, mostFailures + 1);
      return { result, isCut: rows.length > mostFailures, counts: countsIn(rows.slice(0, mostFailures)) };
    }),
  );
  const rows = found.flatMap(({ result, counts }) =>
    [...counts].map(([cause, requests]): FailureCause => ({ result, cause, requests })),
  );
  return {
    rows: rows.sort((left, right) => right.requests - left.requests),
    cut: found.flatMap(({ result, isCut }) => (isCut ? [result] : [])),
  };
}

function countsIn(rows: readonly Row[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const cause = String(row['cause']);
    counts.set(cause, (counts.get(cause) ?? 0) + 1);
  }
  return counts;
}

/** Ids of the counted failures with this cause, newest first. */
export async function failuresBy(newest: Newest, filter: RequestFilter, cause: string): Promise<string[]> {
  const found = await Promise.all(
    resultsOf(filter).map((result) => newest({ ...filter, result }, columns, mostFailures)),
  );
  const ids = found.flat().flatMap((row) => (row['cause'] === cause ? [String(row['id'])] : []));
  return ids.sort().reverse();
}
