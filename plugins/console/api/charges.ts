/** Requests together with what they were charged: rows of two services joined by the request's id. */
import type { ChargeView } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { RequestListFilter, RequestView } from '../../common/domain/admin/requests.ts';

import { accountAdmin, ledgerQueries, requestQueries } from '../services.ts';
import { type ConsoleServices, need, nothingHere } from './routing/router.ts';

export interface ChargedRequest {
  readonly row: RequestView;
  /** The project of its key. */
  readonly project: string | undefined;
  readonly charge: ChargeView | undefined;
}

/** One page of requests, each with its charge. */
export async function chargedRequests(
  services: ConsoleServices,
  filter: RequestListFilter,
  page: PageRequest,
): Promise<Page<ChargedRequest> & { readonly sortedOf: number | undefined }> {
  const { rows, next, sortedOf } = await need(services, requestQueries).list(filter, page);
  const ids = rows.map(({ id }) => id);
  const found = (await services.find(ledgerQueries)?.chargesOf(ids, filter.accountId)) ?? [];
  const charges = new Map(found.map((charge) => [charge.requestId, charge]));
  const projects = await projectsOf(services, rows);
  return {
    rows: rows.map((row) => ({ row, project: projects.get(row.keyId ?? ''), charge: charges.get(row.id) })),
    next,
    sortedOf,
  };
}

/** The projects of the keys of these requests, by the keys. */
export async function projectsOf(
  services: ConsoleServices,
  rows: readonly RequestView[],
): Promise<ReadonlyMap<string, string>> {
  const ids = new Set(rows.flatMap(({ keyId }) => keyId ?? []));
  return (await services.find(accountAdmin)?.projectsOf([...ids])) ?? new Map();
}

/** One request of an account, or of any, with its charge and attempts. */
export async function chargedRequest(services: ConsoleServices, id: string, accountId: string | undefined) {
  const row = await need(services, requestQueries).find(id, accountId);
  if (row === undefined) throw nothingHere('request');
  const project = (await projectsOf(services, [row])).get(row.keyId ?? '');
  return { row, project, charge: await services.find(ledgerQueries)?.charge(id, accountId) };
}
