/** Which of a page's requests were charged, and how much: two desks' rows brought together. */

import type { RequestView } from '../../../core/desk.ts';
import type { ChargeView, MoneyDesk } from '../../../core/desk-money.ts';
import { moneyDesk } from '../desks.ts';
import type { Console } from './router.ts';

/** A charge is written after its request's end; so long after, at most, in one sweep. */
const settlesWithinMs = 60_000;
const sweep = 500;

/**
 * Charges by request. One question for the page's whole span finds nearly all of them; those that settled late, or that
 * others' charges crowded out, are asked for singly.
 */
export async function chargesOf(
  hall: Console,
  rows: readonly RequestView[],
  accountId: string | undefined,
): Promise<Map<string, ChargeView>> {
  const found = new Map<string, ChargeView>();
  const desk = hall.find(moneyDesk);
  if (desk === undefined || rows.length === 0) return found;
  const wanted = new Set(rows.map((row) => row.id));
  const from = Math.min(...rows.map((row) => row.receivedAt));
  const until = Math.max(...rows.map((row) => row.receivedAt + row.totalMs)) + settlesWithinMs;
  const page = await desk.charges({ from, until, accountId }, { limit: sweep });
  for (const charge of page.rows) if (wanted.has(charge.requestId)) found.set(charge.requestId, charge);
  if (page.next !== undefined) await askSingly(desk, rows, accountId, found);
  return found;
}

async function askSingly(
  desk: MoneyDesk,
  rows: readonly RequestView[],
  accountId: string | undefined,
  found: Map<string, ChargeView>,
): Promise<void> {
  for (const row of rows) {
    // What was refused by status is not charged.
    if (found.has(row.id) || row.accountId === undefined || row.usage === undefined) continue;
    const charge = await desk.charge(row.id, accountId);
    if (charge !== undefined) found.set(row.id, charge);
  }
}
