/** The endpoint at which the payment service tells that something has happened. Its word is a reason to ask, no more. */
import type { Answer, Endpoint, Exchange } from '../../core/contract.ts';
import { envelope } from '../../core/error-envelope.ts';
import type { Subject } from './processor.ts';
import type { Order } from './rows.ts';
import { type Books, lookAt } from './settlement.ts';

/** The payment service gives up after half a minute, and comes again later. */
const timeoutMs = 25_000;
const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function webhookOf(books: Books): Endpoint {
  return {
    method: 'POST',
    path: '/payments/webhook',
    operation: 'payments',
    // Its signature admits it.
    keyless: true,
    timeoutMs,
    handle: (exchange) => hear(exchange, books),
    renderError: (error) => answerOf(error.status, envelope(error)),
  };
}

/** Answered when everything that follows is done: till then the payment service repeats it. */
async function hear(exchange: Exchange, books: Books): Promise<Answer> {
  const { body, headers } = exchange.request;
  const subject = books.processor.subjectOf(body, headers['stripe-signature'] ?? '', books.clock.now());
  const order = await orderOf(books, subject);
  if (order !== undefined) await lookAt(books, order);
  return answerOf(200, { received: true });
}

function answerOf(status: number, body: object): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** undefined: it is about something that others sell by the same account of the payment service. */
async function orderOf(books: Books, subject: Subject): Promise<Order | undefined> {
  if (subject === undefined) return undefined;
  const { rows, processor } = books;
  const known = await rows.find('session' in subject ? { session: subject.session } : { payment: subject.payment });
  if (known !== undefined) return known;
  const session =
    'session' in subject ? await processor.session(subject.session) : await processor.sessionOf(subject.payment);
  if (session?.orderId === undefined || !uuidForm.test(session.orderId)) return undefined;
  const order = await rows.find({ id: session.orderId });
  // The process that had the page made may have died before it could write that down.
  if (order !== undefined && order.session === undefined) await rows.open(order.id, session.id, session.url);
  return order && rows.find({ id: order.id });
}
