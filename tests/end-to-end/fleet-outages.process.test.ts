/** Answers that are lost, a PostgreSQL that hangs, another one in its place: who has money is served, and no bill differs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { acceptRestore } from './fleet.ts';
import { assertBillsAgree } from './fleet-load.ts';
import { backlog, canBreak, Stage } from './fleet-stage.ts';
import { until } from './testbed.ts';

if (canBreak) {
  describe('two processes whose PostgreSQL does not answer', () => {
    let stage: Stage;
    before(async () => {
      stage = await Stage.open();
    });
    after(() => stage.close());

    test('commits with lost answers are applied once', async () => {
      await stage.during(async (load) => {
        stage.network.loseCommits(10);
        await until('ten commits have lost their answers', () => stage.network.lost >= 10, 15_000);
        await load.more(20);
      });
    });

    test('a connection that dies silently at a commit: the ledger continues on another before leases end', async () => {
      await stage.during(
        async (load) => {
          const lost = stage.network.lost;
          stage.network.silenceCommit();
          await until('a commit got no answer', () => stage.network.lost > lost);
          // Journals of both reach the ledger again: nothing that was answered by now is missing there.
          const answered = load.answers.length;
          await until('the ledger has caught up', () => stage.chargesSince() >= answered, 20_000);
          // Slowly, so that the backlog's bound is not what is met.
        },
        { pauseMs: 100 },
      );
    });

    test('a hanging database: accounts with money are served until the backlog is full, then get 503; the service recovers by itself', async () => {
      const customers = await stage.customers();
      const load = await stage.begin(customers, { workers: 12, pauseMs: 0 });
      await load.more(300);
      const from = load.answers.length;
      stage.postgres.freeze();
      try {
        await until('the backlog is full', () => load.refused().length > 20);
        // It goes by itself: a restart would only lose time.
        assert.deepEqual([await stage.alive(0), await stage.alive(1)], [200, 200]);
      } finally {
        stage.postgres.thaw();
      }
      const served = load.answers.slice(from).filter(({ status }) => status === 200).length;
      // Each process lets as many calls wait, or KiB of journal text, of which a call has more than one; some were waiting when it
      // froze, and those that run are let end.
      assert.ok(served > backlog / 2 && served <= 2 * backlog + 50, `${served} were served meanwhile`);
      assert.deepEqual(new Set(load.refused().map(({ status }) => status)), new Set([503]));
      await until('calls are let in again', async () => {
        const last = load.answers.slice(-30);
        return last.every(({ status }) => status === 200);
      });
      await load.stop();
      await assertBillsAgree(stage.fleet, customers, stage.vendor, load);
      await stage.bothReady();
    });

    test('another server takes over at the same address: calls of accounts with money continue', async () => {
      const next = await stage.postgres.follower(true);
      await stage.during(async (load) => {
        await stage.postgres.crash();
        await load.more(20);
        await stage.takeOver(next);
        await load.more(20);
      });
      await stage.bothReady();
    });

    test('a server takes over without the last commits: nothing is written to it before the journals are read again, and nothing is lost', async () => {
      const next = await stage.postgres.follower(false);
      const customers = await stage.customers();
      const [customer] = customers;
      await until('it has the customers', () => next.sql(stage.balancesOf(customer!)) === '1');
      next.sql("alter system set primary_conninfo = ''");
      next.sql('select pg_reload_conf()');
      const load = await stage.begin(customers);
      await load.more(200);
      await stage.postgres.crash();
      await stage.takeOver(next);
      await until(
        'both are out of service',
        async () => (await stage.ready(0)) === 503 && (await stage.ready(1)) === 503,
        20_000,
      );
      // Not for want of a database alone, which would come back: they ask to be restarted.
      await until(
        'both ask to be restarted',
        async () => (await stage.alive(0)) === 503 && (await stage.alive(1)) === 503,
        20_000,
      );
      await load.stop();
      assert.deepEqual(
        load.refused().filter(({ status }) => status !== 503),
        [],
      );
      for (const node of stage.fleet.nodes) await node.end('SIGTERM');
      await Promise.all(stage.fleet.nodes.map((node) => node.start()));
      assert.deepEqual([await stage.alive(0), await stage.alive(1)], [200, 200]);
      await acceptRestore(stage.fleet);
      await assertBillsAgree(stage.fleet, customers, stage.vendor, load);
    });
  });
}
