/** Two gateways on a PostgreSQL and a Redis of their own, which tests break under a small load. */
import assert from 'node:assert/strict';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { hasPostgres, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { hasRedis, startRedis, type TestRedis } from '../helpers/redis.ts';
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts';
import { type Fleet, gather } from './fleet.ts';
import { assertBillsAgree, type Load, type LoadOptions, startLoad } from './fleet-load.ts';
import { type Customer, modelAt, speaks, until } from './testbed.ts';

/** Ledger rows that may wait for the database, few enough for a test to come to their end. */
export const backlog = 800;

export const canBreak = hasPostgres && hasRedis;

export class Stage {
  readonly vendor: RunningVendor;
  readonly redis: TestRedis;
  /** Whichever server the gateways' address leads to. */
  postgres: TestPostgres;
  readonly network: TcpProxy;
  readonly fleet: Fleet;
  readonly #loads: Load[] = [];
  #chargedBefore = 0;

  private constructor(parts: Pick<Stage, 'vendor' | 'redis' | 'postgres' | 'network' | 'fleet'>) {
    this.vendor = parts.vendor;
    this.redis = parts.redis;
    this.postgres = parts.postgres;
    this.network = parts.network;
    this.fleet = parts.fleet;
  }

  static async open(): Promise<Stage> {
    const [vendor, redis, postgres] = await Promise.all([startVendor({ key: 'key' }), startRedis(), startPostgres()]);
    const network = await startTcpProxy(postgres.port);
    const sections = {
      plans: { default: 'open', offers: { open: { price: 0, limits: { rpm: 1_000_000 } } } },
      providers: { sandbox: { keys: 'key', speaks: speaks(vendor.origin) } },
      models: { sandbox: modelAt('sandbox') },
      billing: { journal: { backlog } },
    };
    const database = `postgres://gateway@127.0.0.1:${network.port}/postgres`;
    const fleet = await gather(sections, 2, { database, environment: { REDIS_URL: redis.url } });
    await Promise.all(fleet.nodes.map((node) => node.start()));
    return new Stage({ vendor, redis, postgres, network, fleet });
  }

  async close(): Promise<void> {
    await Promise.all(this.#loads.map((load) => load.stop()));
    this.postgres.thaw();
    await this.fleet.close();
    this.network.close();
    await Promise.all([this.postgres.close(), this.redis.stop(), this.vendor.close()]);
  }

  /** Two customers with money. */
  customers(): Promise<Customer[]> {
    return this.fleet.runAsCommand((gateway) => Promise.all([gateway.customer(), gateway.customer()]));
  }

  /** A load with a new bill at the vendor. */
  async begin(customers: readonly Customer[], options: LoadOptions = {}): Promise<Load> {
    // That of a test that has failed would be in this one's bill.
    await Promise.all(this.#loads.splice(0).map((load) => load.stop()));
    this.vendor.resetBill();
    this.#chargedBefore = this.#charges();
    const load = startLoad(this.fleet, customers, options);
    this.#loads.push(load);
    return load;
  }

  /** Calls that were charged since the vendor's bill was begun. */
  chargesSince(): number {
    return this.#charges() - this.#chargedBefore;
  }

  #charges(): number {
    return Number(this.postgres.sql(`select count(*) from "${this.fleet.store.schema}".calls where settled`));
  }

  /** SQL that counts the balances of one customer. */
  balancesOf({ accountId }: Customer): string {
    return `select count(*) from "${this.fleet.store.schema}".balances where account_id = '${accountId}'`;
  }

  /** A load of customers whom both processes know, while `fault` happens and goes; then the bills. */
  async during(
    fault: (load: Load, customers: readonly Customer[]) => Promise<void>,
    options: LoadOptions = {},
  ): Promise<void> {
    const customers = await this.customers();
    const load = await this.begin(customers, options);
    try {
      await load.more(80);
      await fault(load, customers);
      await load.more(40);
    } finally {
      await load.stop();
    }
    const refused = load.refused();
    const first = JSON.stringify(refused[0]);
    assert.equal(refused.length, 0, `of ${load.answers.length} calls were not served, the first: ${first}`);
    await assertBillsAgree(this.fleet, customers, this.vendor, load);
  }

  async ready(index: number): Promise<number> {
    return (await fetch(`${this.fleet.nodes[index]!.origin}/readyz`)).status;
  }

  async alive(index: number): Promise<number> {
    return (await fetch(`${this.fleet.nodes[index]!.origin}/healthz`)).status;
  }

  async bothReady(): Promise<void> {
    const isSo = async () => (await this.ready(0)) === 200 && (await this.ready(1)) === 200;
    await until('both are ready', isSo, 20_000);
  }

  /** The address leads to the follower from now on; the one before is gone. */
  async takeOver(next: TestPostgres): Promise<void> {
    next.promote();
    this.network.lead(next.port);
    this.network.cut();
    await this.postgres.close();
    this.postgres = next;
  }
}
