/** Accounts, plans, billing and shop on one database, as often as a test wants processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import auth from '../../../plugins/auth/index.ts';
import billing from '../../../plugins/billing/index.ts';
import { type Account, accounts, type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger, type Posting, pool } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { plan, plans, shop } from '../../../plugins/common/domain/plans.ts';
import plansPlugin from '../../../plugins/plans/index.ts';
import shopPlugin from '../../../plugins/shop/index.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

const offers = {
  free: { price: 0 },
  pro: { price: 20, grant: { amount: 25, every: 'month' }, windows: { '5h': 5, week: 15 } },
  day: { price: 2, grant: { amount: 3, every: 'day' }, renew: true },
  saver: { price: 30, duration: '30d', multiplier: 1.6 },
};

const directories: string[] = [];
process.once('exit', () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

export interface Stall {
  readonly host: FakeHost;
  readonly database: TestDatabase;
  readonly parts: readonly PluginInstance[];
  account(name: string, usd?: string): Promise<Account>;
  credit(account: Account, usd: string): Promise<bigint>;
  balance(account: Account): Promise<bigint>;
  /** The plan that a call of this account would be made on now. */
  planOf(account: Account): Promise<string>;
  transact<T>(account: Account, work: (posting: Posting) => Promise<T>): Promise<T>;
  command(name: string, values?: Record<string, string | boolean>): Promise<CommandResult>;
  /** Passes when the money's invariants hold. */
  audit(): Promise<void>;
}

/** One process of a gateway. Its random numbers are its own. */
export async function openStall(of?: Stall | string): Promise<Stall> {
  const other = typeof of === 'string' ? of : of?.database.schema;
  const store = await openDatabase({
    pool: 8,
    ...(other === undefined ? { plugins: ['auth', 'billing', 'shop'] } : { schema: other }),
  });
  const directory = mkdtempSync(join(tmpdir(), 'stall-'));
  directories.push(directory);
  const host = fakeHost({ schema: store.schema, directory });
  host.random.bytes(other === undefined ? 1 : 2);
  host.provide(database, { ...store, shared: true });
  const parts = [
    await setUp(auth, host),
    await setUp(plansPlugin, host, { default: 'free', offers }),
    await setUp(billing, host),
    await setUp(shopPlugin, host),
  ];
  const command: Stall['command'] = (name, values = {}) => {
    const found = parts.flatMap(({ commandLine }) => commandLine?.commands ?? []).find((each) => each.name === name);
    return found!.run(values);
  };
  let references = 0;
  const credit: Stall['credit'] = (account, usd) =>
    host.get(ledger).credit(account.id, parseUsd(usd), {
      kind: 'top-up',
      reason: 'test',
      reference: `${account.id}:${other === undefined ? 1 : 2}:${++references}`,
    });
  return {
    host,
    database: store,
    parts,
    credit,
    command,
    async account(name, usd) {
      const account = await host.get(accounts).create(name, host.get(plans).default);
      if (usd !== undefined) await credit(account, usd);
      return account;
    },
    balance: ({ id }) => host.get(ledger).balance(id),
    async planOf({ id }) {
      const rows = await store.orm.execute(
        sql`select plan, round(extract(epoch from plan_ends_at) * 1000)::bigint::text as ends
            from ${sql.identifier(store.schema)}.accounts where id = ${id}::uuid`,
      );
      const [row] = (Array.isArray(rows) ? rows : (rows as unknown as { rows: unknown[] }).rows) as [
        { plan: string; ends: string | null },
      ];
      const planEndsAt = row.ends === null ? undefined : Number(row.ends);
      const who: Caller = { accountId: id, keyId: 'key', plan: row.plan, planEndsAt, models: undefined };
      const exchange = fakeExchange({ facts: [[caller, who]] });
      await parts[1]!.handle!(exchange, async () => okAnswer);
      return exchange.get(plan).name;
    },
    transact: ({ id }, work) => host.get(pool).transact(id, parseUsd('0'), work),
    async audit() {
      assert.deepEqual(((await command('audit')).json as { violations: unknown[] }).violations, []);
    },
  };
}

export const buy = (stall: Stall, account: Account, name: string, reference: string) =>
  stall.host.get(shop).buy(account.id, name, reference);

export const redeem = (stall: Stall, account: Pick<Account, 'id'>, code: string) =>
  stall.host.get(shop).redeem(account.id, code);

/** Makes codes by the command and tells them. */
export async function makeCodes(stall: Stall, values: Record<string, string | boolean>): Promise<string[]> {
  return ((await stall.command('codes create', values)).json as { codes: string[] }).codes;
}

/** Each promise's status: 200, or that of its refusal. */
export async function statuses(work: readonly Promise<unknown>[]): Promise<number[]> {
  const settled = await Promise.allSettled(work);
  return settled.map((each) => (each.status === 'fulfilled' ? 200 : ((each.reason as GatewayError).status ?? 500)));
}

export async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: GatewayError) => error.code ?? String(error),
  );
}

export const usd = parseUsd;
