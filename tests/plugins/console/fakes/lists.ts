/** Paging, sums and percentiles over arrays, as the real services do them in SQL. */

import { GatewayError } from '../../../../core/contract/errors.ts';
import type { KeySet } from '../../../../plugins/common/domain/admin/accounts.ts';
import type { Page, PageRequest } from '../../../../plugins/common/domain/admin/pages.ts';
import type {
  Percentiles,
  RequestFilter,
  RequestSums,
  RequestView,
} from '../../../../plugins/common/domain/admin/requests.ts';
import { resultOf } from '../../../../plugins/console/web/src/parts/result-of.ts';

/** `rows` in the order of the list. */
export function paged<Row>(rows: readonly Row[], { limit, after }: PageRequest): Page<Row> {
  const from = after === undefined ? 0 : Number(after);
  if (!Number.isSafeInteger(from) || from < 0)
    throw new GatewayError('invalid_request', 'after is not a place in this list.', { field: 'after' });
  const end = from + limit;
  return { rows: rows.slice(from, end), next: end < rows.length ? String(end) : undefined };
}

/** Cause of a failure. */
export const causeOf = ({ errorCode, errorKind, status }: RequestView) => errorCode ?? errorKind ?? String(status);

export function matches(row: RequestView, filter: RequestFilter): boolean {
  const { from, until, result, cause } = filter;
  if (row.receivedAt < from || row.receivedAt >= until) return false;
  if (result !== undefined && resultOf(row) !== result) return false;
  const isFailure = ['client_error', 'upstream_error'].includes(resultOf(row));
  if (cause !== undefined && !(isFailure && causeOf(row) === cause)) return false;
  if (filter.keys !== undefined && !isAmong(row.keyId, filter.keys)) return false;
  if (filter.projectIds?.includes(row.projectId ?? '') === false) return false;
  if (filter.withoutOperations?.includes(row.operation)) return false;
  const names = ['accountId', 'keyId', 'model', 'provider', 'operation'] as const;
  return names.every((name) => filter[name] === undefined || filter[name] === row[name]);
}

/** The id of the project with this name. */
export const projectIdOf = (name: string) => `proj-${name}`;

export const nameOfProject = (id: string) => id.slice(projectIdOf('').length);

export const isAmong = (keyId: string | undefined, { ids, not }: KeySet): boolean =>
  (keyId !== undefined && ids.includes(keyId)) !== (not ?? false);

export function sumsOf(rows: readonly RequestView[]): RequestSums {
  const results = { ok: 0, client_error: 0, upstream_error: 0, left: 0 };
  for (const row of rows) results[resultOf(row)]++;
  return {
    requests: rows.length,
    results,
    firstByte: percentiles(rows.flatMap(({ firstByteMs }) => (firstByteMs === undefined ? [] : [firstByteMs]))),
    total: percentiles(rows.map(({ totalMs }) => totalMs)),
  };
}

function percentiles(values: number[]): Percentiles {
  const sorted = values.sort((left, right) => left - right);
  const at = (share: number) => (sorted.length === 0 ? undefined : sorted[Math.floor(share * (sorted.length - 1))]);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export function groupBy<Row>(rows: readonly Row[], name: (row: Row) => string | undefined): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = name(row);
    if (group === undefined) continue;
    const members = groups.get(group);
    if (members === undefined) groups.set(group, [row]);
    else members.push(row);
  }
  return groups;
}
