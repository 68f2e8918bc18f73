/** Rows of the ledger, of one account or of all. */

import { z } from '@hono/zod-openapi';
import type { PageRequest } from '../../common/domain/admin/pages.ts';
import { ledgerQueries } from '../services.ts';
import { csvAnswer } from './csv.ts';
import { type ConsoleServices, need } from './routing/router.ts';
import { instant, instantInput, listed, usd, writerOf } from './schemas.ts';

export const ledgerRow = z
  .object({
    seq: z.string(),
    at: instant,
    accountId: z.string(),
    kind: z.string(),
    requestId: z.string().nullable(),
    reference: z.string().nullable(),
    reason: z.string().nullable(),
    change: usd.describe('What it added to the balance; a charge is below zero.'),
    balanceAfter: usd.describe('The balance before plus the change; money set aside for running calls is part of it.'),
  })
  .openapi('LedgerRow');

const columns = [
  'at',
  'seq',
  'accountId',
  'kind',
  'change',
  'balanceAfter',
  'requestId',
  'reference',
  'reason',
] as const;

const kind = z.string().regex(/^[A-Z_]{1,20}$/, 'must be a kind of entry, such as CREDIT');
export const ledgerQuery = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  kind: z.union([kind, z.array(kind).max(20)]).optional(),
});

export function ledgerPage(
  services: ConsoleServices,
  accountId: string | undefined,
  { from, until, kind: kinds }: z.output<typeof ledgerQuery>,
  page: PageRequest,
) {
  const filter = {
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
    ...(kinds === undefined ? {} : { kinds: Array.isArray(kinds) ? kinds : [kinds] }),
  };
  return need(services, ledgerQueries).ledger(accountId, filter, page);
}

export function csvOfLedger(
  services: ConsoleServices,
  accountId: string | undefined,
  query: z.output<typeof ledgerQuery>,
): Response {
  need(services, ledgerQueries);
  return csvAnswer('ledger', columns, async (page) =>
    listed(await ledgerPage(services, accountId, query, page), ledgerRowJson),
  );
}

export const ledgerRowJson = writerOf(ledgerRow);
