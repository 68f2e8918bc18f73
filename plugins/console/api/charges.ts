/** Requests together with what they were charged: rows of two services joined by the request's id. */
import type { ChargeView, LedgerQueries } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { RequestFilter, RequestView } from '../../common/domain/admin/requests.ts';

import { ledgerQueries, requestQueries } from '../services.ts';
import { type ConsoleServices, need, nothingHere } from './routing/router.ts';

/** A charge is written after its request's end; the query looks this much further. */
const settlesWithinMs = 60_000;
const mostCharges = 500;

/**
 * Charges by request. One query for the page's whole span finds nearly all of them; charges that settled late, or that did
 * not fit into that query's page, are fetched one by one.
 */
async function chargesOf(
  services: ConsoleServices,
  rows: readonly RequestView[],
  accountId: string | undefined,
): Promise<Map<string, ChargeView>> {
  const found = new Map<string, ChargeView>();
  const money = services.find(ledgerQueries);
  if (money === undefined || rows.length === 0) return found;
  const wanted = new Set(rows.map((row) => row.id));
  const from = Math.min(...rows.map((row) => row.receivedAt));
  const until = Math.max(...rows.map((row) => row.receivedAt + row.totalMs)) + settlesWithinMs;
  const page = await money.charges({ from, until, accountId }, { limit: mostCharges });
  for (const charge of page.rows) if (wanted.has(charge.requestId)) found.set(charge.requestId, charge);
  if (page.next !== undefined) await addSingly(money, rows, accountId, found);
  return found;
}

async function addSingly(
  money: LedgerQueries,
  rows: readonly RequestView[],
  accountId: string | undefined,
  found: Map<string, ChargeView>,
): Promise<void> {
  for (const row of rows) {
    // A refused request is not charged.
    if (found.has(row.id) || row.accountId === undefined || row.usage === undefined) continue;
    const charge = await money.charge(row.id, accountId);
    if (charge !== undefined) found.set(row.id, charge);
  }
}

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
  const charges = await chargesOf(services, rows, filter.accountId);
  return { rows: rows.map((row) => ({ row, charge: charges.get(row.id) })), next };
}

/** One request of an account, or of any, with its charge and attempts. */
export async function chargedRequest(services: ConsoleServices, id: string, accountId: string | undefined) {
  const row = await need(services, requestQueries).find(id, accountId);
  if (row === undefined) throw nothingHere('request');
  return { row, charge: await services.find(ledgerQueries)?.charge(id, accountId) };
}
