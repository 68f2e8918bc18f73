/** Rows of the ledger, of one account or of all. */
import { z } from '@hono/zod-openapi';
import type { PageAsk } from '../../../core/desk.ts';
import type { LedgerRow } from '../../../core/desk-money.ts';
import { moneyDesk } from '../desks.ts';
import { type Console, need } from './router.ts';
import { instant, instantAsked, iso, listed, usd, usdText } from './words.ts';

export const ledgerRow = z
  .object({
    seq: z.string(),
    at: instant,
    accountId: z.string(),
    kind: z.string(),
    requestId: z.string().nullable(),
    reference: z.string().nullable(),
    reason: z.string().nullable(),
    amount: usd.describe("The account's side."),
    held: usd,
    balanceAfter: usd,
  })
  .openapi('LedgerRow');

export const ledgerColumns = [
  'at',
  'seq',
  'accountId',
  'kind',
  'amount',
  'held',
  'balanceAfter',
  'requestId',
  'reference',
  'reason',
] as const;

const kind = z.string().regex(/^[A-Z_]{1,20}$/, 'must be a kind of entry, such as CREDIT');
export const ledgerAsked = z.object({
  from: instantAsked.optional(),
  until: instantAsked.optional(),
  kind: z.union([kind, z.array(kind).max(20)]).optional(),
});

export async function pageOfLedger(
  hall: Console,
  accountId: string | undefined,
  { from, until, kind: kinds }: z.output<typeof ledgerAsked>,
  page: PageAsk,
) {
  const filter = {
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
    ...(kinds === undefined ? {} : { kinds: Array.isArray(kinds) ? kinds : [kinds] }),
  };
  return listed(await need(hall, moneyDesk).ledger(accountId, filter, page), tellLedgerRow);
}

function tellLedgerRow(row: LedgerRow): z.infer<typeof ledgerRow> {
  const { seq, accountId, kind, requestId, reference, reason, amount, held, balanceAfter, at } = row;
  return {
    seq,
    at: iso(at),
    accountId,
    kind,
    requestId: requestId ?? null,
    reference: reference ?? null,
    reason: reason ?? null,
    amount: usdText(amount),
    held: usdText(held),
    balanceAfter: usdText(balanceAfter),
  };
}
