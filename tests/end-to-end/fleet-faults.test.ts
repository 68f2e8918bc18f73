/** Gateways on a PostgreSQL and a Redis that fail in every way under a small load: who has money is served, and no bill differs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { hasPostgres, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { hasRedis, startRedis, type TestRedis } from '../helpers/redis.ts';
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts';
import { type Fleet, gather } from './fleet.ts';
import { assertBillsAgree, type Load, type LoadOptions, startLoad } from './fleet-load.ts';
import { type Customer, modelAt, speaks, until } from './house.ts';

const backlog = 800;

if (hasPostgres && hasRedis) {
  describe('two processes whose PostgreSQL or Redis fails', () => {
    let vendor: RunningVendor;
    let redis: TestRedis;
    let postgres: TestPostgres;
    let network: TcpProxy;
    let fleet: Fleet;
    const loads: Load[] = [];
    let chargedBefore = 0;

    before(async () => {
      [vendor, redis, postgres] = await Promise.all([startVendor({ key: 'key' }), startRedis(), startPostgres()]);
      network = await startTcpProxy(postgres.port);
      fleet = await gather(
        {
          plans: { default: 'open', offers: { open: { price: 0, limits: { rpm: 1_000_000 } } } },
          providers: { sandbox: { keys: 'key', speaks: speaks(vendor.origin) } },
          models: { sandbox: modelAt('sandbox') },
          billing: { journal: { backlog } },
        },
        2,
        { database: `postgres://gateway@127.0.0.1:${network.port}/postgres`, environment: { REDIS_URL: redis.url } },
      );
      await Promise.all(fleet.nodes.map((node) => node.start()));
    });
    after(async () => {
      await Promise.all(loads.map((load) => load.stop()));
      postgres.thaw();
      redis.resume();
      await fleet.close();
      network.close();
      await Promise.all([postgres.close(), redis.stop(), vendor.close()]);
    });

    function begin(customers: readonly Customer[], options: LoadOptions = {}): Load {
      vendor.resetBill();
      chargedBefore = Number(postgres.sql(`select count(*) from "${fleet.store.schema}".usage`));
      const load = startLoad(fleet, customers, options);
      loads.push(load);
      return load;
    }

    /** A load of customers with money, known to both processes, while `fault` happens and goes; then the bills. */
    async function during(
      fault: (load: Load, customers: readonly Customer[]) => Promise<void>,
      expected: { readonly mayGuess?: boolean; readonly served?: readonly number[] } = {},
    ): Promise<void> {
      const customers = await fleet.atTheDesk((desk) => Promise.all([desk.customer(), desk.customer()]));
      const load = begin(customers);
      try {
        await load.more(80);
        await fault(load, customers);
        await load.more(40);
      } finally {
        await load.stop();
      }
      const refused = load.refused(...(expected.served ?? [0, 1]));
      const first = JSON.stringify(refused[0]);
      assert.equal(refused.length, 0, `of ${load.answers.length} calls were not served, the first: ${first}`);
      await assertBillsAgree(fleet, customers, vendor, load, expected.mayGuess);
    }

    const ready = async (index: number) => (await fetch(`${fleet.nodes[index]!.origin}/readyz`)).status;
    const bothReady = () =>
      until('both are ready', async () => (await ready(0)) === 200 && (await ready(1)) === 200, 20_000);

    test('a process that is killed costs the other nothing', async () => {
      await during(
        async (load) => {
          await fleet.nodes[1]!.end('SIGKILL');
          await load.more(60);
          await fleet.nodes[1]!.start();
        },
        { mayGuess: true, served: [0] },
      );
    });

    test('a Redis that hangs, dies, comes back empty and is flushed costs nobody an answer', async () => {
      await during(async (load) => {
        redis.pause();
        await load.more(60);
        redis.resume();
        await load.more(30);
        await redis.kill();
        await load.more(60);
        await redis.restart();
        await pause(500);
        redis.command('flushall');
        await load.more(30);
      });
    });

    test('a database that crashes and comes back costs nobody with money an answer', async () => {
      await during(async (load) => {
        await postgres.crash();
        await load.more(60);
        await postgres.start();
      });
      await bothReady();
    });

    test('a read-only database: calls go on, money-in fails cleanly, and the books catch up', async () => {
      const setting = (value: string) => {
        postgres.sql(`alter system set default_transaction_read_only = ${value}`);
        postgres.sql('select pg_reload_conf()');
      };
      await during(async (load, [customer]) => {
        setting('on');
        await load.more(60);
        await assert.rejects(fleet.atTheDesk((desk) => desk.credit(customer!, 5n)));
        setting('off');
      });
      await bothReady();
    });

    test('a database that takes 200 ms for each answer holds up nobody with money', async () => {
      let slowest = 0;
      await during(async (load) => {
        network.delayMs = 200;
        const from = load.answers.length;
        await load.more(150);
        network.delayMs = 0;
        const took = load.answers.slice(from).map(({ tookMs }) => tookMs);
        slowest = took.toSorted((one, other) => one - other)[Math.floor(took.length * 0.9)]!;
      });
      assert.ok(slowest < 200, `nine in ten were answered within ${slowest} ms`);
    });

    test('commits whose answers are lost are done once', async () => {
      await during(async (load) => {
        network.loseCommits(10);
        await until('ten commits have lost their answers', () => network.lost >= 10, 15_000);
        await load.more(20);
      });
    });

    test('a connection that dies in silence at a commit: the ledger goes on by another before leases end', async () => {
      await during(async (load) => {
        const lost = network.lost;
        network.silenceCommit();
        await until('a commit got no answer', () => network.lost > lost);
        // Journals of both reach the ledger again: nothing that was answered by now is missing there.
        const answered = load.answers.length;
        await until('the ledger has caught up', async () => (await chargesSince()) >= answered, 20_000);
      });
    });

    test('a database that hangs: who has money is served until the backlog is full, then 503; all recovers alone', async () => {
      const customers = await fleet.atTheDesk((desk) => Promise.all([desk.customer(), desk.customer()]));
      const load = begin(customers, { workers: 12, pauseMs: 0 });
      await load.more(300);
      const from = load.answers.length;
      postgres.freeze();
      try {
        await until('the backlog is full', () => load.refused().length > 20, 25_000);
      } finally {
        postgres.thaw();
      }
      const served = load.answers.slice(from).filter(({ status }) => status === 200).length;
      // Each call makes two rows of the ledger; some were waiting when it froze, and those that run are let end.
      assert.ok(served > backlog / 2 && served <= backlog + 50, `${served} were served meanwhile`);
      assert.deepEqual(new Set(load.refused().map(({ status }) => status)), new Set([503]));
      await until('calls are let in again', async () => {
        const last = load.answers.slice(-30);
        return last.every(({ status }) => status === 200);
      });
      await load.stop();
      await assertBillsAgree(fleet, customers, vendor, load);
      await bothReady();
    });

    /** The address leads to the follower from now on; the one before is gone. */
    async function takeOver(next: TestPostgres): Promise<void> {
      next.promote();
      network.lead(next.port);
      network.cut();
      await postgres.close();
      postgres = next;
    }

    test('another server takes over at the same address: nobody with money notices', async () => {
      const next = await postgres.follower(true);
      await during(async (load) => {
        await postgres.crash();
        await load.more(20);
        await takeOver(next);
        await load.more(20);
      });
      await bothReady();
    });

    test('one takes over without the last commits: nothing is written to it before the journals are read again, and nothing is lost', async () => {
      const next = await postgres.follower(false);
      const customers = await fleet.atTheDesk((desk) => Promise.all([desk.customer(), desk.customer()]));
      const [customer] = customers;
      await until('it has the customers', () => next.sql(rowsOf(customer!)) === '1');
      next.sql("alter system set primary_conninfo = ''");
      next.sql('select pg_reload_conf()');
      const load = begin(customers);
      await load.more(200);
      await postgres.crash();
      await takeOver(next);
      await until('both are out of service', async () => (await ready(0)) === 503 && (await ready(1)) === 503, 20_000);
      await load.stop();
      assert.deepEqual(
        load.refused().filter(({ status }) => status !== 503),
        [],
      );
      for (const node of fleet.nodes) await node.end('SIGTERM');
      await Promise.all(fleet.nodes.map((node) => node.start()));
      await assertBillsAgree(fleet, customers, vendor, load);
    });

    /** Calls that were charged since the vendor's bill was begun. */
    async function chargesSince(): Promise<number> {
      return Number(postgres.sql(`select count(*) from "${fleet.store.schema}".usage`)) - chargedBefore;
    }

    const rowsOf = ({ accountId }: Customer) =>
      `select count(*) from "${fleet.store.schema}".balances where account_id = '${accountId}'`;
  });
}
