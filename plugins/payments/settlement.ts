/** Settles an order by the state that the payment service reports, and credits it once. Events are not trusted. */

import { formatUsd } from '../common/domain/money.ts';
import { centNano } from './config.ts';
import type { Session } from './processor.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';
import { creditReference, giveBack, takeBack } from './withdrawals.ts';

/** Polls an order and applies its state. Idempotent, also across processes. */
export async function lookAt(services: SettlementServices, order: Order): Promise<void> {
  if (order.session === undefined) return;
  const session = await services.processor.session(order.session);
  if (session.state === 'expired' && order.state !== 'paid') return services.rows.end(order.id, 'expired');
  if (session.state !== 'paid' || order.state === 'mismatch') return;
  if (order.state !== 'paid' && !(await receive(services, order, session))) return;
  if (session.payment === undefined) return;
  const withdrawals = await services.processor.withdrawals(session.payment);
  // Returned money can be withdrawn again: together withdrawals never exceed the payment.
  for (const withdrawal of withdrawals) if (!withdrawal.standing) await giveBack(services, order, withdrawal);
  for (const withdrawal of withdrawals) if (withdrawal.standing) await takeBack(services, order, withdrawal);
}

/** Credits the payment. false: the amount differs from the order, so an operator must decide. */
async function receive(services: SettlementServices, order: Order, session: Session): Promise<boolean> {
  const { rows, ledger, log, clock } = services;
  const paid = BigInt(session.cents) * centNano;
  const fields = { order: order.id, account: order.accountId, session: session.id };
  if (session.currency !== services.currency || paid !== order.amount || session.orderId !== order.id) {
    log.error({ ...fields, cents: session.cents, currency: session.currency }, 'a payment differs from its order');
    await rows.end(order.id, 'mismatch');
    return false;
  }
  const entry = { kind: 'top-up', reason: 'payment', reference: creditReference(session.id) };
  await ledger.credit(order.accountId, order.amount, entry);
  await rows.pay(order.id, session.payment, clock.now());
  log.info({ ...fields, usd: formatUsd(order.amount) }, 'a payment was credited');
  return true;
}
