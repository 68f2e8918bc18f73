/** Requests together with what they were charged: rows of two services joined by the request's id. */
import type { KeyNames } from '../../common/domain/admin/accounts.ts';
import type { ChargeView } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { RequestListFilter, RequestView } from '../../common/domain/admin/requests.ts';

import { accountAdmin, ledgerQueries, requestQueries } from '../services.ts';
import { type ConsoleServices, need, nothingHere } from './routing/router.ts';

export interface ChargedRequest {
  readonly row: RequestView;
  /** What its key is called. */
  readonly key: KeyNames | undefined;
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
  const names = await keyNamesOf(services, rows);
  return {
    rows: rows.map((row) => ({ row, key: names.get(row.keyId ?? ''), charge: charges.get(row.id) })),
    next,
    sortedOf,
  };
}

/** What the keys of these rows are called, by the keys. */
export async function keyNamesOf(
  services: ConsoleServices,
  rows: readonly { readonly keyId?: string | undefined }[],
): Promise<ReadonlyMap<string, KeyNames>> {
  const ids = new Set(rows.flatMap(({ keyId }) => keyId ?? []));
  return (await services.find(accountAdmin)?.namesOf([...ids])) ?? new Map();
}

/** One request of an account, or of any, with its charge and attempts. */
export async function chargedRequest(services: ConsoleServices, id: string, accountId: string | undefined) {
  const row = await need(services, requestQueries).find(id, accountId);
  if (row === undefined) throw nothingHere('request');
  const key = (await keyNamesOf(services, [row])).get(row.keyId ?? '');
  return { row, key, charge: await services.find(ledgerQueries)?.charge(id, accountId) };
}
