/** Rows of the ledger, of one account or of all. */

import { z } from '@hono/zod-openapi';
import type { PageRequest } from '../../common/domain/admin/pages.ts';
import { ledgerQueries } from '../services.ts';
import { keyNamesOf } from './charges.ts';
import { csvAnswer } from './csv/answer.ts';
import { dayAndTime, usageCells, wordOf } from './csv/cells.ts';
import { type ConsoleServices, need } from './routing/router.ts';
import { instant, instantInput, listed, usage, usd, writerOf } from './schemas.ts';
import { zoneQuery } from './time-zone.ts';

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
    model: z.string().nullable(),
    keyId: z.string().nullable(),
    keyName: z.string().nullable(),
    usage: usage.nullable().describe('Of a charged call.'),
    balanceAfter: usd.describe('The balance before plus the change; money set aside for running calls is part of it.'),
  })
  .openapi('LedgerRow');

const columns = [
  'at',
  'day',
  'time',
  'accountId',
  'kind',
  'reason',
  'model',
  'key',
  'inputTokens',
  'outputTokens',
  'otherUsage',
  'change',
  'balanceAfter',
  'requestId',
  'reference',
  'seq',
] as const;

const kind = z.string().regex(/^[A-Z_]{1,20}$/, 'must be a kind of entry, such as CREDIT');
export const ledgerQuery = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  ...zoneQuery.shape,
  kind: z.union([kind, z.array(kind).max(20)]).optional(),
});

/** Movements, with what each charged call was. */
export async function ledgerPage(
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
  const queries = need(services, ledgerQueries);
  const { rows, next } = await queries.ledger(accountId, filter, page);
  const ids = rows.flatMap(({ requestId, kind }) => (requestId !== undefined && kind === 'CHARGE' ? [requestId] : []));
  const charges = ids.length === 0 ? [] : await queries.chargesOf(ids, accountId);
  const names = await keyNamesOf(services, charges);
  const calls = new Map(
    charges.map(({ requestId, model, keyId, usage }) => [
      requestId,
      { model, keyId, keyName: names.get(keyId)?.name, usage },
    ]),
  );
  return { rows: rows.map((row) => ({ ...row, ...(row.kind === 'CHARGE' && calls.get(row.requestId!)) })), next };
}

export function csvOfLedger(
  services: ConsoleServices,
  accountId: string | undefined,
  query: z.output<typeof ledgerQuery>,
): Response {
  need(services, ledgerQueries);
  return csvAnswer('ledger', columns, async (page) =>
    listed(await ledgerPage(services, accountId, query, page), (row) => ledgerCells(ledgerRowJson(row), query.tz)),
  );
}

export const ledgerRowJson = writerOf(ledgerRow);

function ledgerCells({ keyName: key, usage, kind, reason, ...row }: z.infer<typeof ledgerRow>, zone?: string) {
  // Only a call's reason is a name of the gateway's.
  const said = kind === 'CHARGE' ? wordOf(reason) : reason;
  return { ...row, ...dayAndTime(row.at, zone), kind: wordOf(kind), reason: said, key, ...usageCells(usage) };
}
