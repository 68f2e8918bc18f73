/** Orders of which nothing was heard: the payment service is asked again, a few at a time, until they have ended. */
import { type Books, lookAt } from './settlement.ts';

/** Orders of one round, by kind. */
const most = { open: 20, paid: 10 };
/** A page is left alone while its payer is likely to be on it. */
const openPauseMs = 120_000;
/** Longer than a page can be paid on. */
const pagelessMs = 2 * 3_600_000;
const dayMs = 24 * 3_600_000;
/** Slow ways to pay take days; later nothing comes any more. */
const giveUpMs = 14 * dayMs;
/** As long as a payment can be disputed. */
const disputableMs = 180 * dayMs;

/** One round of this process. Rounds of several processes share the work. */
export async function goRound(books: Books): Promise<void> {
  const { rows, clock } = books;
  const now = clock.now();
  await rows.endOld(now - giveUpMs, now - pagelessMs);
  const open = await rows.claim('open', now - openPauseMs, now - giveUpMs, most.open, now);
  const paid = await rows.claim('paid', now - dayMs, now - disputableMs, most.paid, now);
  for (const order of [...open, ...paid]) {
    // One that cannot be looked at keeps nobody else from it.
    await lookAt(books, order).catch((error: unknown) => {
      books.log.warn({ error, order: order.id }, 'a payment could not be looked at; it will be again');
    });
  }
}
