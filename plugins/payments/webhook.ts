/** The webhook endpoint of the payment service. An event only triggers a poll. */

import type { Endpoint, Exchange } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { envelope } from '../common/kit/error-envelope.ts';
import { uuidForm } from '../common/kit/paging.ts';
import type { Subject } from './processor.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';
import { lookAt } from './settlement.ts';

/** The payment service times out after half a minute and repeats the event later. */
const timeoutMs = 25_000;

export function webhookOf(services: SettlementServices): Endpoint {
  return {
    method: 'POST',
    path: '/payments/webhook',
    operation: 'payments',
    // Authenticated by its signature.
    keyless: true,
    timeoutMs,
    handle: (exchange) => handleEvent(exchange, services),
    renderError: (error) => answerOf(error.status, envelope(error)),
  };
}

/** Answers when the event is fully handled; until then the payment service repeats it. */
async function handleEvent(exchange: Exchange, services: SettlementServices): Promise<Answer> {
  const { body, headers } = exchange.request;
  const subject = services.processor.subjectOf(body, headers['stripe-signature'] ?? '', services.clock.now());
  // With 503 the payment service sends the event again, for days.
  await services.pool.admitMoney();
  const order = await orderOf(services, subject);
  if (order !== undefined) await lookAt(services, order);
  return answerOf(200, { received: true });
}

function answerOf(status: number, body: object): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** undefined: the subject belongs to another seller with the same account at the payment service. */
async function orderOf(services: SettlementServices, subject: Subject): Promise<Order | undefined> {
  if (subject === undefined) return undefined;
  const { rows, processor } = services;
  const known = await rows.find('session' in subject ? { session: subject.session } : { payment: subject.payment });
  if (known !== undefined) return known;
  const session =
    'session' in subject ? await processor.session(subject.session) : await processor.sessionOf(subject.payment);
  if (session?.orderId === undefined || !uuidForm.test(session.orderId)) return undefined;
  const order = await rows.find({ id: session.orderId });
  // The process that created the page may have stopped before it stored the session.
  if (order !== undefined && order.session === undefined) await rows.open(order.id, session.id, session.url);
  return order && rows.find({ id: order.id });
}
