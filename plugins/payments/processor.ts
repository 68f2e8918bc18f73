/** The payment service, through its official library: payment pages, their state, and signed events. */
import type Stripe from 'stripe';
import { GatewayError } from '../../core/contract/errors.ts';
import type { PaymentsConfig } from './config.ts';

const timeoutMs = 20_000;
/** In addition to the first try; the library repeats the idempotency key. */
const retries = 2;
/** Most refunds and disputes read per payment. */
const listed = 100;
/** Most paid pages that are looked through after the database was put back. */
const mostPaid = 5_000;

/** The payment page of an order. */
export interface Session {
  readonly id: string;
  /** The order that it was made for. */
  readonly orderId: string | undefined;
  /** Whom it is for; undefined: it was made by an earlier version. */
  readonly accountId: string | undefined;
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  readonly url: string | undefined;
  readonly state: 'open' | 'paid' | 'expired';
  readonly payment: string | undefined;
  readonly cents: number;
  readonly currency: string;
}
/** A refund or dispute of a payment, also one that came to nothing. */
export interface Withdrawal {
  readonly id: string;
  readonly cents: number;
  readonly currency: string;
  readonly standing: boolean;
}
interface SessionOrder {
  readonly orderId: string;
  readonly accountId: string;
  readonly cents: number;
  readonly currency: string;
  readonly title: string;
  readonly paidUrl: string;
  readonly leftUrl: string;
  /** Wall-clock milliseconds; from half an hour to a day away. */
  readonly expiresAt: number;
}
/** The subject of an event; undefined: not of this gateway. */
export type Subject = { readonly session: string } | { readonly payment: string } | undefined;

/** Failures are `upstream_failed`: the outcome of the request is unknown. */
export interface Processor {
  createSession(order: SessionOrder): Promise<Session>;
  session(id: string): Promise<Session>;
  sessionOf(payment: string): Promise<Session | undefined>;
  /** Pages that were made since then and are paid, newest first. */
  paidSince(at: number): Promise<readonly Session[]>;
  withdrawals(payment: string): Promise<readonly Withdrawal[]>;
  /** The subject of a signed event. Throws invalid_request unless its signature is valid and at most five minutes old. */
  subjectOf(body: Uint8Array, signature: string, at: number): Subject;
}

export async function openProcessor(config: PaymentsConfig): Promise<Processor> {
  // Loaded only where it is used, because it is large.
  const { default: Library } = await import('stripe');
  const { hostname: host, port, protocol } = new URL(config.api_base);
  const client = new Library(config.secret_key, {
    host,
    ...(port === '' ? {} : { port }),
    protocol: protocol === 'http:' ? 'http' : 'https',
    timeout: timeoutMs,
    maxNetworkRetries: retries,
    telemetry: false,
  });
  const { sessions } = client.checkout;
  return {
    createSession: (order) =>
      asProcessor(async () =>
        readSession(await sessions.create(sessionOf(order), { idempotencyKey: `order:${order.orderId}` })),
      ),
    session: (id) => asProcessor(async () => readSession(await sessions.retrieve(id))),
    sessionOf: (payment) =>
      asProcessor(async () => {
        const [found] = (await sessions.list({ payment_intent: payment, limit: 1 })).data;
        return found && readSession(found);
      }),
    paidSince: (at) =>
      asProcessor(async () => {
        const found: Session[] = [];
        const query = { created: { gte: Math.floor(at / 1_000) }, status: 'complete', limit: listed } as const;
        for await (const session of sessions.list(query)) {
          const read = readSession(session);
          if (read.state === 'paid' && read.orderId !== undefined) found.push(read);
          if (found.length >= mostPaid) break;
        }
        return found;
      }),
    withdrawals: (payment) =>
      asProcessor(async () => {
        const refunds = await client.refunds.list({ payment_intent: payment, limit: listed });
        const disputes = await client.disputes.list({ payment_intent: payment, limit: listed });
        return [...refunds.data.map(refundOf), ...disputes.data.flatMap(disputeOf)];
      }),
    subjectOf: (body, signature, at) => {
      let event: Stripe.Event;
      try {
        event = client.webhooks.constructEvent(body, signature, config.webhook_secret, undefined, undefined, at);
      } catch (error) {
        throw new GatewayError('invalid_request', 'The signature does not hold.', {
          code: 'bad_signature',
          cause: error,
        });
      }
      return subjectIn(event);
    },
  };
}

async function asProcessor<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = 'The payment service does not answer as it should. Try again in a minute.';
    throw new GatewayError('upstream_failed', message, { code: 'payment_service', cause: error });
  }
}

function sessionOf(order: SessionOrder): Stripe.Checkout.SessionCreateParams {
  const { orderId, accountId, cents, currency, title, paidUrl, leftUrl, expiresAt } = order;
  const product = { currency, unit_amount: cents, product_data: { name: title } };
  return {
    mode: 'payment',
    client_reference_id: orderId,
    // The account too: if the database is put back, the payment service alone knows the order.
    metadata: { order: orderId, account: accountId },
    payment_intent_data: { metadata: { order: orderId } },
    line_items: [{ quantity: 1, price_data: product }],
    // The amount paid is the amount credited: no other currency, no exchange rate.
    adaptive_pricing: { enabled: false },
    success_url: paidUrl,
    cancel_url: leftUrl,
    expires_at: Math.floor(expiresAt / 1_000),
  };
}

function readSession(session: Stripe.Checkout.Session): Session {
  const {
    id,
    client_reference_id: orderId,
    url,
    status,
    payment_status: paid,
    currency,
    amount_total: cents,
    created,
    metadata,
  } = session;
  return {
    id,
    orderId: orderId ?? undefined,
    accountId: metadata?.['account'],
    createdAt: created * 1_000,
    url: url ?? undefined,
    state: paid === 'paid' ? 'paid' : status === 'expired' ? 'expired' : 'open',
    payment: idOf(session.payment_intent),
    cents: cents ?? 0,
    currency: currency ?? '',
  };
}

/** A pending refund counts as made; only a failed or cancelled one leaves the money in place. */
function refundOf({ id, amount, currency, status }: Stripe.Refund): Withdrawal {
  return { id, cents: amount, currency, standing: status !== 'failed' && status !== 'canceled' };
}

/** An inquiry takes no money (yet). */
function disputeOf({ id, amount, currency, status }: Stripe.Dispute): Withdrawal[] {
  if (status.startsWith('warning_') || status === 'prevented') return [];
  return [{ id, cents: amount, currency, standing: status !== 'won' }];
}

function subjectIn({ type, data }: Stripe.Event): Subject {
  const about = data.object as { readonly id?: unknown; readonly payment_intent?: string | { id: string } | null };
  if (type.startsWith('checkout.session.')) return typeof about.id === 'string' ? { session: about.id } : undefined;
  if (!/^(?:charge\.refunded|charge\.refund\.|refund\.|charge\.dispute\.)/.test(type)) return undefined;
  const payment = idOf(about.payment_intent ?? null);
  return payment === undefined ? undefined : { payment };
}

function idOf(named: string | { readonly id: string } | null): string | undefined {
  return typeof named === 'string' ? named : named?.id;
}
