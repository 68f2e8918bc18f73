/** What becomes of an order, by the payment service's own word, and credited once. No event is believed. */
import type { Clock, Log } from '../../core/contract.ts';
import { formatUsd } from '../../core/money.ts';
import type { Ledger, Pool } from '../../core/vocabulary.ts';
import { centNano } from './config.ts';
import type { Processor, Session } from './processor.ts';
import type { Order, OrderRows } from './rows.ts';
import type { WithdrawalRows } from './withdrawal-rows.ts';
import { creditReference, giveBack, takeBack } from './withdrawals.ts';

export interface Books {
  readonly rows: OrderRows;
  readonly withdrawals: WithdrawalRows;
  readonly processor: Processor;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly currency: string;
}

/** Asks the payment service how an order stands, and does what follows; any number of times, by any number of processes. */
export async function lookAt(books: Books, order: Order): Promise<void> {
  if (order.session === undefined) return;
  const session = await books.processor.session(order.session);
  if (session.state === 'expired' && order.state !== 'paid') return books.rows.end(order.id, 'expired');
  if (session.state !== 'paid' || order.state === 'mismatch') return;
  if (order.state !== 'paid' && !(await receive(books, order, session))) return;
  if (session.payment === undefined) return;
  const withdrawals = await books.processor.withdrawals(session.payment);
  // What came back is there to be taken by the others: together they are never more than the payment.
  for (const withdrawal of withdrawals) if (!withdrawal.standing) await giveBack(books, order, withdrawal);
  for (const withdrawal of withdrawals) if (withdrawal.standing) await takeBack(books, order, withdrawal);
}

/** Credits what was paid. false: it is not what was ordered, so that nobody but an operator can tell what is right. */
async function receive(books: Books, order: Order, session: Session): Promise<boolean> {
  const { rows, ledger, log, clock } = books;
  const paid = BigInt(session.cents) * centNano;
  const fields = { order: order.id, account: order.accountId, session: session.id };
  if (session.currency !== books.currency || paid !== order.amount || session.orderId !== order.id) {
    log.error({ ...fields, cents: session.cents, currency: session.currency }, 'a payment is not what was ordered');
    await rows.end(order.id, 'mismatch');
    return false;
  }
  const entry = { kind: 'top-up', reason: 'payment', reference: creditReference(session.id) };
  await ledger.credit(order.accountId, order.amount, entry);
  await rows.pay(order.id, session.payment, clock.now());
  log.info({ ...fields, usd: formatUsd(order.amount) }, 'a payment was credited');
  return true;
}
