/** Reconciliation: polls the payment service for open orders, a few at a time, until they have ended. */

import type { SettlementServices } from './services.ts';
import { lookAt } from './settlement.ts';

/** Orders of one round, by kind. */
const most = { open: 20, paid: 10 };
/** A new page is not polled while its payer is likely to be on it. */
const openPauseMs = 120_000;
/** Longer than a payment page is open. */
const pagelessMs = 2 * 3_600_000;
const dayMs = 24 * 3_600_000;
/** Slow payment methods take days; after this time no payment arrives. */
const giveUpMs = 14 * dayMs;
/** How long a payment can be disputed. */
const disputableMs = 180 * dayMs;

/** One round of this process. Several processes share the orders. */
export async function goRound(services: SettlementServices): Promise<void> {
  const { rows, clock } = services;
  const now = clock.now();
  const isOpen = await services.pool.admitMoney().then(
    () => true,
    () => false,
  );
  if (!isOpen) return;
  await rows.endOld(now - giveUpMs, now - pagelessMs);
  const open = await rows.claim('open', now - openPauseMs, now - giveUpMs, most.open, now);
  const paid = await rows.claim('paid', now - dayMs, now - disputableMs, most.paid, now);
  for (const order of [...open, ...paid]) {
    // One failing order must not stop the others.
    await lookAt(services, order).catch((error: unknown) => {
      services.log.warn({ error, order: order.id }, 'a payment could not be looked at; it will be again');
    });
  }
}
