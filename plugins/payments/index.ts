/** Payments: money paid at a payment service and credited once. Disabled without its secrets. */
import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import { accounts } from '../common/domain/accounts.ts';
import { payments } from '../common/domain/admin/ledger.ts';
import { database } from '../common/domain/database.ts';
import { ledger, pool } from '../common/domain/ledger.ts';
import { openPayments } from './checkout.ts';
import { commandsOf } from './commands.ts';
import { configSchema, type PaymentsConfig } from './config.ts';
import { openProcessor } from './processor.ts';
import { goRound } from './reconcile.ts';
import { OrderRows } from './rows.ts';
import type { SettlementServices } from './services.ts';
import { webhookOf } from './webhook.ts';
import { WithdrawalRows } from './withdrawal-rows.ts';

const roundMs = 180_000;

export default definePlugin<PaymentsConfig>({
  name: 'payments',
  config: configSchema,
  services: { requires: [database, ledger, pool], optional: [accounts], provides: [payments] },
  setup: setUpPayments,
});

async function setUpPayments(host: Host, config: PaymentsConfig): Promise<PluginInstance> {
  const { secret_key: key, webhook_secret: secret } = config;
  if (key === '' || secret === '') {
    if (key === secret) return {};
    const missing = key === '' ? 'secret_key' : 'webhook_secret';
    return {
      checks: { notices: () => [{ level: 'warning', text: `payments.${missing} is empty: payments are off.` }] },
    };
  }
  const store = host.get(database);
  await store.migrate('payments', new URL('./migrations/', import.meta.url));
  const services: SettlementServices = {
    rows: new OrderRows(store),
    withdrawals: new WithdrawalRows(store),
    processor: await openProcessor(config),
    ledger: host.get(ledger),
    pool: host.get(pool),
    clock: host.clock,
    log: host.log,
    currency: config.currency,
    accounts: () => host.find(accounts),
  };
  const title = `Balance of ${host.gateway}`;
  host.provide(payments, openPayments({ services, config, random: host.random, title }));
  return {
    endpoints: [webhookOf(services)],
    commandLine: { commands: commandsOf(services) },
    lifecycle: { start: () => host.every(roundMs, 'look after payments', () => goRound(services)) },
  };
}
