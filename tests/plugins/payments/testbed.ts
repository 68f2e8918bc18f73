/** Billing and payments on one database, with a stand-in for the payment service; as often as a test wants processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { Endpoint, PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import billing from '../../../plugins/billing/index.ts';
import { type Payments, payments } from '../../../plugins/common/domain/admin/ledger.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { type Ledger, ledger, type Pool, pool } from '../../../plugins/common/domain/ledger.ts';
import { money, parseUsd } from '../../../plugins/common/domain/money.ts';
import paymentsPlugin from '../../../plugins/payments/index.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import {
  type FakeStripe,
  type SignedEvent,
  secretKey,
  startFakeStripe,
  webhookSecret,
} from '../../helpers/fake-stripe.ts';
import { type FakeHost, fakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';
import { atEnd } from '../../runner/end.ts';

const directories: string[] = [];
process.once('exit', () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

export interface PaymentsTestbed {
  readonly host: FakeHost;
  readonly database: TestDatabase;
  readonly stripe: FakeStripe;
  readonly part: PluginInstance;
  readonly payments: Payments;
  readonly pool: Pool;
  balance(accountId?: string): Promise<bigint>;
  /** An account begins to pay so much. Resolves with the session's id. */
  begin(usd: string, accountId?: string): Promise<string>;
  /** The status with which an event is answered. */
  deliver(event: SignedEvent): Promise<number>;
  round(): Promise<void>;
  /** The only order's state, as its account sees it. */
  state(): Promise<string | undefined>;
  /** Runs a command of billing or payments. */
  command(name: string, values: Record<string, string | boolean>): Promise<CommandResult>;
  audit(): Promise<void>;
  close(): Promise<void>;
}

export interface PaymentsTestbedOptions {
  /** Stands in for the ledger or the pool that payments use. */
  readonly ledger?: (real: Ledger) => Ledger;
  readonly pool?: (real: Pool) => Pool;
  readonly section?: object;
}

let references = 0;

/** So that a test that failed keeps no one waiting. */
const services = new Set<FakeStripe>();
atEnd(async () => {
  await Promise.all([...services].map((each) => each.close()));
});

export async function openPayments(
  of?: PaymentsTestbed,
  options: PaymentsTestbedOptions = {},
): Promise<PaymentsTestbed> {
  const store = await openDatabase({
    pool: 8,
    ...(of === undefined ? { plugins: ['billing', 'payments'] } : { schema: of.database.schema }),
  });
  const directory = mkdtempSync(join(tmpdir(), 'payments-'));
  directories.push(directory);
  const host = fakeHost({ schema: store.schema, directory });
  host.random.bytes(of === undefined ? 1 : 2);
  if (of !== undefined) host.advance(of.host.clock.now() - host.clock.now());
  host.provide(database, store);
  const accounting = await setUp(billing, host);
  const [book, balance] = [host.get(ledger), host.get(pool)];
  host.provide(ledger, options.ledger?.(book) ?? book);
  host.provide(pool, options.pool?.(balance) ?? balance);
  const stripe = of?.stripe ?? (await startFakeStripe(() => host.clock.now()));
  services.add(stripe);
  const part = await setUp(paymentsPlugin, host, {
    secret_key: secretKey,
    webhook_secret: webhookSecret,
    api_base: stripe.origin,
    ...options.section,
  });
  await part.lifecycle!.start!();
  const [endpoint] = part.endpoints as [Endpoint];
  const paymentsService = host.get(payments);
  return {
    host,
    database: store,
    stripe,
    part,
    payments: paymentsService,
    pool: balance,
    balance: (accountId = 'alice') => book.balance(accountId),
    async begin(usd, accountId = 'alice') {
      // No two at the same time, so that they have an order.
      host.advance(1);
      const urls = { paidUrl: 'https://gateway.example/paid', leftUrl: 'https://gateway.example/left' };
      const reference = `begin-${++references}`;
      const { url } = await paymentsService.checkout(accountId, money(parseUsd(usd)), { reference, ...urls });
      return url.split('/').at(-1)!;
    },
    async deliver({ body, headers }) {
      const request = { body: Buffer.from(body), headers };
      const exchange = fakeExchange({ endpoint, request });
      try {
        return (await endpoint.handle!(exchange, () => assert.fail('nothing is forwarded'))).status;
      } catch (error) {
        return endpoint.renderError!(error as GatewayError, exchange).status;
      }
    },
    round: async () => void (await host.intervals.find(({ name }) => name === 'look after payments')!.work()),
    state: async () => (await paymentsService.list(undefined, { limit: 2 })).rows[0]?.state,
    command: async (name, values) =>
      [...accounting.commandLine!.commands!, ...part.commandLine!.commands!]
        .find((each) => each.name === name)!
        .run(values),
    async audit() {
      const { json } = await accounting.commandLine!.commands!.find(({ name }) => name === 'audit')!.run({});
      assert.deepEqual((json as { violations: unknown[] }).violations, []);
    },
    close: async () => {
      if (of === undefined && services.delete(stripe)) await stripe.close();
      await store.close();
    },
  };
}
