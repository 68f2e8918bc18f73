/** Payments: money from outside, paid at a payment service and credited once. Without its secrets there is none of it. */
import { definePlugin, type Host, type Part } from '../../core/contract.ts';
import { payments } from '../../core/desk.ts';
import { database, ledger, pool } from '../../core/vocabulary.ts';
import { openPayments } from './checkout.ts';
import { configSchema, type PaymentsConfig } from './config.ts';
import { openProcessor } from './processor.ts';
import { goRound } from './rounds.ts';
import { OrderRows } from './rows.ts';
import type { Books } from './settlement.ts';
import { webhookOf } from './webhook.ts';
import { WithdrawalRows } from './withdrawal-rows.ts';

const roundMs = 180_000;

export default definePlugin<PaymentsConfig>({
  name: 'payments',
  config: configSchema,
  needs: [database, ledger, pool],
  provides: [payments],
  setup: setUpPayments,
});

async function setUpPayments(host: Host, config: PaymentsConfig): Promise<Part> {
  const { secret_key: key, webhook_secret: secret } = config;
  if (key === '' || secret === '') {
    if (key === secret) return {};
    const missing = key === '' ? 'secret_key' : 'webhook_secret';
    return { notices: () => [{ level: 'warning', text: `payments.${missing} is empty: nobody can pay.` }] };
  }
  const store = host.need(database);
  await store.migrate('payments', new URL('./migrations/', import.meta.url));
  const books: Books = {
    rows: new OrderRows(store),
    withdrawals: new WithdrawalRows(store),
    processor: await openProcessor(config),
    ledger: host.need(ledger),
    pool: host.need(pool),
    clock: host.clock,
    log: host.log,
    currency: config.currency,
  };
  const title = `Balance of ${host.gateway}`;
  host.provide(payments, openPayments({ books, config, random: host.random, title }));
  return {
    endpoints: [webhookOf(books)],
    start: () => host.every(roundMs, 'look after payments', () => goRound(books)),
  };
}
