/** Orders of accounts: one payment page per reference, and the list of orders. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Random } from '../../core/contract/host-tools.ts';
import type { Payments, PaymentView } from '../common/domain/admin/ledger.ts';
import { formatUsd, type Money } from '../common/domain/money.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { centNano, type PaymentsConfig } from './config.ts';
import { missingSince } from './restored.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';

/** How long a payment page is open; the payment service's minimum is half an hour. */
const pageMs = 3_600_000;
/** Most open orders of one account within that time. */
const mostOpen = 10;

export interface Counter {
  readonly services: SettlementServices;
  readonly config: Pick<PaymentsConfig, 'amounts' | 'min' | 'max' | 'currency'>;
  readonly random: Random;
  /** Product name on the payment page. */
  readonly title: string;
}

export function openPayments(counter: Counter): Payments {
  const { services, config } = counter;
  return {
    least: config.min,
    most: config.max,
    amounts: config.amounts,
    list: async (accountId, page) => {
      const limit = rowsFor(page);
      return pageOf(await services.rows.page(accountId, limit, cursorIn(page, uuidForm)), page, ({ id }) => id, viewOf);
    },
    missing: (since) => missingSince(services, since),
    checkout: async (accountId, amount, options) => {
      checkAmount(amount, config);
      for (const url of [options.paidUrl, options.leftUrl]) checkUrl(url);
      // Before anybody pays.
      await services.pool.admitMoney();
      return begin(counter, accountId, amount, options);
    },
  };
}

async function begin(
  { services, config, random, title }: Counter,
  accountId: string,
  amount: Money,
  { reference, paidUrl, leftUrl }: Parameters<Payments['checkout']>[2],
): Promise<{ readonly url: string }> {
  const { rows, processor, clock } = services;
  const now = clock.now();
  const order = (await rows.find({ reference })) ?? (await insert(services, random, { accountId, amount, reference }));
  if (order.accountId !== accountId || order.amount !== amount) throw conflict('This reference was used before.');
  if (order.url !== undefined) return { url: order.url };
  if (order.state !== 'creating') throw conflict('This payment has ended: begin another one.');
  const { id: orderId } = order;
  const cents = Number(amount / centNano);
  // Repeating an order sends the same request and gets the same page.
  const expiresAt = order.createdAt + pageMs;
  if (expiresAt - now < pageMs / 2) throw conflict('This payment has ended: begin another one.');
  const wanted = { orderId, accountId, cents, currency: config.currency, title, paidUrl, leftUrl, expiresAt };
  const { id, url } = await processor.createSession(wanted);
  await rows.open(orderId, id, url);
  if (url === undefined) throw new GatewayError('upstream_failed', 'The payment service has no page for this payment.');
  return { url };
}

async function insert(
  { rows, clock }: SettlementServices,
  random: Random,
  wanted: { readonly accountId: string; readonly amount: Money; readonly reference: string },
): Promise<Order> {
  const at = clock.now();
  if ((await rows.countOpen(wanted.accountId, at - pageMs)) >= mostOpen) {
    const message = 'Too many payments were begun and not paid. Pay one of them, or wait an hour.';
    throw new GatewayError('rate_limited', message, { code: 'open_payments', retryAfterMs: pageMs });
  }
  const hex = random.bytes(16).toString('hex');
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  // A concurrent request may have inserted this reference first.
  await rows.insert({ id, ...wanted, at });
  return (await rows.find({ reference: wanted.reference }))!;
}

function checkAmount(amount: Money, { min, max }: Counter['config']): void {
  if (amount >= min && amount <= max && amount % centNano === 0n) return;
  const message = `Pay from ${formatUsd(min)} to ${formatUsd(max)} USD, in whole cents.`;
  throw new GatewayError('invalid_request', message, { field: 'amount' });
}

function checkUrl(url: string): void {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return;
  throw new GatewayError('invalid_request', 'A payer comes back to an http or https address.', { field: 'returnUrl' });
}

function conflict(message: string): GatewayError {
  return new GatewayError('conflict', message, { field: 'reference', shouldRetry: false });
}

function viewOf({ id, accountId, amount, state, createdAt, paidAt, refunded }: Order): PaymentView {
  // An order under review by an operator is open for its payer.
  const stands = state === 'paid' ? 'paid' : state === 'expired' ? 'expired' : 'open';
  return {
    id,
    accountId,
    amount,
    state: stands === 'paid' && refunded >= amount ? 'refunded' : stands,
    createdAt,
    paidAt,
    refunded,
  };
}
