/** Requests together with what they were charged: rows of two services joined by the request's id. */
import type { ChargeView } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { RequestFilter, RequestView } from '../../common/domain/admin/requests.ts';

import { ledgerQueries, requestQueries } from '../services.ts';
import { type ConsoleServices, need, nothingHere } from './routing/router.ts';

export interface ChargedRequest {
  readonly row: RequestView;
  readonly charge: ChargeView | undefined;
}

/** One page of requests, each with its charge. */
export async function chargedRequests(
  services: ConsoleServices,
  filter: RequestFilter,
  page: PageRequest,
): Promise<Page<ChargedRequest>> {
  const { rows, next } = await need(services, requestQueries).list(filter, page);
  const ids = rows.map(({ id }) => id);
  const found = (await services.find(ledgerQueries)?.chargesOf(ids, filter.accountId)) ?? [];
  const charges = new Map(found.map((charge) => [charge.requestId, charge]));
  return { rows: rows.map((row) => ({ row, charge: charges.get(row.id) })), next };
}

/** One request of an account, or of any, with its charge and attempts. */
export async function chargedRequest(services: ConsoleServices, id: string, accountId: string | undefined) {
  const row = await need(services, requestQueries).find(id, accountId);
  if (row === undefined) throw nothingHere('request');
  return { row, charge: await services.find(ledgerQueries)?.charge(id, accountId) };
}
